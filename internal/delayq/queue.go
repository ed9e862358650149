// Package delayq implements a delay queue: jobs that a worker can take from a certain millisecond
// on, each with a lease.
//
//	jobs    dict.Dict    id -> [state, due, stamp, deliveries][payload]
//	                      ^
//	due     btree.Tree   the waiting jobs, by (priority, due, stamp): 12 bytes
//	                      |  due <= now: ready, else delayed
//	events  btree.Tree   timed events, by instant: the ends of leases,
//	                        and the expirations of waiting jobs
//	marks   dict.Dict    ids and payloads not to be added again until a deadline
//	timed   schedules    rules that add jobs by themselves
//
// A job costs its id and payload and about 50 bytes.
//
// A delayed job becomes ready without a call, when its due instant comes. So a million jobs that
// fall due together cost nothing, and Next finds them at once. The owner watches for due jobs only
// to wake the clients that wait (NextDue, Awake).
//
// Invariants: a job either waits, and is in due, or is leased; leased jobs and waiting jobs that
// expire are in events; no two entries of a tree are equal; no id that is a number is above number.
//
// Time is an argument. The package has no locks: the owner holds the shard's lock. Start reading at
// Queue.Add.
package delayq

import (
	"hash/maphash"
	"unsafe"

	"github.com/ebbdb/ebb/internal/chunk"
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/ordered/btree"
)

// ErrNoMemory: the Memory has no chunk left. The operation that returns it has changed nothing.
var ErrNoMemory = chunk.ErrNoMemory

// Config is the configuration of a queue. The zero Config sets no limits.
type Config struct {
	MaxDeliveries int64  // the greatest number of deliveries of a job; 0: no limit
	DeadLetter    []byte // the queue for jobs after that number of deliveries; empty: the queue drops them
	MaxLen        int64  // the greatest number of jobs in the queue; 0: no limit
	PausedUntil   int64  // the last ms of a pause, in which workers get no job; 0: none; MaxTime: it has no end
	Deliver       []byte // the stream to which the owner delivers due jobs, in place of workers; empty: none
}

// Paused reports whether the queue is paused at now.
func (c *Config) Paused(now int64) bool { return c.PausedUntil != 0 && now <= c.PausedUntil }

// IsZero reports whether no option is set at now.
func (c *Config) IsZero(now int64) bool {
	return c.MaxDeliveries == 0 && len(c.DeadLetter) == 0 && c.MaxLen == 0 && len(c.Deliver) == 0 && !c.Paused(now)
}

// Totals count the jobs that left the queue without being acknowledged or cancelled.
type Totals struct {
	Dead    int64 // moved to the dead-letter queue
	Dropped int64 // delivered too often, without a dead-letter queue
	Expired int64 // not taken in time
}

// Queue is a delay queue. New returns one. It is not safe for concurrent use.
type Queue struct {
	Config
	Totals

	jobs   *dict.Dict
	due    *btree.Tree
	events *btree.Tree
	marks  *dict.Dict // nil until there is a mark
	timed  *schedules // nil while there is no schedule

	memory  chunk.Memory
	seed    maphash.Seed
	waiting [Priorities]uint32 // jobs in due
	stamp   int64              // the last stamp of a waiting job
	number  int64              // the greatest of the ids so far that are numbers
	wake    int64              // when now is greater, a job may have become due; 0: never
	retry   int64              // memory is used up: do not try again before this instant
	held    int64              // the stream takes no job: do not try again before this instant
	frozen  *chunk.Loan        // in a frozen copy: the loan that Free settles
}

// New returns an empty queue on m whose ids are hashed with seed. It allocates no
// chunk.
func New(m chunk.Memory, seed maphash.Seed) *Queue {
	q := &Queue{memory: m, seed: seed}
	q.jobs = dict.New(dict.Config{Memory: m, Seed: seed, ValueSize: dict.Variable, Moved: q.moved})
	q.due = btree.New(m, (*byDue)(q), true)
	q.events = btree.New(m, (*byEvent)(q), true)
	return q
}

// Len returns the number of jobs, whatever their state. O(1).
func (q *Queue) Len() int { return q.jobs.Count() }

// Leased returns the number of leased jobs. It includes jobs whose lease is over until the owner
// handles them. O(1).
func (q *Queue) Leased() int { return q.jobs.Count() - q.due.Len() }

// Ready returns the number of jobs that a worker can take. It includes expired jobs until the owner
// removes them. O(log n).
func (q *Queue) Ready(now int64) (n int) {
	for p := range uint8(Priorities) {
		if q.waiting[p] > 0 {
			n += q.due.Rank(after(p, now)) - q.due.Rank(before(p, 0))
		}
	}
	return n
}

// Empty reports whether the queue has no job, no configuration, no mark and no schedule.
func (q *Queue) Empty(now int64) bool {
	return q.Len() == 0 && q.Config.IsZero(now) && q.Marks(now) == 0 && q.timed == nil
}

// Find returns the job with an id. O(1).
func (q *Queue) Find(id []byte) (ref uint32, ok bool) { return q.jobs.Find(id) }

// Passed reports whether n is not above all numbers that have been ids. If it is above them, Find would find no job with the id n.
// Ids that are made of increasing numbers so need no Find. O(1).
func (q *Queue) Passed(n int64) bool { return n <= q.number }

// Job returns a job. O(1).
func (q *Queue) Job(ref uint32) Job {
	it := q.jobs.Item(ref)
	return read(it.Key, it.Value)
}

// Add stores a job under an id that the queue does not have. The job is leased, or it waits after
// the jobs of its priority that are due in the same ms. Id and payload must not lie in the queue's
// own memory. Expected O(log n). Errors: ErrNoMemory.
func (q *Queue) Add(j *Job, now int64) error {
	if !q.due.Reserve() || !q.events.Reserve() {
		return ErrNoMemory
	}
	ref, err := q.jobs.AddRoom(j.ID, sizeOf(j))
	if err != nil {
		return err
	}
	stamp := j.Token
	if !j.Leased {
		stamp = q.nextStamp()
	}
	write(q.jobs.Edit(ref), j, stamp)
	q.enter(ref, now)
	if n, ok := numeral.ParseInt(j.ID); ok {
		q.number = max(q.number, n)
	}
	return nil
}

// Remove removes a job, whatever its state. O(log n).
func (q *Queue) Remove(ref uint32) {
	q.leave(ref)
	q.jobs.Remove(ref)
}

// Next returns the job that a worker gets next: of the due jobs those with the highest priority,
// and of these the one that was due first. It may have expired. O(log n).
func (q *Queue) Next(now int64) (ref uint32, ok bool) {
	for p := Priorities - 1; p >= 0; p-- {
		if q.waiting[p] == 0 {
			continue
		}
		if c := q.due.From(before(uint8(p), 0)); c.OK() {
			if key, ref := c.Entry(); dueOf(key) <= now {
				return ref, true
			}
		}
	}
	return 0, false
}

// Take leases a waiting job and counts the delivery. O(log n). Errors: ErrNoMemory.
func (q *Queue) Take(ref uint32, token, until int64) error {
	if !q.events.Reserve() {
		return ErrNoMemory
	}
	q.leave(ref)
	b := q.jobs.Edit(ref)
	b[0] |= flagLeased
	put56(b[offStamp:], token)
	put48(b[offUntil:], min(until, MaxTime))
	q.deliveries(b, 1)
	q.enter(ref, 0)
	return nil
}

// Release ends a job's lease. The job waits again, and is due at an instant in ms. O(log n).
// Errors: ErrNoMemory.
func (q *Queue) Release(ref uint32, due, now int64) error {
	if !q.CanRelease() {
		return ErrNoMemory
	}
	q.leave(ref)
	b := q.jobs.Edit(ref)
	b[0] &^= flagLeased
	put48(b[offDue:], min(due, MaxTime))
	put56(b[offStamp:], q.nextStamp())
	q.enter(ref, now)
	return nil
}

// CanRelease reserves memory so that the next Release succeeds, and reports whether it could.
func (q *Queue) CanRelease() bool { return q.due.Reserve() && q.events.Reserve() }

// Undeliver does the work of Release for a job that did not reach its worker: the delivery does not
// count, and the job is due at the same instant as before. O(log n). Errors: ErrNoMemory.
func (q *Queue) Undeliver(ref uint32, now int64) error {
	if err := q.Release(ref, q.Job(ref).Due, now); err != nil {
		return err
	}
	q.deliveries(q.jobs.Edit(ref), -1)
	return nil
}

// Extend changes the end of a job's lease, in ms since 1970. O(log n). Errors: ErrNoMemory.
func (q *Queue) Extend(ref uint32, until int64) error {
	if !q.events.Reserve() {
		return ErrNoMemory
	}
	q.leave(ref)
	put48(q.jobs.Edit(ref)[offUntil:], min(until, MaxTime))
	q.enter(ref, 0)
	return nil
}

// deliveries adds to a job's count of deliveries, which saturates.
func (q *Queue) deliveries(b []byte, n int64) {
	j := read(nil, b)
	j.Deliveries = min(max(j.Deliveries+n, 0), MaxDeliveries)
	b[offDeliveries], b[offDeliveries+1] = byte(j.Deliveries), byte(j.Deliveries>>8)
}

func (q *Queue) nextStamp() int64 {
	q.stamp++
	return q.stamp
}

// enter adds a job to the trees of its state. The caller has reserved the memory.
func (q *Queue) enter(ref uint32, now int64) {
	j := q.Job(ref)
	if !j.Leased {
		mustInsert(q.due, (*byDue)(q).Probe(ref), ref)
		q.waiting[j.Priority]++
		if at := max(j.Due-1, 1); j.Due > now && (q.wake == 0 || at < q.wake) {
			q.wake = at
		}
	}
	if j.event() != 0 {
		mustInsert(q.events, (*byEvent)(q).Probe(ref), ref)
	}
}

func mustInsert(t *btree.Tree, p btree.Probe, ref uint32) {
	if err := t.Insert(p, ref); err != nil {
		panic("delayq: no memory for an entry in spite of its reservation")
	}
}

// leave removes a job from the trees of its state.
func (q *Queue) leave(ref uint32) {
	j := q.Job(ref)
	if !j.Leased {
		q.due.Delete((*byDue)(q).Probe(ref), ref)
		q.waiting[j.Priority]--
	}
	if j.event() != 0 {
		q.events.Delete((*byEvent)(q).Probe(ref), ref)
	}
}

// moved updates the entries of a job that has got another reference.
func (q *Queue) moved(old, new uint32) bool {
	j := q.Job(old)
	if !j.Leased {
		q.due.Replace((*byDue)(q).Probe(old), new)
	}
	if j.event() != 0 {
		q.events.Replace((*byEvent)(q).Probe(old), new)
	}
	return true
}

// Size returns the bytes that the queue holds: chunks, jobs outside of them, and bookkeeping.
func (q *Queue) Size() int {
	n := q.jobs.Size() + q.due.Size() + q.events.Size() + int(unsafe.Sizeof(*q)) + len(q.DeadLetter) + len(q.Deliver)
	if q.marks != nil {
		n += q.marks.Size()
	}
	if q.timed != nil {
		n += q.timed.size
	}
	return n
}

// Free frees up to budget chunks and reports whether it has freed all. All jobs are invalid after
// the first call. O(budget).
func (q *Queue) Free(budget int) (done bool) {
	if q.frozen != nil {
		return q.frozen.Settle(q.memory, budget) < budget
	}
	n := q.due.FreeAll(budget)
	n += q.events.FreeAll(budget - n)
	if n == budget || q.marks != nil && !q.marks.Free(budget-n) {
		return false
	}
	return q.jobs.Free(budget - n)
}

// Wasteful reports whether Compact pays; see dict.Dict.Wasteful.
func (q *Queue) Wasteful() bool { return q.jobs.Wasteful() }

// Compact moves jobs together. It looks at up to budget jobs; see dict.Dict.Compact. O(log n) per
// job.
func (q *Queue) Compact(budget int) (looked int) { return q.jobs.Compact(budget) }
