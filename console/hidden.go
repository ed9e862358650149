package console

import (
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/resp"
)

// valueOf returns a value, a payload or an argument in a reply for a page: cut to a preview, or its length alone where values
// are hidden.
func (c *Console) valueOf(v resp.Value) blob { return shownOf(v, c.opt.HideValues) }

// replyJSON returns a reply for JavaScript, with its values hidden where values are.
func (c *Console) replyJSON(v resp.Value) any { return replyJSON(v, c.opt.HideValues) }

// hidesReply reports whether the reply to a request has values, and values are hidden. The replies of commands that
// look at the server are shown, except for those that have arguments of others.
func (c *Console) hidesReply(argv [][]byte) bool {
	if !c.opt.HideValues {
		return false
	}
	spec := c.specOf(argv)
	if spec == nil || spec.HasKeys() || spec.Flags&(command.ReadOnly|command.Scripts) != 0 {
		return true
	}
	return !isRead(spec, argv) || spec.Name == "slowlog|get" || spec.Name == "script|show"
}

// secret reports whether a request has what the logs leave out, such as a password.
func (c *Console) secret(argv [][]byte) bool {
	spec, err := c.svc.Table().Find(argv)
	if err != nil {
		return false
	}
	shown := c.svc.Redacted(spec, argv)
	return len(shown) > 0 && &shown[0] != &argv[0]
}

// numbersOfValues are the commands whose replies have numbers that they read in a value.
var numbersOfValues = []string{"bitcount", "bitfield", "bitfield_ro", "bitpos", "decr", "decrby", "getbit", "hincrby", "incr",
	"incrby", "increx", "lcs", "setbit"}

// readsValues are further commands whose errors say what a value is, and errorsOfValues are parts of such errors.
var (
	readsValues    = append([]string{"hincrbyfloat", "incrbyfloat", "sort", "sort_ro"}, numbersOfValues...)
	errorsOfValues = []string{"overflow", "is not an integer", "is not a float", "is not a valid float", "can't be converted into double"}
)

// hiddenNumber and hiddenError stand for replies about a hidden value.
const (
	hiddenNumber = "(a number, hidden)"
	hiddenError  = "ERR (an error about the value, hidden)"
)

// scrub returns a reply without what was read in a value, where values are hidden. All of the reply goes: which of its parts are nil
// tells of the value too, as does an overflow.
func (c *Console) scrub(argv [][]byte, v resp.Value) resp.Value {
	spec := c.specOf(argv)
	switch {
	case !c.opt.HideValues || spec == nil:
	case v.Kind != resp.KindError:
		if slices.Contains(numbersOfValues, spec.Name) {
			return resp.Value{Kind: resp.KindStatus, Str: hiddenNumber}
		}
	case slices.Contains(readsValues, spec.Name):
		if slices.ContainsFunc(errorsOfValues, func(part string) bool { return strings.Contains(v.Str, part) }) {
			v.Str = hiddenError
		}
	}
	return v
}
