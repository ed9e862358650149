package grouptest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/spans"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

const (
	journals = 3 // clients that write to a list and a counter
	writers  = 3 // clients of registers
	// callTime is the limit of a toolkit call.
	callTime = 3 * time.Second
	// grantsPerSecond is the rate of the limiter.
	grantsPerSecond = 20
)

// writes sends a write. It returns an error unless the command was acknowledged; a write that was not replicated is
// such an error.
type writes func(ctx context.Context, c *redis.Client, args ...any) (any, error)

// plainly writes to a group, where each reply is an acknowledgement.
func plainly(ctx context.Context, c *redis.Client, args ...any) (any, error) {
	return c.Do(ctx, args...).Result()
}

// crowd is the clients of one group, of all kinds. It records what was acknowledged.
type crowd struct {
	write  writes
	raw    []*redis.Client
	conn   *ebb.Conn
	lock   *lock.Lock
	limit  *limit.Limiter
	queue  *queue.Queue[string]
	began  time.Time
	pushed int // the number of jobs so far, which names them

	*tally
}

// tally holds the results of a round.
type tally struct {
	acked, failed atomic.Int64
	high          atomic.Int64 // the greatest acknowledged reply of INCR

	mu        sync.Mutex // guards the fields below
	fault     int64      // the start of the fault; 0: not yet
	next      int64      // the first acknowledgement of a write that began after the fault
	last      int64      // the last acknowledgement of a write
	gap       int64      // the longest time between two acknowledgements since the fault began
	lists     [journals]list
	counts    []op // INCRs, as operations that return a value
	registers [2][]op
	stale     []string
	grants    []spans.Span
	holds     []held
	jobs      map[string]*job
	lines     []string // the history
}

// list is a list to which one client appends consecutive numbers.
type list struct{ next, acked []int64 }

// held is one span for which a client held the lock.
type held struct{ token, asked, from, to int64 }

// job is a job of the queue.
type job struct {
	pushed int64 // time of the acknowledgement of Push; 0: none
	acked  int64 // time of the acknowledgement of Ack; 0: none
	done   int
	again  int // deliveries that began after acked
}

// now returns the time since the clients began, in ns.
func (c *crowd) now() int64 { return int64(time.Since(c.began)) }

// ack records an acknowledged write that began at from.
func (c *crowd) ack(from int64) {
	c.acked.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.now()
	if c.fault != 0 {
		c.gap = max(c.gap, at-max(c.fault, c.last))
		if c.next == 0 && from > c.fault {
			c.next = at
		}
	}
	c.last = at
}

// note adds a line to the history, which is saved if the round fails.
func (c *crowd) note(from int64, format string, args ...any) {
	at := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, fmt.Sprintf("%12.6f %12.6f  %s", float64(from)/1e9, float64(at)/1e9, fmt.Sprintf(format, args...)))
}

// rest counts an error and waits briefly.
func (c *crowd) rest(ctx context.Context) {
	c.failed.Add(1)
	wait(ctx, 10*time.Millisecond)
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// assemble returns the clients. connect returns a new client at each call; conn is the toolkit's connection.
func assemble(t *testing.T, write writes, connect func() *redis.Client, conn *ebb.Conn) *crowd {
	t.Helper()
	c := &crowd{write: write, conn: conn, began: time.Now()}
	for range journals + writers + 1 {
		r := connect()
		t.Cleanup(func() { _ = r.Close() })
		c.raw = append(c.raw, r)
	}
	c.lock = must[*lock.Lock](t)(lock.New(conn, "rounds:lock", lock.Options{TTL: 2 * time.Second}))
	c.limit = must[*limit.Limiter](t)(limit.New(conn, "rounds", limit.PerSecond(grantsPerSecond), limit.FailClosed,
		limit.Options{Algorithm: limit.SlidingLog}))
	c.queue = must[*queue.Queue[string]](t)(queue.New[string](conn, "rounds:jobs",
		queue.Options[string]{Lease: 3 * time.Second, MaxDeliveries: 1000}))
	return c
}

// run lets all clients work until ctx ends, on keys of the round. All rounds share the lock and the limiter.
func (c *crowd) run(ctx context.Context, round int, rnd *rand.Rand) (stopped func()) {
	holds, grants := []held(nil), []spans.Span(nil)
	if c.tally != nil {
		holds, grants = c.holds, c.grants
	}
	c.tally = &tally{jobs: map[string]*job{}, holds: holds, grants: grants}
	var running sync.WaitGroup
	for i := range journals {
		running.Go(func() { c.journal(ctx, i, round) })
	}
	for i := range writers {
		own := rand.New(rand.NewPCG(rnd.Uint64(), 0))
		running.Go(func() { c.register(ctx, i, round, own) })
	}
	running.Go(func() { c.read(ctx, round) })
	for range 2 {
		running.Go(func() { c.hold(ctx) })
		running.Go(func() { c.take(ctx) })
		running.Go(func() { c.work(ctx) })
	}
	running.Go(func() { c.push(ctx, round) })
	return running.Wait
}

func name(round int, what string, i int) string { return fmt.Sprintf("r%d:%s%d", round, what, i) }

// journal appends numbers to its own list, and increments a counter that all journals share.
func (c *crowd) journal(ctx context.Context, i, round int) {
	l := &c.lists[i]
	for n := int64(1); ctx.Err() == nil; n++ {
		key, from := name(round, "list", i), c.now()
		l.next = append(l.next, n)
		_, err := c.write(ctx, c.raw[i], "RPUSH", key, n)
		c.note(from, "client %d RPUSH %s %d: %v", i, key, n, err)
		if err != nil {
			c.rest(ctx)
			continue
		}
		l.acked = append(l.acked, n)
		c.ack(from)
		from = c.now()
		v, err := c.write(ctx, c.raw[i], "INCR", name(round, "counter", 0))
		c.note(from, "client %d INCR: %v, %v", i, v, err)
		if err != nil {
			c.rest(ctx)
			continue
		}
		c.counted(v.(int64), from)
		c.ack(from)
	}
}

// counted records a reply of INCR.
func (c *crowd) counted(n, from int64) {
	to := c.now()
	c.mu.Lock()
	c.counts = append(c.counts, op{true, n, from, to})
	c.mu.Unlock()
	for {
		high := c.high.Load()
		if n <= high || c.high.CompareAndSwap(high, n) {
			return
		}
	}
}

// read reads the counter, and checks that it is not below the replies acknowledged before the read began.
func (c *crowd) read(ctx context.Context, round int) {
	for ctx.Err() == nil {
		before, from := c.high.Load(), c.now()
		n, err := c.raw[len(c.raw)-1].Get(ctx, name(round, "counter", 0)).Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			c.rest(ctx)
			continue
		}
		if n < before {
			c.note(from, "GET of the counter: %d, %d is acknowledged", n, before)
			c.mu.Lock()
			c.stale = append(c.stale, fmt.Sprintf("%d was acknowledged, a read returns %d", before, n))
			c.mu.Unlock()
		}
	}
}

// register reads and writes two registers that all writers share.
func (c *crowd) register(ctx context.Context, i, round int, rnd *rand.Rand) {
	for n := int64(1); ctx.Err() == nil; n++ {
		r := rnd.IntN(len(c.registers))
		o := op{write: rnd.IntN(2) == 0, value: n*10 + int64(i), from: c.now(), to: never}
		key := name(round, "register", r)
		var err error
		if o.write {
			_, err = c.write(ctx, c.raw[journals+i], "SET", key, o.value)
		} else if o.value, err = c.raw[journals+i].Get(ctx, key).Int64(); errors.Is(err, redis.Nil) {
			o.value, err = 0, nil
		}
		c.note(o.from, "client %d of register %d write=%v %d: %v", i, r, o.write, o.value, err)
		if err == nil {
			o.to = c.now()
		}
		if err == nil || o.write {
			c.mu.Lock()
			c.registers[r] = append(c.registers[r], o)
			c.mu.Unlock()
		}
		switch {
		case err != nil:
			c.rest(ctx)
		case o.write:
			c.ack(o.from)
		}
	}
}

// hold takes the lock and holds it for a while.
func (c *crowd) hold(ctx context.Context) {
	const work, promptly = 30 * time.Millisecond, 10 * time.Millisecond
	for ctx.Err() == nil {
		asked := c.now()
		lease, err := c.lock.Acquire(ctx, callTime)
		if err != nil {
			if !errors.Is(err, lock.ErrTaken) {
				c.rest(ctx)
			}
			continue
		}
		from := c.now()
		wait(lease.Context(), work)
		to := c.now()
		if lease.Context().Err() != nil || time.Duration(to-from) > work+promptly {
			to = from // the client does not know when it lost the lock
		}
		c.note(asked, "the lock is held with token %d from %d to %d", lease.Token(), from, to)
		c.mu.Lock()
		c.holds = append(c.holds, held{lease.Token(), asked, from, to})
		c.mu.Unlock()
		call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
		if err := lease.Release(call); err != nil {
			c.rest(ctx)
		}
		cancel()
	}
}

// take takes from the limiter.
func (c *crowd) take(ctx context.Context) {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, callTime)
		from := c.now()
		r, err := c.limit.Allow(call, "all")
		cancel()
		switch to := c.now(); {
		case err != nil:
			c.rest(ctx)
		case r.Allowed:
			c.mu.Lock()
			c.grants = append(c.grants, spans.Span{From: from, To: to})
			c.mu.Unlock()
		default:
			wait(ctx, max(r.RetryAfter, time.Millisecond))
		}
	}
}

// push pushes jobs.
func (c *crowd) push(ctx context.Context, round int) {
	for n := 0; ctx.Err() == nil; n++ {
		id := name(round, "job", n)
		call, cancel := context.WithTimeout(ctx, callTime)
		from := c.now()
		_, err := c.queue.Push(call, id, queue.PushOptions{ID: id})
		cancel()
		c.note(from, "push %s: %v", id, err)
		if err != nil {
			c.rest(ctx)
			continue
		}
		c.mu.Lock()
		c.job(id).pushed = c.now()
		c.mu.Unlock()
		wait(ctx, 5*time.Millisecond)
	}
}

// job returns the job with an id. mu is held.
func (c *crowd) job(id string) *job {
	j := c.jobs[id]
	if j == nil {
		j = &job{}
		c.jobs[id] = j
	}
	return j
}

// work does jobs until ctx ends.
func (c *crowd) work(ctx context.Context) {
	for ctx.Err() == nil {
		call, cancel := context.WithTimeout(ctx, time.Second)
		_, err := c.do(call)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			c.rest(ctx)
		}
	}
}

// do does the next job.
func (c *crowd) do(ctx context.Context) (id string, err error) {
	from := c.now()
	j, err := c.queue.Pop(ctx)
	if err != nil {
		return "", err
	}
	id = j.Value
	c.mu.Lock()
	of := c.job(id)
	of.done++
	if of.acked != 0 && from > of.acked {
		of.again++
	}
	c.mu.Unlock()
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	err = j.Ack(call)
	c.note(from, "job %s is done: %v", id, err)
	if err == nil {
		c.mu.Lock()
		of.acked = c.now()
		c.mu.Unlock()
	}
	return id, err
}

// verdict has the number of violations of each kind.
type verdict struct{ lost, twice, stale, holders, tokens, limits, jobs int }

// count adds another verdict.
func (v *verdict) count(o verdict) {
	v.lost, v.twice, v.stale, v.holders = v.lost+o.lost, v.twice+o.twice, v.stale+o.stale, v.holders+o.holders
	v.tokens, v.limits, v.jobs = v.tokens+o.tokens, v.limits+o.limits, v.jobs+o.jobs
}

// judge compares the data of a group with the acknowledgements of a round, and calls say for each violation.
func (c *crowd) judge(ctx context.Context, round int, client *redis.Client, say func(format string, args ...any)) (v verdict, err error) {
	for i := range c.lists {
		l := &c.lists[i]
		there, err := client.LRange(ctx, name(round, "list", i), 0, -1).Result()
		if err != nil {
			return v, err
		}
		lost, twice := l.compare(there)
		for _, n := range lost {
			say("list %d: %d was acknowledged and is lost, or is out of order", i, n)
		}
		for _, n := range twice {
			say("list %d: %d is there twice", i, n)
		}
		v.lost, v.twice = v.lost+len(lost), v.twice+len(twice)
	}
	for i, r := range c.registers {
		from := c.now()
		n, err := client.Get(ctx, name(round, "register", i)).Int64()
		if err != nil && !errors.Is(err, redis.Nil) {
			return v, err
		}
		for _, why := range against(append(r, op{false, n, from, c.now()})) {
			say("register %d: %s", i, why)
			v.stale++
		}
	}
	v.stale += len(c.stale)
	for _, s := range c.stale {
		say("counter: %s", s)
	}
	v.twice += c.countedTwice(say)
	v.holders, v.tokens = c.holders(say)
	if most := spans.MostIn(c.grants, time.Second); most > grantsPerSecond {
		say("%d grants of a limiter within a second", most)
		v.limits++
	}
	c.grants = slices.DeleteFunc(c.grants, func(g spans.Span) bool { return g.From < c.now()-int64(2*time.Second) })
	v.jobs, err = c.drain(ctx, say)
	return v, err
}

// compare returns the acknowledged numbers that are missing or out of order, and those that occur twice. A number
// whose outcome is uncertain may be anywhere.
func (l *list) compare(there []string) (lost, twice []int64) {
	at := map[int64]int{}
	for i, s := range there {
		n, err := strconv.ParseInt(s, 10, 64)
		if _, ok := at[n]; ok || err != nil {
			twice = append(twice, n)
			continue
		}
		at[n] = i
	}
	last := -1
	for _, n := range l.acked {
		i, ok := at[n]
		if !ok || i < last {
			lost = append(lost, n)
			continue
		}
		last = i
	}
	return lost, twice
}

// countedTwice checks the replies of INCR: each occurs once, and is greater than all replies returned before it
// began.
func (c *crowd) countedTwice(say func(string, ...any)) (n int) {
	seen := map[int64]bool{}
	for _, o := range c.counts {
		if seen[o.value] {
			say("INCR has returned %d twice: one of these writes was lost", o.value)
			n++
		}
		seen[o.value] = true
	}
	byEnd := slices.SortedFunc(slices.Values(c.counts), func(a, b op) int { return cmp.Compare(a.to, b.to) })
	byStart := slices.SortedFunc(slices.Values(c.counts), func(a, b op) int { return cmp.Compare(a.from, b.from) })
	high, i := int64(0), 0
	for _, o := range byStart {
		for ; i < len(byEnd) && byEnd[i].to < o.from; i++ {
			high = max(high, byEnd[i].value)
		}
		if o.value < high {
			say("INCR has returned %d after %d", o.value, high)
			n++
		}
	}
	return n
}

// holders checks the lock: it has one holder at a time, and its tokens grow.
func (c *crowd) holders(say func(string, ...any)) (two, tokens int) {
	slices.SortFunc(c.holds, func(a, b held) int { return cmp.Compare(a.from, b.from) })
	for i := 1; i < len(c.holds); i++ {
		a, b := c.holds[i-1], c.holds[i]
		if b.from < a.to {
			say("the lock has two holders, with the tokens %d and %d, from %d to %d", a.token, b.token, b.from, a.to)
			two++
		}
		if b.token <= a.token && b.asked > a.from {
			say("the lock was given with token %d after %d", b.token, a.token)
			tokens++
		}
	}
	if n := len(c.holds); n > 0 { // each hold is judged once
		c.holds = c.holds[n-1:]
	}
	return two, tokens
}

// drain does the remaining jobs. It returns the number of jobs that were lost, or delivered after they were
// acknowledged.
func (c *crowd) drain(ctx context.Context, say func(string, ...any)) (bad int, err error) {
	for {
		info, err := c.queue.Info(ctx)
		if err != nil {
			return 0, err
		}
		if info.Delayed+info.Ready+info.Leased == 0 {
			break
		}
		call, cancel := context.WithTimeout(ctx, callTime)
		_, _ = c.do(call) // an error only delays the job
		cancel()
	}
	for id, j := range c.jobs {
		switch {
		case j.pushed != 0 && j.done == 0:
			say("job %s was pushed and is lost", id)
			bad++
		case j.again > 0:
			say("job %s was acknowledged and was delivered again", id)
			bad++
		}
	}
	return bad, nil
}

// save writes the history and the nodes' logs into a folder.
func (c *crowd) save(t *testing.T, into string, round int, logs []string) {
	dir := filepath.Join(into, strings.NewReplacer("/", "-", " ", "-", ",", "").Replace(t.Name())+"-round"+strconv.Itoa(round+1))
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "history.txt"), []byte(strings.Join(c.lines, "\n")), 0o600)
	}
	for i, name := range logs {
		b, _ := os.ReadFile(name)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, fmt.Sprintf("node%d.log", i+1)), b, 0o600))
	}
	if err != nil {
		t.Error(err)
	}
}
