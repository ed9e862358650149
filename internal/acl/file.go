package acl

import (
	"fmt"
	"slices"
	"strings"
)

// Merge joins the words of each selector, from "(" to ")". unmatched is the index of a
// parenthesis that is not closed, -1 if all are.
func Merge(words []string) (merged []string, unmatched int) {
	open := -1
	var selector string
	for i, w := range words {
		switch {
		case open >= 0:
			selector += " " + w
			if strings.HasSuffix(w, ")") {
				merged = append(merged, selector)
				open = -1
			}
		case strings.HasPrefix(w, "(") && !strings.HasSuffix(w, ")"):
			selector, open = w, i
		default:
			merged = append(merged, w)
		}
	}
	if open >= 0 {
		return nil, open
	}
	return merged, -1
}

// ParseFile reads the lines of an aclfile, "user name rule ...". name stands for the file
// in messages. It reports all mistakes in one text, which is empty if there are none.
func ParseFile(name, text string, r Rules) (users []*User, mistakes string) {
	var b strings.Builder
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.Trim(line, " \t\r\n")
		if line == "" {
			continue
		}
		u, err := parseLine(fmt.Sprintf("%s:%d", name, number), strings.Split(line, " "), r)
		switch {
		case u != nil && slices.ContainsFunc(users, func(v *User) bool { return v.Name == u.Name }):
			fmt.Fprintf(&b, "WARNING: Duplicate user '%s' found on line %d. ", u.Name, number)
			continue
		case u != nil:
			users = append(users, u)
		}
		b.WriteString(err)
	}
	if b.Len() > 0 {
		return nil, b.String() + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	}
	return users, ""
}

// parseLine reads one user. If its rules have mistakes, it returns the user and the
// mistakes.
func parseLine(at string, words []string, r Rules) (u *User, mistakes string) {
	switch {
	case words[0] != "user" || len(words) < 2:
		return nil, at + " should start with user keyword followed by the username. "
	case HasSpaces(words[1]):
		return nil, fmt.Sprintf("'%s: username '%s' contains invalid characters. ", at, words[1])
	}
	u = New(words[1], r)
	ops, unmatched := Merge(words[2:])
	if unmatched >= 0 {
		return u, at + ": Unmatched parenthesis in selector definition."
	}
	// The message shows every unknown name, because a name is not a secret. Another wrong
	// rule may be a part of a password, so only the first one is reported.
	reported := false
	for _, op := range ops {
		op = strings.Trim(op, "\t\r\n")
		switch err := u.Apply(r, op); {
		case err == nil:
		case err == ErrUnknown:
			mistakes += fmt.Sprintf("%s: Error in applying operation '%s': %v. ", at, op, err)
		case !reported:
			reported = true
			mistakes += fmt.Sprintf("%s: %v. ", at, err)
		}
	}
	return u, mistakes
}
