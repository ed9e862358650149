package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
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
// name no directive; misspelt has them, each with the variable of the directive that it is close
// to, or "", but for ebb's own and Kubernetes' (EBB_SERVICE_HOST). It checks each value, so that
// an error names the variable.
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
			if slices.Contains(optionsOnly, name) {
				return nil, nil, fmt.Errorf("the environment variable %s: it may come more than once; write it into the configuration file or into %s",
					variable, environArgs)
			}
			if !ownVariable(name) {
				misspelt[variable] = similar(name)
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

// optionsOnly are lines of a configuration file that are not directives with one value.
var optionsOnly = []string{"RENAME_COMMAND", "USER", "INCLUDE", "LOADMODULE"}

// similar returns the variable that a name may stand for; "" if it is like none.
func similar(name string) string {
	if known := nearest(strings.ReplaceAll(strings.ToLower(name), "_", "-")); known != "" {
		return variableOf(known)
	}
	if strings.Contains(name, "PASS") {
		return variableOf("requirepass")
	}
	return ""
}

// ofTests are variables of the tests, which run servers.
var ofTests = []string{"SEED", "FULL", "WITHOUT", "REQUIRE", "PROGRAMS", "BACKENDS", "BASE", "BINARY", "SLOW", "SCREENSHOTS", "LOCK_DIR",
	"CHAOS_SKEW", "ORACLE_MASTER"}

// ownVariable reports whether a name without the prefix means something else than a directive: to ebb, to its tests, or to
// Kubernetes, which sets variables for each Service.
func ownVariable(name string) bool {
	if strings.HasPrefix(name, "POD_") || name == "DAEMON_CHILD" || strings.HasPrefix(name, "TEST") || slices.Contains(ofTests, name) {
		return true
	}
	return regexp.MustCompile(`(^|_)(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`).MatchString(name)
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
	switch {
	case strings.Contains(value, "\n"):
		return "", fmt.Errorf("%s has more than one line: it must hold the value alone", path)
	case strings.Contains(value, "\x00"):
		return "", fmt.Errorf("%s has a byte of value 0: it must hold the value as text", path)
	case value == "": // a secret that is not filled yet: the server would have no password
		return "", fmt.Errorf("%s is empty: it must hold the value", path)
	}
	return value, nil
}
