package migrate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

const (
	// batchKeys is the number of keys that are read at a time, if they are small.
	batchKeys = 256
	// batchBytes is the number of bytes of values that a batch has at most, unless one key is larger.
	batchBytes = 16 << 20
	// fewKeys is the number of changed keys that may wait when a cutover begins. They are copied in some ten milliseconds.
	fewKeys = 1000
	// cutoverToken is the text of the PING that separates the events of a cutover from those before.
	cutoverToken = "cutover"
)

// errAgain is in the chain of errors after which events may be missing: all keys must be copied again.
var errAgain = errors.New("changes may be missing")

// A copier copies keys with SCAN, DUMP and RESTORE. It subscribes to keyspace events before it reads the first key, and
// copies each key again that an event names; a key that is gone is deleted.
//
// The state of a consumer group, and functions, change without events. Streams and functions are copied again
// while writes are held.
type copier struct {
	m       *Migration
	sources []*source
	nodes   []node // of the cluster, when the copy began
	began   time.Time
	all     int64
	evicted int64  // keys that the target had evicted before
	run     string // the target's run ID
	copied  atomic.Int64
	events  atomic.Int64

	mu      sync.Mutex // guards what follows
	refused []string   // keys that the target did not take, and why; the first ones
	refuses int
}

// startCopy copies all keys, and returns when the changes meanwhile are copied too.
func (m *Migration) startCopy(ctx context.Context) error {
	if err := m.empty(ctx); err != nil {
		return err
	}
	if err := m.clear(ctx); err != nil {
		return err
	}
	m.copies = &copier{m: m, evicted: number(m.to.info, "evicted_keys"), run: m.to.info["run_id"]}
	m.restore = append(m.restore, func(context.Context) { m.copies.close() })
	if err := m.copies.announceRules(ctx); err != nil {
		return err
	}
	return m.copies.complete(ctx, false)
}

const eventsSetting = "notify-keyspace-events"

// sendsAll reports whether a value of notify-keyspace-events sends __keyevent messages of all changes.
func sendsAll(setting string) bool {
	return strings.Contains(setting, "E") && strings.Contains(setting, "A")
}

// switchEventsOn makes a source send all keyspace events; Close sets what was set before.
func (m *Migration) switchEventsOn(ctx context.Context, f *peer) error {
	const name = eventsSetting
	v, err := f.do(ctx, "CONFIG", "GET", name)
	if err == nil && len(v.Elems) != 2 {
		err = resp.ReplyError("the server does not have it")
	}
	if err != nil { // a refusal comes again
		return fmt.Errorf("FROM %s does not tell its %s, which is set while keys are copied and then set back: "+
			"allow CONFIG GET (+config|get): %w", f, name, err)
	}
	before := v.Elems[1].String()
	if sendsAll(before) {
		return nil
	}
	if _, err := f.do(ctx, "CONFIG", "SET", name, before+"EA"); err != nil {
		return fmt.Errorf("FROM %s has %s %q, and `migrate` learns from keyspace events what has changed: "+
			"set it to EA, or allow CONFIG SET (+config|set): %w", f, name, before, err)
	}
	m.restore = append(m.restore, func(ctx context.Context) {
		if _, err := f.do(ctx, "CONFIG", "SET", name, before); err != nil {
			m.out.line("FROM %s still has %s %sEA: %v", f, name, before, err)
		}
	})
	return nil
}

// complete copies everything until one pass went through without a loss of events. stale says that the target may hold
// keys that the sources have deleted.
func (c *copier) complete(ctx context.Context, stale bool) error {
	for attempt := 0; ; attempt++ {
		err := c.pass(ctx, stale)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if !errors.Is(err, errAgain) || attempt == 9 {
			return fmt.Errorf("%w; TO holds %d keys that were copied, and is not complete", err, c.copied.Load())
		}
		c.m.out.line("%v: all keys are copied again; the %d that TO has stay meanwhile", err, c.copied.Load())
		stale = true
		if !sleep(ctx, time.Duration(attempt+1)*time.Second) {
			return ctx.Err()
		}
	}
}

// pass copies all keys once, and then what changed meanwhile.
func (c *copier) pass(ctx context.Context, stale bool) error {
	c.close()
	if err := c.open(ctx); err != nil {
		return err
	}
	c.began, c.all = time.Now(), 0
	c.copied.Store(0)
	for _, s := range c.sources {
		c.all += keysOf(s.p.info)
	}
	if err := c.each(func(s *source) error { return s.copyAll(ctx) }); err != nil {
		return err
	}
	if stale {
		if err := c.sweep(ctx); err != nil {
			return err
		}
	}
	if err := c.catchUp(ctx); err != nil {
		return err
	}
	if err := c.conclude(ctx); err != nil {
		return err
	}
	c.m.out.line("TO has the data: %d keys in %.1f s (%d keys/s), %d events",
		c.copied.Load(), time.Since(c.began).Seconds(), perSecond(c.copied.Load(), c.began), c.events.Load())
	return nil
}

// open connects, and subscribes to the events of all sources.
func (c *copier) open(ctx context.Context) (err error) {
	if f := c.m.from[0]; f.info["cluster_enabled"] == "1" {
		if err := c.follows(ctx, f); err != nil {
			return err
		}
	}
	c.sources = nil
	for _, p := range c.m.from {
		s := &source{c: c, p: p, batch: batchKeys, streams: map[place]bool{}, dirty: map[place]bool{}, pongs: make(chan string, 1)}
		c.sources = append(c.sources, s)
		if err := c.m.switchEventsOn(ctx, p); err != nil { // also after a restart of the source
			return again(err)
		}
		s.setting = p.setting(ctx, eventsSetting)
		if err := s.open(ctx); err != nil {
			return again(err)
		}
	}
	return nil
}

// follows replaces the sources when the masters of the cluster have changed.
func (c *copier) follows(ctx context.Context, f *peer) (err error) {
	for _, p := range c.m.from { // one of them answers, after a failover too
		if c.nodes, err = layout(ctx, p); err == nil {
			f = p
			break
		}
	}
	if err != nil {
		return again(err)
	}
	same := len(c.nodes) == len(c.m.from)
	for i := 0; same && i < len(c.nodes); i++ {
		same = address(c.m.from[i].server) == c.nodes[i].addr
	}
	if same {
		return nil
	}
	now, err := c.m.masters(ctx, f)
	if err != nil {
		return again(err)
	}
	for _, p := range c.m.from {
		p.close()
	}
	c.m.from = now
	return nil
}

// again marks an error of a connection as one after which a new pass helps.
func again(err error) error {
	var refused resp.ReplyError
	if err == nil || errors.Is(err, errAgain) || errors.As(err, &refused) {
		return err
	}
	return fmt.Errorf("%w: %w", errAgain, err)
}

// close ends the connections, and waits for the goroutines that read events.
func (c *copier) close() {
	for _, s := range c.sources {
		for _, conn := range []*client{s.data, s.target, s.feed} {
			if conn != nil {
				conn.nc.Close()
			}
		}
		if s.ended != nil {
			<-s.ended
		}
	}
	c.sources = nil
}

// each runs a function on all sources at a time.
func (c *copier) each(run func(*source) error) error {
	errs := make(chan error, len(c.sources))
	for _, s := range c.sources {
		go func() { errs <- run(s) }()
	}
	var all []error
	for range c.sources {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (c *copier) refuse(db int, key string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refuses++; len(c.refused) < shownKeys {
		c.refused = append(c.refused, fmt.Sprintf("database %d, %s: %v", db, wire.AppendQuoted(nil, key), err))
	}
}

// catchUp copies what has changed, until few keys wait.
func (c *copier) catchUp(ctx context.Context) error {
	for {
		if err := c.each(func(s *source) error { return s.copyKeys(ctx, s.take()) }); err != nil {
			return err
		}
		if lag := c.lag(); lag < fewKeys {
			return nil
		} else {
			c.m.out.progress(time.Second, "catch up  %d changed keys wait", lag)
		}
	}
}

// lag returns how many changed keys wait.
func (c *copier) lag() (n int) {
	for _, s := range c.sources {
		n += s.waiting()
	}
	return n
}

// check returns an error in the chain of errAgain if events may be missing.
func (c *copier) check(ctx context.Context) error {
	to, err := c.m.to.section(ctx, "server")
	if err != nil {
		return again(err)
	}
	if run := to["run_id"]; run != c.run {
		c.run = run
		return fmt.Errorf("TO %s was restarted, and may have lost keys: %w", c.m.to, errAgain)
	}
	for _, s := range c.sources {
		s.mu.Lock()
		broken := s.broken
		s.mu.Unlock()
		if broken != nil {
			return fmt.Errorf("FROM %s: the connection with its events was cut: %w: %w", s.p, broken, errAgain)
		}
		if err := s.ping(ctx, "alive"); err != nil {
			return again(err)
		}
		run := s.p.info["run_id"]
		if _, err := s.p.refresh(ctx); err != nil {
			return again(err)
		}
		if s.p.info["run_id"] != run {
			return fmt.Errorf("FROM %s was restarted: %w", s.p, errAgain)
		}
		if s.p.info["role"] != "master" {
			lost := fmt.Errorf("FROM %s is a replica of %s now: name the master that it follows",
				s.p, net.JoinHostPort(s.p.info["master_host"], s.p.info["master_port"]))
			if len(c.nodes) > 0 { // the next pass finds the new masters of the cluster
				return fmt.Errorf("%w: %w", lost, errAgain)
			}
			return lost
		}
		if on := s.p.setting(ctx, eventsSetting); on != "" && !sendsAll(on) || on == "" && s.setting != "" {
			return fmt.Errorf("FROM %s has got another %s, %q: %w", s.p, eventsSetting, on, errAgain)
		}
		before := s.counts
		if s.counts = s.counters(); s.counts[0] < before[0] || s.counts[1] < before[1] {
			return fmt.Errorf("FROM %s has run CONFIG RESETSTAT, which also forgets a FLUSHALL: %w", s.p, errAgain)
		}
		if n := s.unseen(); n != s.flushes {
			return fmt.Errorf("FROM %s has run FLUSHALL, FLUSHDB or SWAPDB, which send no events: %w", s.p, errAgain)
		}
	}
	if len(c.nodes) > 0 {
		nodes, err := layout(ctx, c.m.from[0])
		if err != nil {
			return again(err)
		}
		if fmt.Sprint(nodes) != fmt.Sprint(c.nodes) {
			return fmt.Errorf("the masters of the cluster or their slots have changed: %w", errAgain)
		}
	}
	return nil
}

// follow copies what changes until ctx ends, or until done returns true. After a loss of events it copies everything
// again.
func (c *copier) follow(ctx context.Context, done func() bool) error {
	looked := time.Now()
	for {
		err := c.catchUp(ctx)
		if err == nil && time.Since(looked) > time.Second {
			looked = time.Now()
			err = c.check(ctx)
		}
		if err != nil && ctx.Err() == nil && errors.Is(err, errAgain) {
			c.m.out.line("%v: all keys are copied again; TO keeps what it has meanwhile", err)
			err = c.complete(ctx, true)
		}
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		if done != nil && done() {
			return nil
		}
		c.m.out.progress(10*time.Second, "follow  lag %d keys, %d events so far", c.lag(), c.events.Load())
		if !sleep(ctx, 20*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// sweep deletes the target's keys that no source has. No source copies meanwhile; a key that is created now comes with
// its event.
func (c *copier) sweep(ctx context.Context) error {
	to, err := c.m.to.refresh(ctx)
	if err != nil {
		return err
	}
	target, err := c.m.to.dial(ctx)
	if err != nil {
		return again(err)
	}
	defer target.nc.Close()
	for _, d := range databases(to) {
		err := scan(ctx, target, d.n, batchKeys, func(keys []string) (bool, error) {
			for _, s := range c.sources {
				if d.n != 0 && s.p.info["cluster_enabled"] == "1" {
					continue
				}
				if err := s.data.use(ctx, d.n); err != nil {
					return false, err
				}
				left, err := absent(ctx, s.data, keys)
				if err != nil {
					return false, err
				}
				keys = left
			}
			if len(keys) == 0 {
				return true, nil
			}
			_, err := target.do(ctx, append([]string{"DEL"}, keys...)...)
			return true, err
		})
		if err != nil {
			return again(err)
		}
	}
	return nil
}
