package console

import (
	"errors"
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/resp"
)

// queueRow is a delay queue. Times are in ms.
type queueRow struct {
	K       blob   `json:"k"`
	Delayed int64  `json:"delayed"`
	Ready   int64  `json:"ready"`
	Leased  int64  `json:"leased"`
	Dead    int64  `json:"dead"`    // the number of dead letters since the queue was made
	Letters *int64 `json:"letters"` // the number of dead letters now; null: the queue keeps none, or the user may not see them
	Dropped int64  `json:"dropped"`
	Next    *int64 `json:"next"` // ms since 1970 at which the next delayed job is due
	Late    int64  `json:"late"` // of the longest-ready job
	Waiting int    `json:"waiting"`
	MaxLen  int64  `json:"maxLen"`
	Most    int64  `json:"most"`   // the limit of deliveries of a job; 0: none
	To      *blob  `json:"to"`     // the queue of dead letters
	Stream  *blob  `json:"stream"` // the stream that the queue delivers to; null: workers

	Paused    bool   `json:"paused"`
	Until     *int64 `json:"until"` // the last ms of the pause, null: it has no end
	Schedules int64  `json:"schedules"`
	Wrong     string `json:"wrong,omitempty"` // the reason why the queue cannot deliver to Stream

	Unattended bool `json:"unattended"` // jobs wait, and no worker has one or requests one
	letterBox  bool // it holds the dead letters of another queue in the list, which wait for no worker
}

// queueColumns are the columns by which queues are sorted.
var queueColumns = map[string]func(*queueRow) float64{
	"delayed": func(r *queueRow) float64 { return float64(r.Delayed) }, "ready": func(r *queueRow) float64 { return float64(r.Ready) },
	"leased": func(r *queueRow) float64 { return float64(r.Leased) }, "late": func(r *queueRow) float64 {
		if r.letterBox {
			return -1
		}
		return float64(r.Late)
	},
	"waiting": func(r *queueRow) float64 { return float64(r.Waiting) }, "dropped": func(r *queueRow) float64 { return float64(r.Dropped) },
	"next": func(r *queueRow) float64 {
		if r.Next == nil {
			return math.Inf(1)
		}
		return float64(*r.Next)
	},
	"dead": func(r *queueRow) float64 {
		if r.Letters == nil {
			return -1
		}
		return float64(*r.Letters)
	},
}

// getQueues answers GET api/queues?db&match&sort.
func getQueues(k *call, q *request) (any, error) {
	return k.queues(q, q.text("match"), q.text("sort"), k.c.now())
}

// queues returns delay queues.
func (k *call) queues(q *request, match, sort string, now int64) (any, error) {
	keys, more, err := k.keysOf(q, "delayqueue", match)
	if err != nil {
		return nil, err
	}
	out := struct {
		Now int64 `json:"now"`
		*ranked[queueRow]
		Denied []string `json:"denied,omitempty"`
	}{now, rank[queueRow](more), nil}
	out.add(k, keys, func(key string) *queueRow {
		row, _ := k.queueRow(q, key) // nil after an error
		return row
	})
	markLetterBoxes(out.Rows)
	k.allLetters(q, out.Rows)
	out.first(sort, queueColumns)
	out.Denied = k.denied
	return out, nil
}

// markLetterBoxes marks the queues of dead letters among the others: no worker has to take their jobs.
func markLetterBoxes(rows []queueRow) {
	boxes := map[string]bool{}
	for i := range rows {
		if to := rows[i].To; to != nil {
			boxes[to.s] = true
		}
	}
	for i := range rows {
		if r := &rows[i]; boxes[r.K.s] {
			r.letterBox, r.Unattended = true, false
		}
	}
}

// allLetters counts the dead letters of all queues in a list. Most queues of dead letters are in the list
// themselves.
func (k *call) allLetters(q *request, rows []queueRow) {
	jobs := make(map[string]int64, len(rows))
	for i := range rows {
		jobs[rows[i].K.s] = rows[i].Ready + rows[i].Delayed + rows[i].Leased
	}
	for i := range rows {
		if r := &rows[i]; r.To != nil {
			if n, ok := jobs[r.To.s]; ok {
				r.Letters = &n
				continue
			}
			k.letters(q, r)
		}
	}
}

// letters counts the dead letters of a queue.
func (k *call) letters(q *request, row *queueRow) {
	if row.To == nil {
		return
	}
	n := int64(0)
	to, err := k.queueRow(q, row.To.s)
	if to != nil {
		n = to.Ready + to.Delayed + to.Leased
	}
	if err == nil {
		row.Letters = &n
	}
}

// queueRow reads a queue; it returns nil if there is none.
func (k *call) queueRow(q *request, key string) (*queueRow, error) {
	v, err := k.do(q.ctx, "DQ.INFO", key)
	if err != nil || v.IsNull() {
		return nil, err
	}
	row := &queueRow{K: wholeOf(key), Delayed: member(v, "delayed").Int, Ready: member(v, "ready").Int, Leased: member(v, "leased").Int,
		Dead: member(v, "dead-letters").Int, Dropped: member(v, "dropped").Int, Late: member(v, "lateness").Int,
		Waiting: len(member(v, "line").Elems), MaxLen: member(v, "max-len").Int, Most: member(v, "max-deliveries").Int,
		Paused: member(v, "paused").Int == 1, Schedules: member(v, "schedules").Int,
		Wrong: member(v, "deliver-error").Str}
	if until := member(v, "paused-until"); until.Kind == resp.KindInt {
		row.Until = &until.Int
	}
	if next := member(v, "next-due"); next.Kind == resp.KindInt {
		row.Next = &next.Int
	}
	if s := member(v, "deliver").Str; s != "" {
		b := bytesOf(s)
		row.Stream = &b
	}
	if to := member(v, "dead-letter"); to.Str != "" {
		b := nameOf(to)
		row.To = &b
	}
	row.Unattended = row.Ready > 0 && row.Leased == 0 && row.Waiting == 0 && row.Late >= unattendedMS && !row.Paused && row.Stream == nil
	return row, nil
}

// jobRow is a job of a delay queue. Times are in ms since 1970.
type jobRow struct {
	ID         blob   `json:"id"`
	Payload    blob   `json:"payload"`
	Deliveries int64  `json:"deliveries"`
	State      string `json:"state"`
	Due        int64  `json:"due"`
	Token      string `json:"token,omitempty"` // of a leased job
	Until      int64  `json:"until,omitempty"` // the end of its lease
}

// scheduleRow is a schedule of a delay queue. Times are in ms since 1970.
type scheduleRow struct {
	Name    blob   `json:"name"`
	Rule    string `json:"rule"`
	Zone    string `json:"zone"`
	Next    int64  `json:"next"`
	Last    *int64 `json:"last"` // null: no occurrence has become a job
	Runs    int64  `json:"runs"`
	Skipped int64  `json:"skipped"`
	Late    int64  `json:"late"`
}

// schedulesOf reads the schedules of a queue.
func (k *call) schedulesOf(q *request, key string) ([]scheduleRow, error) {
	v, err := k.do(q.ctx, "DQ.SCHEDULES", key)
	if err != nil && err != errNotAllowed {
		return nil, err
	}
	rows := []scheduleRow{}
	for _, e := range v.Elems {
		s := scheduleRow{Name: nameOf(member(e, "name")), Rule: member(e, "rule").Str, Zone: member(e, "zone").Str, Next: member(e, "next").Int,
			Runs: member(e, "runs").Int, Skipped: member(e, "skipped").Int, Late: member(e, "late").Int}
		if last := member(e, "last"); last.Kind == resp.KindInt {
			s.Last = &last.Int
		}
		rows = append(rows, s)
	}
	return rows, nil
}

// sharers returns the other queues whose dead letters go to the same queue as those of row. Only queues with
// the same hash tag can. sure is false if there was no time to examine all queues.
func (k *call) sharers(q *request, row *queueRow) (others []blob, sure bool, err error) {
	others = []blob{}
	if row == nil || row.To == nil {
		return others, true, nil
	}
	cursor, until, tag := "0", k.c.clock.Micros()+pageTime.Microseconds(), tagOf(row.To.s)
	for {
		v, err := k.do(q.ctx, "SCAN", cursor, "COUNT", scanCount, "TYPE", "delayqueue")
		if err != nil {
			return others, false, err
		}
		for _, e := range v.Elems[1].Elems {
			if tagOf(e.Str) != tag || e.Str == row.K.s {
				continue
			}
			if other, err := k.queueRow(q, e.Str); err == nil && other != nil && other.To != nil && other.To.s == row.To.s {
				others = append(others, other.K)
			}
		}
		cursor = v.Elems[0].Str
		if cursor == "0" || k.c.clock.Micros() > until {
			return others, cursor == "0" && !k.truncated, nil
		}
	}
}

// tagOf returns the part of a key that determines its hash slot.
func tagOf(key string) string {
	_, rest, found := strings.Cut(key, "{")
	if tag, _, closed := strings.Cut(rest, "}"); found && closed && tag != "" {
		return tag
	}
	return key
}

// queueAnswer is the response of GET api/queue.
type queueAnswer struct {
	Now    int64     `json:"now"`
	Row    *queueRow `json:"row"` // null: there is no such queue
	Jobs   []jobRow  `json:"jobs"`
	More   bool      `json:"more"`
	Denied []string  `json:"denied,omitempty"`

	Schedules []scheduleRow `json:"schedules"`
	Sharing   []blob        `json:"sharing,omitempty"`
	Unsure    bool          `json:"unsure,omitempty"` // there may be further sharers
}

// jobRange is the part of a queue that a request shows: at most limit jobs in a state, behind the job from;
// or only the job id. An id may be empty; nil means that the request names no job.
type jobRange struct {
	state    string
	from, id *string
	limit    int64
}

// jobRange reads the parameters state, from, id and limit.
func (q *request) jobRange() (p jobRange, err error) {
	if p.state, err = q.word("state", "all", "ready", "delayed", "leased"); err != nil {
		return p, err
	}
	if p.limit, err = q.number("limit", 100, 1, 1000); err != nil {
		return p, err
	}
	for name, id := range map[string]**string{"from": &p.from, "id": &p.id} {
		if q.has(name) {
			text, err := q.key(name)
			if err != nil {
				return p, err
			}
			*id = &text
		}
	}
	return p, nil
}

// getQueue answers GET api/queue?db&k&state&from&limit&sharing: one queue, with a page of its jobs and, for
// state all, its schedules. from is the id of the job behind which the page begins, encoded as k is. With id
// instead of state, the page has only that job, in any state. With sharing, the answer names the other queues
// that have the same queue of dead letters.
func getQueue(k *call, q *request) (any, error) {
	key, err := q.key("k")
	if err != nil {
		return nil, err
	}
	p, err := q.jobRange()
	if err != nil {
		return nil, err
	}
	out := &queueAnswer{Jobs: []jobRow{}, Schedules: []scheduleRow{}}
	if out.Row, err = k.queueRow(q, key); err != nil {
		return nil, err
	}
	if row := out.Row; row != nil {
		k.letters(q, row)
		p.limit = pageOf(p.limit, row.Delayed+row.Ready+row.Leased, k.usage(q, key))
	}
	out.Now = k.c.now()
	if q.text("sharing") != "" {
		var sure bool
		if out.Sharing, sure, err = k.sharers(q, out.Row); err != nil && err != errNotAllowed {
			return nil, err
		}
		out.Unsure = !sure
	}
	if out.Row != nil && out.Row.Schedules > 0 && p.state == "all" {
		if out.Schedules, err = k.schedulesOf(q, key); err != nil {
			return nil, err
		}
	}
	if p.id != nil {
		out.Jobs, err = k.job(q, key, *p.id)
	} else {
		out.Jobs, out.More, err = k.jobs(q, key, p)
	}
	if err != nil && err != errNotAllowed { // the screen shows the queue without jobs
		return nil, err
	}
	out.Denied = k.denied
	return out, nil
}

// jobs returns a page of jobs, and whether there are more. It returns none if the job from no longer exists:
// the screen then starts at the first page.
func (k *call) jobs(q *request, key string, p jobRange) (rows []jobRow, more bool, err error) {
	args := []any{"DQ.PEEK", key, "STATE", p.state, "COUNT", p.limit + 1}
	if p.from != nil {
		args = append(args, "FROM", *p.from)
	}
	rows = []jobRow{}
	v, err := k.do(q.ctx, args...)
	var gone resp.ReplyError
	switch {
	case errors.As(err, &gone) && strings.HasSuffix(gone.Error(), engine.ErrNoJob.Error()):
		return rows, false, nil
	case err != nil:
		return rows, false, err
	}
	for i, e := range v.Elems {
		if int64(i) == p.limit {
			return rows, true, nil
		}
		x := e.Elems
		job := jobRow{ID: nameOf(x[0]), Payload: k.c.valueOf(x[1]), Deliveries: x[2].Int, State: x[3].Str, Due: x[4].Int}
		if len(x) > 5 {
			job.Token, job.Until = text64(x[5].Int), x[6].Int
		}
		rows = append(rows, job)
	}
	return rows, false, nil
}

// job returns the job with an id, or none if the queue has no such job.
func (k *call) job(q *request, key, id string) ([]jobRow, error) {
	v, err := k.do(q.ctx, "DQ.GET", key, id)
	if err != nil || v.IsNull() {
		return []jobRow{}, err
	}
	row := jobRow{ID: nameOf(member(v, "id")), Payload: k.c.valueOf(member(v, "payload")), Deliveries: member(v, "deliveries").Int,
		State: member(v, "state").Str, Due: member(v, "due").Int}
	if row.State == "leased" {
		row.Token, row.Until = text64(member(v, "token").Int), member(v, "until").Int
	}
	return []jobRow{row}, nil
}
