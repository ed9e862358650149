// Command expiry-strategy measures expirations: when keys expire, how late their events
// come, and at what cost. Some keys expire one by one, a storm of keys expires in one
// instant, and many do not expire. Meanwhile a client reads and a listener receives the
// events.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

const (
	others = 30_000 // keys with a TTL of an hour
	drip   = 2_000  // keys that expire one by one, from lead on
	storm  = 20_000 // keys that expire in one instant
	fields = 500    // fields of a hash with deadlines, if the server has those

	lead  = 700 * time.Millisecond  // the least time between the first key and the first deadline
	span  = 1600 * time.Millisecond // the time over which the drip is spread
	grace = 1200 * time.Millisecond // how long the program waits after the last deadline
	tick  = 250 * time.Millisecond  // the time between two lines
)

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	strategies(w)
	restore, err := configured(ctx, c, w)
	if err != nil {
		return err
	}
	defer restore()
	before, err := info(ctx, c)
	if err != nil {
		return err
	}
	p := &program{c: c, w: w}
	err = p.tell(ctx, before)
	return errors.Join(err, p.clean(context.WithoutCancel(ctx)))
}

// tell subscribes before it loads the keys, so that it misses no event even if the load
// takes long.
func (p *program) tell(ctx context.Context, before map[string]string) error {
	sub, err := p.c.Subscribe(ctx, "__keyevent@0__:expired")
	if err != nil {
		return err
	}
	defer sub.Close()
	if err := p.load(ctx); err != nil {
		return err
	}
	if err := p.watch(ctx, sub); err != nil {
		return err
	}
	return p.summary(ctx, before)
}

// settings are the directives that the example changes. Some of them have no effect in ebb
// and exist so that a redis.conf can have them.
var settings = []string{"notify-keyspace-events", "lazyfree-lazy-expire", "hz", "active-expire-effort"}

// configured turns the events on, and returns a function that restores the settings.
func configured(ctx context.Context, c *ebb.Conn, w io.Writer) (restore func(), err error) {
	var was []any
	for _, name := range settings {
		v, err := c.Do(ctx, "CONFIG", "GET", name)
		if err != nil {
			return nil, err
		}
		value, _ := v.Get(name)
		was = append(was, name, value.String())
	}
	set := []any{"CONFIG", "SET", "notify-keyspace-events", "Ex", "lazyfree-lazy-expire", "yes", "hz", 10, "active-expire-effort", 1}
	fmt.Fprintln(w, set...)
	_, err = c.Do(ctx, set...)
	return func() { _, _ = c.Do(context.WithoutCancel(ctx), append([]any{"CONFIG", "SET"}, was...)...) }, err
}

// program is the state of a run.
type program struct {
	c     *ebb.Conn
	w     io.Writer
	began time.Time     // local time at which the server's clock showed base
	base  int64         // ms
	dues  []int64       // the deadlines of the loaded keys, in ms after base, sorted
	lead  time.Duration // between base and the first deadline

	mu     sync.Mutex // guards what follows
	late   []time.Duration
	slow   time.Duration // the slowest reply since the last line
	answer []time.Duration
	failed error // of the subscription or of the client
}

// stormAt returns the time of the storm's deadline.
func (p *program) stormAt() time.Duration { return p.lead + span/2 }

// load writes the keys. It begins with those that have a TTL of an hour, and measures how
// fast the backend takes keys. The names of the others contain their deadlines.
func (p *program) load(ctx context.Context) error {
	began := time.Now()
	if err := p.setAll(ctx, "other", others, func(int) time.Duration { return time.Hour }); err != nil {
		return err
	}
	p.lead = max(lead, (2 * time.Since(began)).Round(100*time.Millisecond))
	if err := p.start(ctx); err != nil {
		return err
	}
	if err := p.setAll(ctx, "storm", storm, func(int) time.Duration { return p.stormAt() }); err != nil {
		return err
	}
	if err := p.setAll(ctx, "drip", drip, p.dripAt); err != nil {
		return err
	}
	if p.c.Capabilities().Native {
		var b ebb.Batch
		set, dated := []any{"HSET", "visits"}, []any{"HPEXPIREAT", "visits", p.base + p.stormAt().Milliseconds(), "FIELDS", fields}
		for i := range fields {
			set, dated = append(set, i, "x"), append(dated, i)
		}
		b.Do(set...)
		b.Do("HSET", "visits", "first", "x")
		b.Do(dated...)
		if _, err := p.c.Pipeline(ctx, &b); err != nil {
			return err
		}
	}
	slices.Sort(p.dues)
	return nil
}

// dripAt returns the deadline of the i-th key of the drip.
func (p *program) dripAt(i int) time.Duration { return p.lead + span*time.Duration(i)/drip }

// start sets base to the server's time, from which deadlines count.
func (p *program) start(ctx context.Context) error {
	p.began = time.Now()
	v, err := p.c.Do(ctx, "TIME")
	if err != nil {
		return err
	}
	if len(v.Elems) != 2 {
		return fmt.Errorf("TIME replied %s", v)
	}
	s, err1 := v.Elems[0].AsInt()
	us, err2 := v.Elems[1].AsInt()
	if err1 != nil || err2 != nil {
		return fmt.Errorf("TIME replied %s", v)
	}
	p.base = s*1000 + us/1000
	return nil
}

// setAll writes n keys of a kind, a thousand in a pipeline. The keys with a TTL of an hour
// have the same names in every run.
func (p *program) setAll(ctx context.Context, kind string, n int, due func(i int) time.Duration) error {
	var b ebb.Batch
	for i := range n {
		ms := due(i).Milliseconds()
		if kind == "other" {
			b.Do("SET", fmt.Sprintf("%s:%d", kind, i), "x", "PX", ms)
		} else {
			b.Do("SET", fmt.Sprintf("%s:%d:%d", kind, ms, i), "x", "PXAT", p.base+ms)
			p.dues = append(p.dues, ms)
		}
		if b.Len() == 1000 || i == n-1 {
			if _, err := p.c.Pipeline(ctx, &b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return nil
}

// now returns the time since base.
func (p *program) now() time.Duration { return time.Since(p.began) }

// watch prints a line for each tick until all events have come, or grace is over.
func (p *program) watch(ctx context.Context, sub *ebb.Subscription) error {
	ctx, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer func() { cancel(); helpers.Wait() }()
	helpers.Go(func() { p.listen(ctx, sub) })
	helpers.Go(func() { p.ask(ctx) })

	fmt.Fprintf(p.w, "\n%d keys fall due from %v to %v, %d at %v, %d in an hour\n", drip, p.lead, p.lead+span, storm, p.stormAt(), others)
	fmt.Fprintf(p.w, "%7s  %7s  %7s  %7s  %7s  %s\n", "at", "due", "events", "DBSIZE", "living", "slowest answer")
	every := time.NewTicker(tick)
	defer every.Stop()
	end := p.lead + span + grace
	if p.c.Capabilities().Native {
		end += 10 * time.Second // ebb sends every event; on a busy machine it may be late
	}
	for p.now() < end {
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		events, err := p.line(ctx)
		if err != nil {
			return err
		}
		if events == len(p.dues) {
			break
		}
	}
	return nil
}

func (p *program) line(ctx context.Context) (events int, err error) {
	size, err := p.c.DBSize(ctx)
	if err != nil {
		return 0, err
	}
	now := p.now()
	due, _ := slices.BinarySearch(p.dues, now.Milliseconds())
	p.mu.Lock()
	defer p.mu.Unlock()
	living := len(p.dues) - due + others
	if p.c.Capabilities().Native {
		living++ // the hash
	}
	fmt.Fprintf(p.w, "%7s  %7d  %7d  %7d  %7d  %v\n", now.Round(10*time.Millisecond), due, len(p.late), size, living,
		p.slow.Round(time.Microsecond))
	p.slow = 0
	return len(p.late), p.failed
}

// listen records how late each event is.
func (p *program) listen(ctx context.Context, sub *ebb.Subscription) {
	for m, err := range sub.All(ctx) {
		if err != nil {
			p.fail(ctx, fmt.Errorf("the subscription to expired events: %w", err))
			return
		}
		parts := strings.Split(m.Payload, ":")
		if len(parts) != 3 {
			continue
		}
		due, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			continue
		}
		late := p.now() - time.Duration(due)*time.Millisecond
		p.mu.Lock()
		p.late = append(p.late, late)
		p.mu.Unlock()
	}
}

// fail records the first error of a goroutine, unless the program is about to end.
func (p *program) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = err
	}
}

// ask runs a client that reads keys all the time, and measures the replies.
func (p *program) ask(ctx context.Context) {
	every := time.NewTicker(2 * time.Millisecond)
	defer every.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		began := time.Now()
		_, err := p.c.Exists(ctx, fmt.Sprintf("other:%d", i%others))
		took := time.Since(began)
		if err != nil {
			p.fail(ctx, fmt.Errorf("a request during the load: %w", err))
			return
		}
		p.mu.Lock()
		p.slow = max(p.slow, took)
		p.answer = append(p.answer, took)
		p.mu.Unlock()
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}
