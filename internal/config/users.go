package config

import (
	"errors"
	"slices"
	"strings"
)

// UserLine is a line "user name rule ..." of a file or the command line. The package does
// not check the rules.
type UserLine struct {
	Name  string
	Rules []string
	Where string // "redis.conf:12"
}

// addUser stores a user line. Each user has one.
func (s *Set) addUser(args []string, at string) error {
	if len(args) == 0 {
		return &ParseError{Err: errWords, Hint: "write user, a name and its rules"}
	}
	for _, u := range s.users {
		if u.Name == args[0] {
			return &ParseError{Err: errors.New("Duplicate user found. A user can only be defined once in config files"),
				Hint: "its first line is " + u.Where}
		}
	}
	s.users = append(s.users, UserLine{args[0], args[1:], at})
	return nil
}

// Users returns the user lines, in order.
func (s *Set) Users() []UserLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]UserLine(nil), s.users...)
}

// OnRewrite makes Rewrite call lines for the lines about users. Each begins with "user",
// has one space between two words and no newline. Rewrite quotes the words. It calls lines
// with the set's lock held, so lines may call only Get and the getters of the set. Without
// OnRewrite, user lines in the file stay as they are.
func (s *Set) OnRewrite(lines func() []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.userLines = lines
}

// rewriteUsers updates the lines about users in the text of a file. It puts all of them at
// the place of the first one, or at the end.
func (s *Set) rewriteUsers(text string, f files) (string, error) {
	if s.userLines == nil {
		return text, nil
	}
	var now []string
	for _, line := range s.userLines() {
		now = append(now, quoteWords(line))
	}
	old, err := parseText(text, f)
	if err != nil || sameUsers(old.users, now) {
		return text, err
	}
	var b strings.Builder
	written := len(now) == 0
	write := func() {
		if !written {
			b.WriteString(strings.Join(now, "\n") + "\n")
		}
		written = true
	}
	for line := range strings.Lines(text) {
		if words, _ := Words(strings.Trim(line, " \t\r\n")); len(words) > 0 && strings.EqualFold(words[0], "user") {
			write()
			continue
		}
		b.WriteString(line)
	}
	if !written && text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	write()
	check, err := parseText(b.String(), f)
	if err == nil && !sameUsers(check.users, now) {
		err = errors.New("an included file has lines about users, and CONFIG REWRITE does not change included files")
	}
	return b.String(), err
}

// quoteWords quotes the words of a line so that Words reads them back: an empty word,
// and a word with a quotation mark, a blank or a zero byte.
func quoteWords(line string) string {
	words := strings.Split(line, " ")
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, "\"'\t\n\v\f\r\x00") {
			words[i] = Quote(w)
		}
	}
	return strings.Join(words, " ")
}

// sameUsers reports whether the lines that were read are equal to now, word by word.
func sameUsers(read []UserLine, now []string) bool {
	if len(read) != len(now) {
		return false
	}
	for i, u := range read {
		words, _ := Words(now[i])
		if !slices.Equal(append([]string{"user", u.Name}, u.Rules...), words) {
			return false
		}
	}
	return true
}
