// Package redact hides secrets in requests, for everything that shows them: MONITOR, SLOWLOG, the console's audit. Start
// reading at Request.
package redact

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
)

// redactedWord replaces secrets in logs.
var redactedWord = []byte("(redacted)")

// wrappers are the commands whose arguments contain another command, with the position of its name.
var wrappers = map[string]int{"acl|dryrun": 3, "command|getkeys": 2, "command|getkeysandflags": 2}

// Request returns a request without passwords and names of users. It also redacts a request that is an argument of another
// command, which it looks up in the table. The result may share its arguments with the request, which it does not change.
func Request(table *command.Table, spec *command.Spec, args [][]byte) [][]byte {
	at := 0
	for spec.Parent() != nil && wrappers[spec.Name] > 0 {
		at += wrappers[spec.Name]
		if at >= len(args) {
			return args
		}
		inner, err := table.Find(args[at:])
		if err != nil {
			return args
		}
		spec = inner
	}
	shown := redactOne(spec, args[at:])
	if at == 0 {
		return shown
	}
	if &shown[0] == &args[at] {
		return args
	}
	return append(append([][]byte(nil), args[:at]...), shown...)
}

// redactOne is Request for a command by itself. As on newer servers, it also hides the names of users.
func redactOne(spec *command.Spec, args [][]byte) [][]byte {
	hide := func(from, n int) [][]byte {
		out := append([][]byte(nil), args...)
		for i := from; i < from+n && i < len(out); i++ {
			out[i] = redactedWord
		}
		return out
	}
	switch spec.Name {
	case "auth":
		return hide(1, len(args))
	case "acl|setuser", "acl|getuser", "acl|deluser":
		return hide(2, len(args))
	case "hello":
		for i := 2; i < len(args); i++ {
			if command.EqualFold(args[i], "AUTH") {
				return hide(i+1, 2)
			}
		}
	case "migrate":
		for i := 6; i < len(args); i++ {
			switch {
			case command.EqualFold(args[i], "AUTH"):
				return hide(i+1, 1)
			case command.EqualFold(args[i], "AUTH2"):
				return hide(i+1, 2)
			}
		}
	case "config|set":
		out := args
		for i := 2; i+1 < len(args); i += 2 {
			if d := config.Lookup(string(args[i])); d != nil && d.Sensitive {
				if &out[0] == &args[0] {
					out = append([][]byte(nil), args...)
				}
				out[i+1] = redactedWord
			}
		}
		return out
	}
	return args
}
