package console

import (
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/redact"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// audit records a call if it may have written, or was refused.
func (k *call) audit(argv [][]byte, v resp.Value, err error, us int64) {
	spec := k.c.specOf(argv)
	if spec == nil {
		return
	}
	result, refused := "", false
	switch {
	case err != nil:
		result, refused = err.Error(), true
	case v.Kind == resp.KindError:
		code := resp.ReplyError(v.Str).Code()
		result, refused = v.Str, code == "NOPERM" || code == "READONLY"
	default:
		result = summary(v)
	}
	if refused && k.batch {
		if k.refused++; k.refused > 1 {
			return // endBatch records their number
		}
	}
	if refused || !isRead(spec, argv) {
		k.addAudit(spec, argv, result, us, refused)
	}
}

// endBatch ends a batch. The audit records the first of its refused commands, and the number of the others.
func (k *call) endBatch() {
	if more := k.refused - 1; more > 0 {
		row := auditRow{At: k.c.now(), User: bytesOf(k.v.id.Name()), Addr: k.addr, DB: k.s.db, Refused: true,
			Argv: []blob{bytesOf("(batch)")}, Result: strconv.Itoa(more) + " more commands of the batch were refused"}
		k.c.audits.add(row)
		k.c.log.Info("console", "audit", "console", "user", logged(k.v.id.Name()), "addr", row.Addr, "db", row.DB,
			"result", row.Result, "refused", true)
	}
	k.batch, k.refused = false, 0
}

// logged returns a text that a client or a script chose, in the form for the audit and the log.
func logged(text string) string { return cleantext.Line(text, maxLogged) }

// maxLogged is the greatest number of bytes of such a text: the name of a user, or a result of at most 256
// bytes and a remark.
const maxLogged = 512

// summary describes a reply without its values.
func summary(v resp.Value) string {
	switch v.Kind {
	case resp.KindStatus, resp.KindInt, resp.KindBool:
		return admin.Clip(v.String(), admin.ClipBytes)
	case resp.KindNull, resp.KindNullArray, resp.KindNone:
		return "nil"
	}
	return v.Kind.String()
}

// addAudit adds an entry to the audit and to the log of the server.
func (k *call) addAudit(spec *command.Spec, argv [][]byte, result string, us int64, refused bool) {
	c := k.c
	args := admin.ClipArgs(redact.Request(c.svc.Table(), spec, argv))
	row := auditRow{At: c.now(), User: bytesOf(k.v.id.Name()), Addr: k.addr, DB: k.s.db, Argv: make([]blob, len(args)),
		Result: logged(admin.Clip(result, 256)), MS: float64(us) / 1000, Refused: refused}
	text := make([]byte, 0, 64)
	for i, a := range args {
		if row.Argv[i] = bytesOf(a); c.opt.HideValues && !named(spec, argv, i) {
			row.Argv[i] = blob{n: len(a), hidden: true}
			a = "(hidden)"
		}
		if i > 0 {
			text = append(text, ' ')
		}
		text = wire.AppendQuoted(text, a)
	}
	c.audits.add(row)
	c.log.Info("console", "audit", "console", "user", logged(k.v.id.Name()), "addr", row.Addr, "db", row.DB,
		"command", string(text), "result", row.Result, "ms", row.MS, "refused", refused)
}

// named reports whether an argument is part of the command's name, or a key.
func named(spec *command.Spec, argv [][]byte, at int) bool {
	if at == 0 || at == 1 && spec.Parent() != nil {
		return true
	}
	keys, _ := spec.AppendKeys(nil, argv)
	return slices.ContainsFunc(keys, func(k command.KeyRef) bool { return k.Pos == at })
}
