package config

import (
	"fmt"
	"os"
	"strings"
)

// The names of variables: EBB_MAXMEMORY_POLICY is the directive maxmemory-policy,
// EBB_REQUIREPASS_FILE names a file with the value of requirepass, and EBB_ARGS has further
// options.
const (
	environPrefix = "EBB_"
	environFile   = "_FILE"
	environArgs   = "EBB_ARGS"
)

// Environ returns the options of a command line that the variables of an environment stand
// for, each as two arguments, and those of EBB_ARGS at the end. It ignores variables that
// name no directive; misspelt has those that are close to one, with its variable. It checks
// each value, so that an error names the variable.
func Environ(environ []string) (args []string, misspelt map[string]string, err error) {
	misspelt = make(map[string]string)
	given := make(map[*Directive]string) // the variable that set it
	extra := ""
	for _, entry := range environ {
		variable, value, _ := strings.Cut(entry, "=")
		name, ok := strings.CutPrefix(variable, environPrefix)
		if !ok {
			continue
		}
		if variable == environArgs {
			extra = value
			continue
		}
		d := directiveOf(name)
		if of, isFile := strings.CutSuffix(name, environFile); d == nil && isFile {
			if d = directiveOf(of); d != nil {
				if value, err = valueOf(value); err != nil {
					return nil, nil, fmt.Errorf("the environment variable %s: %w", variable, err)
				}
			}
		}
		if d == nil {
			if known := nearest(strings.ReplaceAll(strings.ToLower(name), "_", "-")); known != "" {
				misspelt[variable] = variableOf(known)
			}
			continue
		}
		if other := given[d]; other != "" {
			return nil, nil, fmt.Errorf("the environment variables %s and %s both set %s: remove one", other, variable, d.Name)
		}
		given[d] = variable
		option := []string{"--" + d.Name, value}
		if d.Kind != Directory { // ebb serve makes directories before it reads the options
			if err := New().ParseArgs(option); err != nil {
				return nil, nil, fmt.Errorf("the environment variable %s: %w", variable, err)
			}
		}
		args = append(args, option...)
	}
	words, ok := Words(extra)
	if !ok {
		return nil, nil, fmt.Errorf("the environment variable %s: unbalanced quotes in %q", environArgs, extra)
	}
	return append(args, words...), misspelt, nil
}

// directiveOf returns the directive that a variable names, without the prefix: letters in
// upper case, with _ for -. It returns nil for others.
func directiveOf(name string) *Directive {
	if name != strings.ToUpper(name) {
		return nil
	}
	lower := strings.ToLower(name)
	if d := Lookup(strings.ReplaceAll(lower, "_", "-")); d != nil {
		return d
	}
	return Lookup(lower) // a few names of directives have an underscore
}

func variableOf(directive string) string {
	return environPrefix + strings.ToUpper(strings.ReplaceAll(directive, "-", "_"))
}

// valueOf reads a value from a file, as container platforms mount secrets. One line break at
// the end is not part of it.
func valueOf(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if strings.ContainsAny(value, "\n\x00") {
		return "", fmt.Errorf("%s has more than one line: it must hold the value alone", path)
	}
	return value, nil
}
