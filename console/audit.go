package console

import (
	"sync"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/resp"
)

// maxAudit is the number of entries that the console remembers, about 0.5 KB each.
const maxAudit = 1000

// auditRow is a write, or a call that was refused.
type auditRow struct {
	At      int64   `json:"at"` // ms
	User    blob    `json:"user"`
	Addr    string  `json:"addr"`
	DB      int     `json:"db"`
	Argv    []blob  `json:"argv"` // without passwords, shortened as in the slow log
	Result  string  `json:"result"`
	MS      float64 `json:"ms"`
	Refused bool    `json:"refused,omitempty"`
}

// auditLog is the latest entries.
type auditLog struct {
	mu   sync.Mutex // guards what follows
	rows []auditRow // a ring once it is full
	next int        // where the next one goes
}

func (l *auditLog) add(row auditRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rows) < maxAudit {
		l.rows = append(l.rows, row)
		return
	}
	l.rows[l.next] = row
	l.next = (l.next + 1) % maxAudit
}

// latest returns the entries, the latest first.
func (l *auditLog) latest() []auditRow {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]auditRow, 0, len(l.rows))
	for i := range l.rows {
		out = append(out, l.rows[(l.next+len(l.rows)-1-i)%len(l.rows)])
	}
	return out
}

// audit notes a call that has run if it may have written, or if it was refused.
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
	if refused || !onlyLooks(spec, argv) {
		k.note(spec, argv, result, us, refused)
	}
}

// summary returns what a reply was, without values.
func summary(v resp.Value) string {
	switch v.Kind {
	case resp.KindStatus, resp.KindInt, resp.KindBool:
		return admin.Clip(v.String(), admin.ClipBytes)
	case resp.KindNull, resp.KindNullArray, resp.KindNone:
		return "nil"
	}
	return v.Kind.String()
}

// note adds an entry, to the log of the server too.
func (k *call) note(spec *command.Spec, argv [][]byte, result string, us int64, refused bool) {
	c := k.c
	args := admin.ClipArgs(c.svc.Redacted(spec, argv))
	row := auditRow{At: c.now(), User: bytesOf(k.v.id.Name()), Addr: k.addr, DB: k.s.db, Argv: make([]blob, len(args)), Result: admin.Clip(result, 256),
		MS: float64(us) / 1000, Refused: refused}
	text := make([]byte, 0, 64)
	for i, a := range args {
		if row.Argv[i] = bytesOf(a); c.opt.HideValues && !named(spec, argv, i) {
			row.Argv[i] = blob{n: len(a), hidden: true}
			a = "(hidden)"
		}
		if i > 0 {
			text = append(text, ' ')
		}
		text = resp.AppendQuoted(text, a)
	}
	c.audits.add(row)
	c.log.Info("console", "audit", "console", "user", k.v.id.Name(), "addr", row.Addr, "db", row.DB, "command", string(text), "result", row.Result, "ms", row.MS,
		"refused", refused)
}

// named reports whether an argument is part of the command's name, or a key.
func named(spec *command.Spec, argv [][]byte, at int) bool {
	if at == 0 || at == 1 && spec.Parent() != nil {
		return true
	}
	keys, _ := spec.AppendKeys(nil, argv)
	for _, k := range keys {
		if k.Pos == at {
			return true
		}
	}
	return false
}

// getAudit answers GET api/audit for users who may run ACL LOG.
func getAudit(c *Console, q *request) (any, error) {
	if ok, need := q.v.id.May([][]byte{[]byte("ACL"), []byte("LOG")}); !ok {
		return nil, &failure{status: 403, Code: "NOPERM", Text: "the audit is for users who may run ACL LOG: the rule " + need + " allows it"}
	}
	return struct {
		Rows []auditRow `json:"rows"`
	}{c.audits.latest()}, nil
}
