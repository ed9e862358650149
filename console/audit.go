package console

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// maxAudit is the number of writes that the console remembers, and maxRefused that of refused calls, about 0.5 KB each.
const (
	maxAudit   = 1000
	maxRefused = 200
)

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

	seq int64
}

// auditLog holds the latest writes and, in a list of their own, so that they do not displace these, the latest refused calls.
type auditLog struct {
	mu      sync.Mutex // guards what follows
	seq     int64
	writes  auditRing
	refused auditRing
}

// auditRing is a ring once it is full.
type auditRing struct {
	rows []auditRow
	next int // where the next one goes
}

func (r *auditRing) add(row auditRow, most int) {
	if len(r.rows) < most {
		r.rows = append(r.rows, row)
		return
	}
	r.rows[r.next] = row
	r.next = (r.next + 1) % most
}

func (l *auditLog) add(row auditRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	row.seq = l.seq
	if row.Refused {
		l.refused.add(row, maxRefused)
	} else {
		l.writes.add(row, maxAudit)
	}
}

// latest returns the entries, the latest first.
func (l *auditLog) latest() []auditRow {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append(append([]auditRow{}, l.writes.rows...), l.refused.rows...) // an empty list is no null
	slices.SortFunc(out, func(a, b auditRow) int { return cmp.Compare(b.seq, a.seq) })
	return out
}

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
			return // endBatch tells their number
		}
	}
	if refused || !isRead(spec, argv) {
		k.addAudit(spec, argv, result, us, refused)
	}
}

// endBatch ends a batch: of its refused commands the audit has the first, and the number of the others.
func (k *call) endBatch() {
	if more := k.refused - 1; more > 0 {
		row := auditRow{At: k.c.now(), User: bytesOf(k.v.id.Name()), Addr: k.addr, DB: k.s.db, Refused: true,
			Argv: []blob{bytesOf("(batch)")}, Result: strconv.Itoa(more) + " more commands of the batch were refused"}
		k.c.audits.add(row)
		k.c.log.Info("console", "audit", "console", "user", k.v.id.Name(), "addr", row.Addr, "db", row.DB, "result", row.Result, "refused", true)
	}
	k.batch, k.refused = false, 0
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

// addAudit adds an entry to the audit and to the log of the server.
func (k *call) addAudit(spec *command.Spec, argv [][]byte, result string, us int64, refused bool) {
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
		text = wire.AppendQuoted(text, a)
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
	return slices.ContainsFunc(keys, func(k command.KeyRef) bool { return k.Pos == at })
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
