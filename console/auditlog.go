package console

import (
	"cmp"
	"slices"
	"sync"
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

// auditLog holds the latest writes and the latest refused calls, in separate lists, so that refused calls do
// not displace writes.
type auditLog struct {
	mu      sync.Mutex // guards both rings
	seq     int64
	writes  auditRing
	refused auditRing
}

// auditRing is a slice that becomes a ring once it is full.
type auditRing struct {
	rows []auditRow
	next int // the index of the next row
}

func (r *auditRing) add(row auditRow, limit int) {
	if len(r.rows) < limit {
		r.rows = append(r.rows, row)
		return
	}
	r.rows[r.next] = row
	r.next = (r.next + 1) % limit
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
	out := append(append([]auditRow{}, l.writes.rows...), l.refused.rows...) // an empty list is not null
	slices.SortFunc(out, func(a, b auditRow) int { return cmp.Compare(b.seq, a.seq) })
	return out
}
