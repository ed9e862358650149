package console

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/redact"
	"github.com/ebbdb/ebb/resp"
)

// Where values are hidden (http-console-values no), two rules keep them so. A reply has the lengths of values instead of them. And the gate
// lets no request through whose reply or effect depends on the content of a value (command.Reveals): a viewer with enough of its answers
// has the value. What passes treats a value as a text of some length, so no sequence of such commands tells more than lengths.
//
// Keys, fields, members, ids, owners and scores are names, which are shown. So is how a key is stored: its encoding and its size may tell
// that a value is a number.

// valueOf returns a value, a payload or an argument in a reply for a page: cut to a preview, or its length alone where values
// are hidden.
func (c *Console) valueOf(v resp.Value) blob { return shownOf(v, c.opt.HideValues) }

// itemOf returns the item of a deadline, which is a name, but the element of a list is a value.
func (c *Console) itemOf(level string, name blob) blob {
	if l, known := engine.LevelNamed(level); c.opt.HideValues && (!known || l == engine.LevelElement) {
		return blob{s: name.s, n: max(name.n, len(name.s)), hidden: true}
	}
	return name
}

// replyJSON returns a reply for JavaScript, with its values hidden where values are.
func (c *Console) replyJSON(v resp.Value) any { return replyJSON(v, c.opt.HideValues) }

// hidesReply reports whether the reply to a request has values, and values are hidden. The replies of commands that
// look at the server are shown, except for those that have arguments of others, or the text of scripts.
func (c *Console) hidesReply(argv [][]byte) bool {
	if !c.opt.HideValues {
		return false
	}
	spec := c.specOf(argv)
	if spec == nil || spec.HasKeys() || spec.Flags&(command.ReadOnly|command.Scripts) != 0 {
		return true
	}
	return !isRead(spec, argv) || spec.Has(command.Quotes)
}

// secret reports whether a request has what the logs leave out, such as a password.
func (c *Console) secret(argv [][]byte) bool {
	spec, err := c.svc.Table().Find(argv)
	if err != nil {
		return false
	}
	shown := redact.Request(c.svc.Table(), spec, argv)
	return len(shown) > 0 && &shown[0] != &argv[0]
}

// tells reports whether the reply or the effect of a request depends on the content of a value: by the command's flags, or because it is
// meant for servers and tools, which look at data as they are stored.
func tells(spec *command.Spec, argv [][]byte) bool {
	if spec.FlagsOf(argv)&(command.Reveals|command.Scripts) != 0 {
		return true
	}
	container := spec.Parent()
	return container != nil && container.SysCmd || spec.SysCmd && spec.HasKeys()
}
