package loadgen

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/resp"
)

// EventsConfig describes a test of durable expiry events: keys that expire under
// an EXPIRY RULE while a consumer group reads its stream. The zero value, with a
// Target and Out, is one of a million keys that expire within ten seconds.
type EventsConfig struct {
	Common
	Items     int           // keys that expire; default 1,000,000
	Spread    time.Duration // the span of their deadlines; default 10 s
	Consumers int           // of the group; default 4
	Rate      int           // GETs a second meanwhile, open loop; default 5,000
	Lead      time.Duration // from the start of loading to the first deadline; default: a guess
	Tail      time.Duration // longest wait for the last entry behind the last deadline; default 60 s
}

func (c *EventsConfig) setDefaults() {
	orDefault(&c.Items, 1_000_000)
	orDefault(&c.Consumers, 4)
	orDefault(&c.Rate, 5000)
	orDefault(&c.Spread, 10*time.Second)
	orDefault(&c.Lead, time.Duration(c.Items/150_000+4)*time.Second)
	orDefault(&c.Tail, time.Minute)
}

const (
	eventsRule   = "bench"
	eventsStream = "expired-keys"
)

// Events prints the numbers of entries and of expiries, whether any entry came
// twice, how late they were delivered, and what other clients felt. It deletes
// everything in the server.
func Events(ctx context.Context, cfg EventsConfig) error {
	cfg.setDefaults()
	e := events{cfg: cfg, line: statusLine{cfg.Progress}, times: make([]atomic.Int32, cfg.Items)}
	var err error
	if e.ctl, err = cfg.Target.client(ctx); err != nil {
		return err
	}
	defer e.ctl.conn.Close()
	defer e.ctl.closeWith(ctx)()
	if err := e.prepare(ctx); err != nil {
		return err
	}
	err = e.measure(ctx)
	if _, after := e.ctl.do("EXPIRY", "RULE", "DEL", eventsRule); err == nil {
		err = after
	}
	return err
}

// events is one test under way.
type events struct {
	cfg    EventsConfig
	ctl    *client
	line   statusLine
	first  time.Time // deadline
	before int       // items that the server had reclaimed when we came

	times []atomic.Int32 // how often each key's entry came
	got   atomic.Int64   // entries

	mu   sync.Mutex
	lags []time.Duration // from deadline to delivery
}

// prepare sets the rule and loads the keys, in an order that has nothing to do
// with their deadlines.
func (e *events) prepare(ctx context.Context) error {
	if err := e.ctl.flushable(e.cfg.Flush); err != nil {
		return err
	}
	limit := strconv.Itoa(2 * e.cfg.Items)
	for _, args := range [][]string{
		{"SET", "live", "v"},
		{"EXPIRY", "RULE", "SET", eventsRule, "MATCH", "k:*", "LEVEL", "key", "TO", eventsStream, "MAXLEN", "~", limit},
		{"XGROUP", "CREATE", eventsStream, "g", "0", "MKSTREAM"},
	} {
		if _, err := e.ctl.do(args...); err != nil {
			return err
		}
	}
	var err error
	if e.before, err = e.ctl.expired(); err != nil {
		return err
	}
	e.first = time.Now().Add(e.cfg.Lead).Truncate(time.Millisecond)
	spread := e.cfg.Spread.Milliseconds()
	err = load(ctx, e.cfg.Target, e.cfg.Items, e.line, "keys", func(c *client, part, i int) int {
		n := 2*i + part
		at := e.first.UnixMilli() + int64(n)*7919%max(spread, 1)
		c.add("SET", "k:"+strconv.Itoa(n), stormValue, "PXAT", strconv.FormatInt(at, 10))
		return 1
	})
	if err == nil && time.Now().After(e.first) {
		err = errors.New("loading took too long: raise --lead")
	}
	return err
}

// measure reads the stream until all entries are there, and prints what was found.
func (e *events) measure(ctx context.Context) error {
	p := probes{target: e.cfg.Target, rate: e.cfg.Rate}
	cpu, err := CPUTime(e.cfg.PID)
	if err != nil {
		return err
	}
	start := time.Now()
	err = p.during(ctx, func(ctx context.Context) error { return e.consume(ctx) })
	if err != nil {
		return err
	}
	used, err := CPUTime(e.cfg.PID)
	if err != nil {
		return err
	}
	last := e.first.Add(e.cfg.Spread)
	p.print(e.cfg.Out, "before", start.Add(warmUp), e.first)
	p.print(e.cfg.Out, "during", e.first, last)
	fmt.Fprintf(e.cfg.Out, "server cpu %.2fs for all of it\n", (used - cpu).Seconds())
	return e.account()
}

// consume has the group's consumers read and acknowledge until every key's entry
// has come, or the time is up; and a little longer, in case any comes twice.
func (e *events) consume(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	var all sync.WaitGroup
	for id := range e.cfg.Consumers {
		all.Go(func() {
			if err := e.read(ctx, stop, "c"+strconv.Itoa(id)); err != nil {
				cancel(err)
			}
		})
	}
	end := e.first.Add(e.cfg.Spread + e.cfg.Tail)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for e.got.Load() < int64(e.cfg.Items) && time.Now().Before(end) && ctx.Err() == nil {
		e.line.set("%s of %s entries", thousands(float64(e.got.Load())), thousands(float64(e.cfg.Items)))
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	e.line.clear()
	if ctx.Err() == nil {
		_ = e.line.wait(ctx, time.Now().Add(time.Second), "waiting for entries that come twice")
	}
	close(stop)
	all.Wait()
	return context.Cause(ctx)
}

// read returns one consumer.
func (e *events) read(ctx context.Context, stop <-chan struct{}, name string) error {
	c, err := e.cfg.Target.client(ctx)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	defer c.closeWith(ctx)()
	var own []time.Duration
	defer func() {
		e.mu.Lock()
		e.lags = append(e.lags, own...)
		e.mu.Unlock()
	}()
	for {
		select {
		case <-stop:
			return nil
		default:
		}
		v, err := c.do("XREADGROUP", "GROUP", "g", name, "COUNT", "500", "BLOCK", "200", "STREAMS", eventsStream, ">")
		if err != nil {
			return err
		}
		if len(v.Elems) == 0 {
			continue
		}
		entries := v.Elems[0].Elems[1].Elems
		now := time.Now()
		ack := []string{"XACK", eventsStream, "g"}
		for _, entry := range entries {
			lag, err := e.note(entry, now)
			if err != nil {
				return err
			}
			own = append(own, lag)
			ack = append(ack, entry.Elems[0].Str)
		}
		e.got.Add(int64(len(entries)))
		if _, err := c.do(ack...); err != nil {
			return err
		}
	}
}

// note counts an entry and returns how late it came.
func (e *events) note(entry resp.Value, now time.Time) (time.Duration, error) {
	fields := map[string]string{}
	pairs := entry.Elems[1].Elems
	for i := 0; i+1 < len(pairs); i += 2 {
		fields[pairs[i].Str] = pairs[i+1].Str
	}
	key, deadline := fields["key"], fields["deadline"]
	at, err := strconv.ParseInt(deadline, 10, 64)
	if err != nil || len(key) < 3 {
		return 0, fmt.Errorf("the entry %v is not one of an expiry rule", fields)
	}
	n, err := strconv.Atoi(key[2:])
	if err != nil || n >= len(e.times) {
		return 0, fmt.Errorf("an entry for the key %q, which was not created", key)
	}
	e.times[n].Add(1)
	return now.Sub(time.UnixMilli(at)), nil
}

// account compares entries with expiries.
func (e *events) account() error {
	expired, err := e.ctl.expired()
	if err != nil {
		return err
	}
	length, err := e.ctl.do("XLEN", eventsStream)
	if err != nil {
		return err
	}
	missing, twice := 0, 0
	for i := range e.times {
		switch n := e.times[i].Load(); {
		case n == 0:
			missing++
		case n > 1:
			twice++
		}
	}
	slices.Sort(e.lags)
	const unit = 10 * time.Microsecond
	fmt.Fprintf(e.cfg.Out, "expiries %d, entries in the stream %d, delivered %d; keys without an entry %d, with more than one %d\n",
		expired-e.before, length.Int, e.got.Load(), missing, twice)
	fmt.Fprintf(e.cfg.Out, "from deadline to delivery: p50=%s p99=%s p99.9=%s max=%s\n", quantile(e.lags, 0.5, unit),
		quantile(e.lags, 0.99, unit),
		quantile(e.lags, 0.999, unit), quantile(e.lags, 1, unit))
	if missing+twice > 0 || expired-e.before != e.cfg.Items {
		return errors.New("entries and expiries differ")
	}
	return nil
}
