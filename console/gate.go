package console

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
)

// isRead reports whether a request changes nothing. The read-only console lets only such requests pass.
func isRead(spec *command.Spec, argv [][]byte) bool {
	f := spec.FlagsOf(argv)
	return f&(command.ReadOnly|command.Inert) != 0 && f&(command.Write|command.MayReplicate) == 0
}

// readOnly refuses the calls of scripts and functions that the read-only console does not run directly
// either.
func readOnly(spec *command.Spec, argv [][]byte) error {
	if isRead(spec, argv) {
		return nil
	}
	return command.ReplyError("READONLY the console is read-only: its scripts do not run " + display(spec))
}

// pauseMillis is the longest CLIENT PAUSE.
const pauseMillis = 10_000

// forbid returns the failure of a request that no confirmation allows.
func forbid(code, text string) *failure {
	return &failure{status: http.StatusForbidden, Code: code, Text: text}
}

// gate decides, before the user's rules, whether the console may serve a request. It returns nil or the
// refusal. typed is the text that the viewer has typed to confirm the request.
func (c *Console) gate(spec *command.Spec, argv [][]byte, typed string) *failure {
	name := display(spec)
	if spec.Client&command.Stateful != 0 {
		return forbid("STATEFUL", name+" belongs to a connection, and the console's requests have none of their own")
	}
	if c.opt.ReadOnly && !isRead(spec, argv) {
		return forbid("READONLY", "READONLY the console is read-only: it does not run "+name)
	}
	if c.opt.HideValues && tells(spec, argv) {
		return forbid("HIDDEN", "the console hides values (http-console-values no): it does not run "+name+" with these words, because "+
			"the reply or the effect depends on a value and would tell it")
	}
	if wait, ok := waits(spec, argv); ok && (wait <= 0 || wait > commandTime.Milliseconds()) {
		return forbid("BLOCKING", fmt.Sprintf("%s would wait for longer than %s, which the console does not: give a shorter timeout",
			name, commandTime))
	}
	if ms, ok := migrates(spec, argv); ok && ms > commandTime.Milliseconds() {
		return forbid("BLOCKING", fmt.Sprintf("MIGRATE holds its keys while it waits for the other server: the console gives it %s at most",
			commandTime))
	}
	if spec.Name == "client|pause" && len(argv) > 2 {
		if ms, err := strconv.ParseInt(string(argv[2]), 10, 64); err == nil && ms > pauseMillis {
			return forbid("BLOCKING", fmt.Sprintf("the console pauses clients for %d ms at most", pauseMillis))
		}
	}
	if want := c.mustType(spec, argv); want != "" && typed != want {
		return &failure{status: http.StatusConflict, Code: "CONFIRM", Confirm: want, Text: name + " needs a confirmation: type " + want}
	}
	return nil
}

// waits returns the ms for which a request may wait, 0 for no limit; ok is false if it does not wait.
func waits(spec *command.Spec, argv [][]byte) (ms int64, ok bool) {
	t := spec.Timeout()
	if t.Unit == 0 {
		return 0, false
	}
	at := t.At
	if t.Keyword != "" {
		at = 1 + slices.IndexFunc(argv, func(a []byte) bool { return strings.EqualFold(string(a), t.Keyword) })
		if at == 0 {
			return 0, false
		}
	} else if at < 0 {
		at += len(argv)
	}
	if at < 0 || at >= len(argv) {
		return 0, false // the command replies with its own error
	}
	n, err := strconv.ParseFloat(string(argv[at]), 64)
	if err != nil {
		return 0, false
	}
	n *= float64(t.Unit.Milliseconds())
	if n > 1e12 {
		return 1e12, true
	}
	if n > 0 && n < 1 {
		n = 1
	}
	return int64(n), true
}

// migrates returns the ms for which MIGRATE may wait for the other server; ok is false for other commands.
func migrates(spec *command.Spec, argv [][]byte) (ms int64, ok bool) {
	if spec.Name != "migrate" || len(argv) < 6 {
		return 0, false
	}
	ms, err := strconv.ParseInt(string(argv[5]), 10, 64)
	return ms, err == nil
}

// mustType returns the text that the viewer must type before a request runs, "" for none: the label of the
// server, otherwise the first key, otherwise the command. A text is required for requests of the category
// dangerous that change something, for those that remove or overwrite more than one key, and for those that
// flush scripts or functions.
func (c *Console) mustType(spec *command.Spec, argv [][]byte) string {
	if isRead(spec, argv) {
		return ""
	}
	keys, _ := spec.AppendKeys(nil, argv) // the command replies with its own error
	overwritten := 0
	for _, k := range keys {
		if k.Flags&(command.KeyRM|command.KeyOW) == command.KeyOW {
			overwritten++
		}
	}
	if spec.ACL()&command.CatDangerous == 0 && removed(keys) < 2 && overwritten < 2 && !strings.HasSuffix(spec.Name, "|flush") {
		return ""
	}
	if c.label != "" {
		return c.label
	}
	if len(keys) > 0 {
		if key := string(argv[keys[0].Pos]); clean(key) {
			return key
		}
	}
	return display(spec)
}

// removed returns the number of keys that a request removes.
func removed(keys []command.KeyRef) (n int) {
	for _, k := range keys {
		if k.Flags&command.KeyRM != 0 {
			n++
		}
	}
	return n
}

// passTogether refuses a batch that removes several keys, each by a command that removes one, until the
// viewer has typed the label or the name of the first of these commands. It does not ask for a key, because
// batches follow each other and their keys differ.
func (k *call) passTogether(cmds [][][]byte, typed string) error {
	n, first := 0, ""
	for _, argv := range cmds {
		spec := k.c.specOf(argv)
		if spec == nil {
			continue
		}
		if k.c.mustType(spec, argv) != "" {
			return nil // the viewer has typed the required text
		}
		keys, _ := spec.AppendKeys(nil, argv)
		if r := removed(keys); r > 0 {
			n, first = n+r, cmp.Or(first, display(spec))
		}
	}
	if want := cmp.Or(k.c.label, first); n > 1 && typed != want {
		return &failure{status: http.StatusConflict, Code: "CONFIRM", Confirm: want,
			Text: fmt.Sprintf("the batch removes %d keys, and needs a confirmation: type %s", n, want)}
	}
	return nil
}
