package console

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/redact"
	"github.com/ebbdb/ebb/resp"
)

// If values are hidden (http-console-values no), two rules keep them secret. First, a reply contains the
// lengths of values in their place. Second, the gate refuses every request whose reply or effect depends on
// the content of a value (command.Reveals): enough such replies would reveal the value. The remaining
// commands treat a value as a text of some length, so that no sequence of them reveals more than lengths.
//
// Keys, fields, members, ids, owners and scores are names, which are shown. So are a key's encoding and its
// size, which may reveal that a value is a number.

// valueOf returns a value, a payload or an argument in a reply for a page: cut to a preview, or only its
// length if values are hidden.
func (c *Console) valueOf(v resp.Value) blob { return shownOf(v, c.opt.HideValues) }

// itemOf returns the item of a deadline. An item is a name, except that the element of a list is a value.
func (c *Console) itemOf(level string, name blob) blob {
	if l, known := engine.LevelNamed(level); c.opt.HideValues && (!known || l == engine.LevelElement) {
		return blob{s: name.s, n: max(name.n, len(name.s)), hidden: true}
	}
	return name
}

// replyJSON returns a reply for JavaScript, without its values if they are hidden.
func (c *Console) replyJSON(v resp.Value) any { return replyJSON(v, c.opt.HideValues) }

// hidesReply reports whether the values in the reply to a request must be hidden. Replies of commands about
// the server are shown, except those that contain other clients' arguments, or the text of scripts.
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

// secret reports whether a request contains a password or another argument that logs omit.
func (c *Console) secret(argv [][]byte) bool {
	spec, err := c.svc.Table().Find(argv)
	if err != nil {
		return false
	}
	shown := redact.Request(c.svc.Table(), spec, argv)
	return len(shown) > 0 && &shown[0] != &argv[0]
}

// tells reports whether the reply or the effect of a request depends on the content of a value: by the
// command's flags, or because the command is for servers and tools, which read data in their stored form.
func tells(spec *command.Spec, argv [][]byte) bool {
	if spec.FlagsOf(argv)&(command.Reveals|command.Scripts) != 0 {
		return true
	}
	container := spec.Parent()
	return container != nil && container.SysCmd || spec.SysCmd && spec.HasKeys()
}
