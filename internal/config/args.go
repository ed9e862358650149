package config

import (
	"fmt"
	"strings"
)

// ParseArgs applies the options of a command line as redis-server does: each "--name"
// takes the words up to the next one; words before the first name are a directive of their
// own, as in loglevel verbose --port 7000. The word directly after a name is its value
// even if it starts with "--", except after --save, which may stand alone for --save "". A
// name may contain its values, as in '--save 60 1'. Options override a file; save points
// add up. Errors are *ParseError.
func (s *Set) ParseArgs(args []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parser(diskFiles{})
	for len(args) > 0 {
		n := optionLength(args)
		if err := p.option(args[0], args[1:n]); err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

// optionLength returns how many arguments the first option has, its name included.
func optionLength(args []string) int {
	n := 1
	words, _ := Words(args[0])
	if len(words) == 1 && strings.HasPrefix(args[0], "--") && !strings.EqualFold(words[0], "--save") && len(args) > 1 {
		n = 2
	}
	for n < len(args) && !strings.HasPrefix(args[n], "--") {
		n++
	}
	return n
}

// option applies one option and its values.
func (p *parser) option(name string, values []string) error {
	const where = "command line"
	text := strings.Join(append([]string{name}, values...), " ")
	option, ok := strings.CutPrefix(name, "--")
	words, balanced := Words(option)
	if !ok && !strings.HasPrefix(name, "-") && name != "" {
		words, balanced, ok = []string{name}, true, true // a single word: it is not split
	}
	if ok && balanced && len(words) == 0 && len(values) == 0 {
		return nil // "--" alone has no effect
	}
	if !ok || !balanced || len(words) == 0 {
		return &ParseError{Where: where, Text: text, Err: fmt.Errorf("not an option"), Hint: "options look like --port 7000"}
	}
	directive, words := words[0], append(words[1:], values...)
	if secret(directive) {
		text = "--" + directive
	}
	err := p.words(directive, words, where)
	if bad, is := err.(*ParseError); is && bad.Where == "" {
		bad.Where, bad.Text = where, text
	}
	return err
}
