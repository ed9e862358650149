package cli

import (
	"slices"
	"strings"
)

// syntax renders arguments as manuals do: key value [NX|XX] [EX seconds].
func syntax(args []argument) string {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = a.String()
	}
	return strings.Join(parts, " ")
}

// String renders one argument.
func (a argument) String() string {
	s := a.body()
	switch {
	case a.token != "" && s == "":
		s = a.token
	case a.multiple && a.token != "" && !a.again:
		s = a.token + " " + s + " [" + s + " ...]"
	case a.token != "":
		s = a.token + " " + s
	}
	if a.multiple && (a.token == "" || a.again) {
		s += " [" + s + " ...]"
	}
	if a.optional {
		s = "[" + s + "]"
	}
	return s
}

// body renders an argument without its token, repetition and brackets.
func (a argument) body() string {
	switch a.kind {
	case "pure-token":
		return ""
	case "oneof":
		parts := make([]string, len(a.args))
		for i, alt := range a.args {
			parts[i] = alt.String()
		}
		return strings.Join(parts, "|")
	case "block":
		return syntax(a.args)
	}
	return a.name
}

// remaining returns what may still follow the words already typed. It is a guess that
// helps, not a parser: it ends at a word that fits no argument.
func remaining(args []argument, words []string) []argument {
	left, _ := consume(args, words)
	return left
}

// consume matches words with arguments in order and returns both rests. Adjacent optional
// arguments can come in any order.
func consume(args []argument, words []string) ([]argument, []string) {
	args = append([]argument(nil), args...)
	for len(args) > 0 && len(words) > 0 {
		run := 0
		for run < len(args) && args[run].optional {
			run++
		}
		i := 0
		for i < run && !args[i].starts(words[0]) {
			i++
		}
		switch {
		case i < run: // an optional one
		case run == len(args) || !args[run].starts(words[0]):
			return args[run:], words
		default: // the required argument after the optional ones
			args, i = args[run:], 0
		}
		var unfinished []argument
		a := args[i]
		unfinished, words = a.take(words, args[i+1:])
		next := append([]argument(nil), unfinished...)
		next = append(next, args[:i]...)
		args = append(next, args[i+1:]...)
	}
	return args, words
}

// starts reports whether word can be the first word of a.
func (a argument) starts(word string) bool {
	if a.token != "" {
		return strings.EqualFold(a.token, word)
	}
	switch a.kind {
	case "oneof":
		return slices.ContainsFunc(a.args, func(alt argument) bool { return alt.starts(word) })
	case "block":
		for _, part := range a.args {
			if part.starts(word) {
				return true
			}
			if !part.optional {
				break
			}
		}
		return false
	}
	return true
}

// take consumes the words of one argument, which begins with words[0], and returns its
// missing part. A repeated argument continues until a word that introduces one of the
// arguments in behind.
func (a argument) take(words []string, behind []argument) (unfinished []argument, rest []string) {
	for first := true; ; first = false {
		if a.token != "" && (first || a.again) {
			words = words[1:]
		}
		unfinished, words = a.takeOnce(words)
		if !a.multiple || len(unfinished) > 0 {
			return unfinished, words
		}
		if len(words) == 0 || introduces(behind, words[0]) || (a.again || a.token == "") && !a.starts(words[0]) {
			more := a
			if !a.again {
				more.token = ""
			}
			more.multiple, more.optional = false, false
			return []argument{{name: more.String() + " ...", optional: true, kind: "more"}}, words
		}
	}
}

func (a argument) takeOnce(words []string) (unfinished []argument, rest []string) {
	switch {
	case a.kind == "pure-token":
		return nil, words
	case len(words) == 0:
		a.token, a.optional, a.multiple = "", false, false
		return []argument{a}, nil
	case a.kind == "oneof":
		for i, alt := range a.args {
			if alt.starts(words[0]) {
				return alt.take(words, a.args[i+1:])
			}
		}
		return nil, words[1:]
	case a.kind == "block":
		left, rest := consume(a.args, words)
		if len(rest) > 0 {
			left = nil
		}
		return left, rest
	}
	return nil, words[1:]
}

// introduces reports whether word is the token of one of args.
func introduces(args []argument, word string) bool {
	return slices.ContainsFunc(args, func(a argument) bool { return a.hasToken() && a.starts(word) })
}

func (a argument) hasToken() bool {
	if a.token != "" {
		return true
	}
	if a.kind == "oneof" {
		for _, alt := range a.args {
			if !alt.hasToken() {
				return false
			}
		}
		return true
	}
	return a.kind == "block" && len(a.args) > 0 && a.args[0].hasToken()
}

// tokens returns the words that can come next: those of the leading optional
// arguments and of the first required one.
func tokens(args []argument) (all []string) {
	for _, a := range args {
		switch {
		case a.token != "":
			all = append(all, a.token)
		case a.kind == "oneof":
			for _, alt := range a.args {
				all = append(all, tokens([]argument{alt})...)
			}
		case a.kind == "block":
			all = append(all, tokens(a.args)...)
		}
		if !a.optional {
			break
		}
	}
	return all
}
