package modeltest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// modelJob is a job as the model knows it.
type modelJob struct {
	id, payload         string
	due, expire         int64
	priority            uint8
	deliveries          int64
	leased              bool
	token, until, stamp int64
}

func (j *modelJob) event() int64 {
	switch {
	case j.leased:
		return j.until
	case j.expire != 0:
		return j.due + j.expire
	}
	return 0
}

// modelQueue is a delay queue as a map.
type modelQueue struct {
	jobs   map[string]*modelJob
	marks  map[string]int64
	config engine.QueueConfig
}

func newModelQueue() *modelQueue {
	return &modelQueue{jobs: map[string]*modelJob{}, marks: map[string]int64{}}
}

// waiting returns the jobs that wait, as they would be taken.
func (q *modelQueue) waiting(now int64) (all []*modelJob) {
	for _, j := range q.jobs {
		if !j.leased {
			all = append(all, j)
		}
	}
	slices.SortFunc(all, func(a, b *modelJob) int {
		if x, y := a.due <= now, b.due <= now; x != y {
			if x {
				return -1
			}
			return 1
		} else if x {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.due, b.due), cmp.Compare(a.stamp, b.stamp))
		}
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(b.priority, a.priority), cmp.Compare(a.stamp, b.stamp))
	})
	return all
}

// queueModel is an engine's delay queues beside maps. Where there are dead letters
// two jobs can become due in the same ms of two queues, in either order: the model
// does not know which, and asks no more than that the order of what differs is right.
type queueModel struct {
	db      *engine.DB
	clock   *clock.Manual
	replica *Replica
	queues  map[string]*modelQueue
	stamp   int64
	dead    bool // there are dead letters
	// expiring says that jobs may expire. A run with dead letters either has jobs that expire, or bounds their queue:
	// where both happen in one ms, their order decides whether a dead letter finds room.
	expiring bool
}

var (
	queueKeys = []string{"{q}", "{q}:dead", "x{q}"}
	queueIDs  = []string{"a", "b", "c", "d", "e", "f", "", "long-enough-to-be-seen"}
	payloads  = []string{"", "p", "payload", string(bytes.Repeat([]byte("P"), 20_000))}
)

func TestDelayQueuesLoseAndDuplicateNothing(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &queueModel{clock: clock.NewManual(time.UnixMilli(1_700_000_000_000)), queues: map[string]*modelQueue{}}
		m.db = engine.Open(engine.Options{Databases: 1, Shards: 4, Clock: m.clock, RecordEffects: true})
		defer m.db.Close()
		var err error
		if m.replica, err = NewReplica(); err != nil {
			t.Fatal(err)
		}
		defer m.replica.Close()
		m.dead = rapid.Bool().Draw(t, "dead letters")
		m.expiring = rapid.Bool().Draw(t, "expiring")
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"add":     m.add,
			"add2":    m.add,
			"pop":     m.pop,
			"pop2":    m.pop,
			"settle":  m.settle,
			"settle2": m.settle,
			"cancel":  m.cancel,
			"config":  m.config,
			"advance": m.advance,
			"move":    m.move,
			"copy":    m.copy,
			"restore": m.restore,
			"del":     m.del,
		})
	})
}

func (m *queueModel) now() int64 { return m.clock.Micros() / 1000 }

func (m *queueModel) do(f func(tx *engine.Tx)) {
	tx := m.db.BeginAll(0)
	defer tx.Commit()
	f(tx)
}

// of returns a queue, made if need be.
func (m *queueModel) of(key string) *modelQueue {
	if m.queues[key] == nil {
		m.queues[key] = newModelQueue()
	}
	return m.queues[key]
}

func (m *queueModel) nextStamp() int64 { m.stamp++; return m.stamp }

func drawQueue(t *rapid.T) string { return rapid.SampledFrom(queueKeys).Draw(t, "key") }

func (m *queueModel) add(t *rapid.T) {
	key := drawQueue(t)
	q, now := m.of(key), m.now()
	a := engine.QueueAdd{
		ID: []byte(rapid.SampledFrom(queueIDs).Draw(t, "id")), Payload: []byte(rapid.SampledFrom(payloads).Draw(t, "payload")),
		Due:      now + rapid.Int64Range(-10, 30).Draw(t, "delay"),
		Expire:   max(0, rapid.Int64Range(-20, 20).Draw(t, "expire")),
		Priority: uint8(max(0, rapid.IntRange(-9, 9).Draw(t, "priority"))),
		MaxLen:   rapid.SampledFrom([]int64{0, 0, 0, 3}).Draw(t, "maxlen"),
		Unique:   max(0, rapid.Int64Range(-30, 30).Draw(t, "unique")),
		Replace:  rapid.IntRange(0, 3).Draw(t, "replace") == 0,
	}
	if !m.expiring {
		a.Expire = 0
	}
	made := rapid.IntRange(0, 4).Draw(t, "made") == 0
	mark := "i" + string(a.ID)
	if made {
		a.ID, mark = nil, "p"+string(a.Payload)
	}
	limit := cmp.Or(a.MaxLen, q.config.MaxLen)
	old, there := q.jobs[string(a.ID)]
	replaced := a.Replace && !made && there && !old.leased
	suppressed := !replaced && (!made && there || a.Unique > 0 && q.marks[mark] >= now)
	full := !replaced && limit > 0 && int64(len(q.jobs)) >= limit
	m.do(func(tx *engine.Tx) {
		id, added, err := tx.QueueAdd([]byte(key), &a)
		switch {
		case suppressed:
			if added || err != nil {
				t.Fatalf("added %v, %v; it was to be suppressed", added, err)
			}
		case full:
			if err != engine.ErrQueueFull {
				t.Fatalf("added %v, %v; the queue was full", added, err)
			}
		case !added || err != nil || !made && !bytes.Equal(id, a.ID):
			t.Fatalf("added %q, %v, %v", id, added, err)
		default:
			q.jobs[string(id)] = &modelJob{id: string(id), payload: string(a.Payload), due: a.Due, expire: a.Expire,
				priority: a.Priority, stamp: m.nextStamp()}
			if a.Unique > 0 {
				q.marks[mark] = now + a.Unique
			}
		}
	})
	m.lapse() // the next look at the queue removes what had expired when it was added
}

func (m *queueModel) pop(t *rapid.T) {
	key := drawQueue(t)
	q, now := m.of(key), m.now()
	count, lease := rapid.IntRange(1, 4).Draw(t, "count"), rapid.Int64Range(1, 40).Draw(t, "lease")
	want := q.waiting(now)
	for i, j := range want {
		if j.due > now {
			want = want[:i]
			break
		}
	}
	want = want[:min(count, len(want))]
	if q.config.Paused(now) {
		want = nil
	}
	var got []engine.Job
	m.do(func(tx *engine.Tx) {
		_, err := tx.QueuePop([]byte(key), count, lease, func(j engine.Job) {
			x := j
			x.ID, x.Payload = bytes.Clone(j.ID), bytes.Clone(j.Payload)
			got = append(got, x)
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	if len(got) != len(want) {
		t.Fatalf("%d jobs, want %d", len(got), len(want))
	}
	last := int64(0)
	for i, g := range got {
		j := q.jobs[string(g.ID)]
		w := want[i]
		switch {
		case j == nil || j.leased:
			t.Fatalf("%q is not there, or another's", g.ID)
		case j.priority != w.priority || j.due != w.due || !m.dead && j != w:
			t.Fatalf("%q comes, it is %q's turn", g.ID, w.id)
		case string(g.Payload) != j.payload || g.Due != j.due || g.Deliveries != j.deliveries+1 || g.Token <= last:
			t.Fatalf("%+v, want %+v", g, *j)
		}
		last = g.Token
		j.leased, j.token, j.until = true, g.Token, now+lease
		j.deliveries++
	}
}

// settle acknowledges, rejects, extends or returns a job, with its token or
// another.
func (m *queueModel) settle(t *rapid.T) {
	key := drawQueue(t)
	q, now := m.of(key), m.now()
	var ids []string
	for id, j := range q.jobs {
		if j.leased || rapid.IntRange(0, 9).Draw(t, "wrong") == 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	slices.Sort(ids)
	j := q.jobs[rapid.SampledFrom(ids).Draw(t, "job")]
	token := j.token + max(0, rapid.Int64Range(-5, 1).Draw(t, "off"))
	want := j.leased && token == j.token
	what := rapid.SampledFrom([]string{"ack", "nack", "extend", "return"}).Draw(t, "what")
	ms := rapid.Int64Range(1, 40).Draw(t, "ms")
	m.do(func(tx *engine.Tx) {
		var ok bool
		var err error
		switch what {
		case "ack":
			ok, err = tx.QueueAck([]byte(key), []byte(j.id), token)
		case "nack":
			ok, err = tx.QueueNack([]byte(key), []byte(j.id), token, ms)
		case "extend":
			ok, err = tx.QueueExtend([]byte(key), []byte(j.id), token, ms)
		case "return":
			ok, err = tx.QueueReturn([]byte(key), []byte(j.id), token)
		}
		if ok != want || err != nil {
			t.Fatalf("%s: %v, %v, want %v", what, ok, err, want)
		}
	})
	if !want {
		return
	}
	switch what {
	case "ack":
		delete(q.jobs, j.id)
	case "nack":
		m.giveUp(key, j, now+ms, now)
	case "extend":
		j.until = now + ms
	case "return":
		j.leased, j.stamp = false, m.nextStamp()
		j.deliveries--
		m.lapse()
	}
}

// giveUp ends a job's lease at an instant.
func (m *queueModel) giveUp(key string, j *modelJob, due, now int64) {
	q := m.of(key)
	if limit := q.config.MaxDeliveries; limit > 0 && j.deliveries >= limit {
		if len(q.config.DeadLetter) == 0 {
			delete(q.jobs, j.id)
			return
		}
		dl := m.of(string(q.config.DeadLetter))
		if dl.config.MaxLen == 0 || int64(len(dl.jobs)) < dl.config.MaxLen {
			delete(q.jobs, j.id)
			id := j.id
			for n := now; dl.jobs[j.id] != nil; n++ {
				j.id = id + ":" + strconv.FormatInt(n, 10)
			}
			j.due, j.expire, j.leased, j.stamp = now, 0, false, m.nextStamp()
			dl.jobs[j.id] = j
			return
		}
	}
	j.due, j.leased, j.stamp = due, false, m.nextStamp()
}

// lapse does what time does, in its order.
func (m *queueModel) lapse() {
	for {
		var first *modelJob
		var where string
		for _, key := range queueKeys {
			for _, j := range m.of(key).jobs {
				if at := j.event(); at != 0 && at < m.now() && (first == nil || earlier(j, first)) {
					first, where = j, key
				}
			}
		}
		if first == nil {
			return
		}
		if first.leased {
			m.giveUp(where, first, first.until+1, first.until+1)
		} else {
			delete(m.of(where).jobs, first.id)
		}
	}
}

func earlier(a, b *modelJob) bool {
	return cmp.Or(cmp.Compare(a.event(), b.event()), cmp.Compare(a.token, b.token)) < 0
}

func (m *queueModel) cancel(t *rapid.T) {
	key := drawQueue(t)
	ids := rapid.SliceOfN(rapid.SampledFrom(queueIDs), 1, 3).Draw(t, "ids")
	want := 0
	var args [][]byte
	for _, id := range ids {
		if _, ok := m.of(key).jobs[id]; ok {
			want++
			delete(m.of(key).jobs, id)
		}
		args = append(args, []byte(id))
	}
	m.do(func(tx *engine.Tx) {
		if n, err := tx.QueueCancel([]byte(key), args); n != want || err != nil {
			t.Fatalf("cancelled %d, %v, want %d", n, err, want)
		}
	})
}

// move moves jobs by their ids, or the first ones.
func (m *queueModel) move(t *rapid.T) {
	from, to := drawQueue(t), drawQueue(t)
	delay := max(engine.KeepDue, rapid.Int64Range(-20, 20).Draw(t, "delay"))
	var ids [][]byte
	count, now := rapid.IntRange(1, 4).Draw(t, "count"), m.now()
	if rapid.Bool().Draw(t, "by id") || m.dead { // the model does not know the order of all dead letters
		for range count {
			ids = append(ids, []byte(rapid.SampledFrom(queueIDs).Draw(t, "id")))
		}
	}
	args := slices.Clone(ids)
	if ids == nil {
		for _, j := range m.of(from).waiting(now) {
			if len(ids) < count {
				ids = append(ids, []byte(j.id))
			}
		}
	}
	q, dst := m.of(from), m.of(to)
	want, full := 0, false
	if from != to {
		for _, id := range ids {
			j := q.jobs[string(id)]
			if j == nil || j.leased || dst.jobs[string(id)] != nil {
				continue
			}
			if full = dst.config.MaxLen > 0 && int64(len(dst.jobs)) >= dst.config.MaxLen; full {
				break
			}
			delete(q.jobs, j.id)
			if delay >= 0 {
				j.due = now + delay
			}
			j.deliveries, j.stamp = 0, m.nextStamp()
			dst.jobs[j.id] = j
			want++
		}
	}
	m.do(func(tx *engine.Tx) {
		n, err := tx.QueueMove([]byte(from), []byte(to), args, count, delay)
		switch {
		case from == to:
			if err != engine.ErrMove {
				t.Fatalf("moved %d, %v to the same key", n, err)
			}
		case full && want == 0:
			if n != 0 || err != engine.ErrQueueFull {
				t.Fatalf("moved %d, %v; the destination was full", n, err)
			}
		case n != want || err != nil:
			t.Fatalf("moved %d, %v, want %d", n, err, want)
		}
	})
	m.lapse()
}

func (m *queueModel) config(t *rapid.T) {
	key := drawQueue(t)
	c := engine.QueueConfig{MaxDeliveries: rapid.Int64Range(0, 3).Draw(t, "deliveries"),
		MaxLen: rapid.SampledFrom([]int64{0, 0, 5}).Draw(t, "maxlen")}
	if m.dead && key != "{q}:dead" && rapid.Bool().Draw(t, "dead") {
		c.DeadLetter = []byte("{q}:dead")
	}
	switch rapid.IntRange(0, 4).Draw(t, "pause") {
	case 0:
		c.PausedUntil = engine.PausedForGood
	case 1:
		c.PausedUntil = m.now() + rapid.Int64Range(1, 40).Draw(t, "for")
	}
	if m.dead && m.expiring {
		c.MaxLen = 0 // even where a copy becomes the queue of dead letters
	}
	m.of(key).config = c
	m.do(func(tx *engine.Tx) {
		if err := tx.QueueConfigure([]byte(key), c); err != nil {
			t.Fatal(err)
		}
	})
}

func (m *queueModel) advance(t *rapid.T) {
	m.clock.Advance(time.Duration(rapid.Int64Range(1, 30).Draw(t, "ms")) * time.Millisecond)
	m.lapse()
}

func (m *queueModel) copy(t *rapid.T) {
	from, to := drawQueue(t), drawQueue(t)
	if from == to || m.empty(from) || string(m.of(from).config.DeadLetter) == to {
		return
	}
	m.do(func(tx *engine.Tx) {
		if ok, err := tx.Copy([]byte(from), []byte(to), 0, true); !ok || err != nil {
			t.Fatal(ok, err)
		}
	})
	c := newModelQueue()
	for id, j := range m.of(from).jobs {
		x := *j
		c.jobs[id] = &x
	}
	for k, d := range m.of(from).marks {
		c.marks[k] = d
	}
	c.config = m.of(from).config
	m.queues[to] = c
}

// restore has a queue leave and enter again.
func (m *queueModel) restore(t *rapid.T) {
	key := drawQueue(t)
	m.do(func(tx *engine.Tx) {
		b, ok := tx.Dump(nil, []byte(key))
		if !ok {
			return
		}
		if err := tx.Restore([]byte(key), b, engine.RestoreOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
		if again, _ := tx.Dump(nil, []byte(key)); !bytes.Equal(again, b) {
			t.Fatalf("%q became %q", b, again)
		}
	})
}

func (m *queueModel) del(t *rapid.T) {
	key := drawQueue(t)
	there := !m.empty(key)
	delete(m.queues, key)
	m.do(func(tx *engine.Tx) {
		if tx.Del([]byte(key)) != there {
			t.Fatalf("%q was there: %v", key, !there)
		}
	})
}

// empty reports whether there is no such key.
func (m *queueModel) empty(key string) bool {
	q := m.of(key)
	for _, d := range q.marks {
		if d >= m.now() {
			return false
		}
	}
	return len(q.jobs) == 0 && q.config.IsZero(m.now())
}

func (m *queueModel) check(t *rapid.T) {
	m.do(func(tx *engine.Tx) {
		for _, key := range queueKeys {
			if tx.Exists([]byte(key)) == m.empty(key) {
				t.Fatalf("%q: exists is %v", key, m.empty(key))
			}
			m.compare(t, tx, key)
		}
	})
	if err := m.db.Check(); err != nil {
		t.Fatal(err)
	}
	if err := m.replica.Follow(m.db); err != nil {
		t.Fatal(err)
	}
}

// compare compares what waits, in its order, and the numbers.
func (m *queueModel) compare(t *rapid.T, tx *engine.Tx, key string) {
	q, now := m.of(key), m.now()
	want := q.waiting(now)
	i := 0
	err := tx.QueuePeek([]byte(key), engine.JobPage{Count: 1000}, func(j engine.Job) {
		if i >= len(want) {
			t.Fatalf("%q: more jobs wait than %d: %q due %d, now %d", key, len(want), j.ID, j.Due, now)
		}
		w := q.jobs[string(j.ID)]
		if w == nil || w.leased || w.payload != string(j.Payload) || w.deliveries != j.Deliveries || w.due != j.Due || w.expire != j.Expire ||
			want[i].due != j.Due || want[i].priority != j.Priority || !m.dead && want[i] != w {
			t.Fatalf("%q: %d: %+v comes, want %+v", key, i, j, *want[i])
		}
		i++
	})
	if err != nil || i != len(want) {
		t.Fatalf("%q: %d jobs wait, %v, want %d", key, i, err, len(want))
	}
	m.comparePages(t, tx, key)
	info, _, err := tx.QueueInfo([]byte(key))
	ready := 0
	for _, j := range want {
		if j.due <= now {
			ready++
		}
	}
	marks := 0
	for _, d := range q.marks {
		if d >= now {
			marks++
		}
	}
	if info.PausedUntil != 0 != q.config.Paused(now) || info.PausedUntil != 0 && info.PausedUntil != q.config.PausedUntil {
		t.Fatalf("%q: paused until %d at %d, want %d", key, info.PausedUntil, now, q.config.PausedUntil)
	}
	got := fmt.Sprint(info.Ready, info.Delayed, info.Leased, info.Unique, info.MaxLen, info.MaxDeliveries, string(info.DeadLetter))
	expect := fmt.Sprint(ready, len(want)-ready, len(q.jobs)-len(want), marks, q.config.MaxLen, q.config.MaxDeliveries,
		string(q.config.DeadLetter))
	if err != nil || got != expect {
		t.Fatalf("%q: ready, delayed, leased, unique, limits: %s, %v, want %s", key, got, err, expect)
	}
}

// comparePages reads the jobs of each state page by page, and compares them with one another and with the model.
func (m *queueModel) comparePages(t *rapid.T, tx *engine.Tx, key string) {
	q, now := m.of(key), m.now()
	pages := func(state engine.JobState) (ids []string) {
		for {
			p := engine.JobPage{State: state, Count: 2}
			if len(ids) > 0 {
				p.After = []byte(ids[len(ids)-1])
			}
			before := len(ids)
			if err := tx.QueuePeek([]byte(key), p, func(j engine.Job) { ids = append(ids, string(j.ID)) }); err != nil {
				t.Fatalf("%q: %v", key, err)
			}
			if len(ids) == before {
				return ids
			}
		}
	}
	ready, delayed, leased := pages(engine.JobsReady), pages(engine.JobsDelayed), pages(engine.JobsLeased)
	waiting, all := pages(engine.JobsWaiting), pages(engine.JobsAll)
	if got := slices.Concat(ready, delayed); !slices.Equal(got, waiting) {
		t.Fatalf("%q: ready and delayed %q, waiting %q", key, got, waiting)
	}
	if got := slices.Concat(waiting, leased); !slices.Equal(got, all) || len(all) != len(q.jobs) {
		t.Fatalf("%q: waiting and leased %q, all %q, want %d jobs", key, got, all, len(q.jobs))
	}
	last := int64(0)
	for i, id := range all {
		w := q.jobs[id]
		is := w != nil && (w.leased && i >= len(waiting) || !w.leased && (w.due <= now) == (i < len(ready)))
		j, ok, err := tx.QueueGet([]byte(key), []byte(id))
		if !is || !ok || err != nil || j.Leased != w.leased || j.Due != w.due || j.Deliveries != w.deliveries || j.Priority != w.priority ||
			w.leased && (j.Token != w.token || j.Until != w.until || j.Until < last) {
			t.Fatalf("%q: %d: job %+v, %v, %v, want %+v", key, i, j, ok, err, w)
		}
		if w.leased {
			last = w.until
		}
	}
	if _, ok, err := tx.QueueGet([]byte(key), []byte("no such job")); ok || err != nil {
		t.Fatal(ok, err)
	}
}

// TestAReplacedJobKeepsWhatItsQueueHasCounted replaces the only job of a queue that has counted an expired one. A
// replay must not delete the queue in between.
func TestAReplacedJobKeepsWhatItsQueueHasCounted(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	db := engine.Open(engine.Options{Databases: 1, Clock: clock, RecordEffects: true})
	defer db.Close()
	replica, err := NewReplica()
	if err != nil {
		t.Fatal(err)
	}
	defer replica.Close()
	now := clock.Micros() / 1000
	for _, a := range []engine.QueueAdd{
		{ID: []byte("job"), Due: now},
		{ID: []byte("expired"), Due: now - 2, Expire: 1},
		{ID: []byte("job"), Payload: []byte("new"), Due: now, Replace: true},
	} {
		tx := db.BeginAll(0)
		_, added, err := tx.QueueAdd([]byte("q"), &a)
		tx.Commit()
		if err != nil || !added {
			t.Fatalf("%s: added %v, %v", a.ID, added, err)
		}
		if err := replica.Follow(db); err != nil {
			t.Fatal(err)
		}
	}
	tx := db.BeginAll(0)
	defer tx.Commit()
	info, _, err := tx.QueueInfo([]byte("q"))
	if err != nil || info.Expired != 1 {
		t.Errorf("%d expired, %v, want 1", info.Expired, err)
	}
}
