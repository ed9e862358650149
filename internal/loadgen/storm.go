package loadgen

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// StormConfig describes a storm: items that all expire in one instant, and the
// clients that suffer it. The zero value, with a Target and Out, is a storm of
// three million keys.
type StormConfig struct {
	Common
	Items  int           // default 3,000,000
	Kind   string        // what the items are: key, field, member, zmember, element; default key
	Fields int           // items in each container; default 1,000; above 0, Kind is field by default
	Rate   int           // GETs a second meanwhile, open loop; default 5,000
	Lead   time.Duration // from the start of loading to the deadline; default: a guess
	Tail   time.Duration // longest wait for the last item to be reclaimed; default 60 s
	Before time.Duration // measured before the deadline; default 2.5 s
	During time.Duration // and behind it at least; default 2 s
	After  time.Duration // and behind that; default 2 s
}

func (c *StormConfig) setDefaults() {
	if c.Kind == "" {
		if c.Kind = "key"; c.Fields > 0 {
			c.Kind = "field"
		}
	}
	orDefault(&c.Fields, 1000)
	orDefault(&c.Items, 3_000_000)
	orDefault(&c.Rate, 5000)
	orDefault(&c.Before, 2500*time.Millisecond)
	orDefault(&c.During, 2*time.Second)
	orDefault(&c.After, 2*time.Second)
	orDefault(&c.Tail, time.Minute)
	orDefault(&c.Lead, time.Duration(c.Items/150_000+6)*time.Second)
}

// warmUp is the time for which the probes run before they are measured: their first
// requests pay for the connections.
const warmUp = 500 * time.Millisecond

// probesFrom returns when the probes start.
func (s *storm) probesFrom() time.Time {
	return s.deadline.Add(-s.cfg.Before - min(warmUp, s.cfg.Before))
}

// Storm loads the items, waits for their deadline and prints the latency of
// GETs before, during and after, how long until the server has reclaimed all,
// and what that cost. It deletes everything in the server.
func Storm(ctx context.Context, cfg StormConfig) error {
	cfg.setDefaults()
	s := storm{cfg: cfg, line: statusLine{cfg.Progress}}
	if stormItems[cfg.Kind] == nil {
		return fmt.Errorf("there is no kind %q of items: it is key, field, member, zmember or element", cfg.Kind)
	}
	var err error
	if s.ctl, err = cfg.Target.client(ctx); err != nil {
		return err
	}
	defer s.ctl.conn.Close()
	defer s.ctl.closeWith(ctx)()
	if err := s.load(ctx); err != nil {
		return err
	}
	if err := s.line.wait(ctx, s.probesFrom(), "waiting to measure"); err != nil {
		return err
	}
	return s.measure(ctx)
}

// storm is one under way.
type storm struct {
	cfg      StormConfig
	ctl      *client
	line     statusLine
	deadline time.Time
	before   int // items the server had reclaimed when we came
}

// stormItems add an item that expires, to a container or as a key, and return how
// many requests that took.
var stormItems = map[string]func(c *client, container, item, at string) int{
	"key": func(c *client, _, item, at string) int {
		c.add("SET", "k:"+item, stormValue, "PXAT", at)
		return 1
	},
	"field": func(c *client, container, item, at string) int {
		c.add("HSET", "h:"+container, "f:"+item, stormValue)
		c.add("HPEXPIREAT", "h:"+container, at, "FIELDS", "1", "f:"+item)
		return 2
	},
	"member": func(c *client, container, item, at string) int {
		c.add("SADDEX", "s:"+container, "PXAT", at, "MEMBERS", "1", "m:"+item)
		return 1
	},
	"zmember": func(c *client, container, item, at string) int {
		c.add("ZADDEX", "z:"+container, "PXAT", at, "MEMBERS", "1", item[2:], "m:"+item)
		return 1
	},
	"element": func(c *client, container, item, at string) int {
		c.add("RPUSHEX", "l:"+container, "PXAT", at, "ELEMENTS", "1", "e:"+item)
		return 1
	},
}

const stormValue = "0123456789abcdef0123456789abcdef"

func (s *storm) load(ctx context.Context) (err error) {
	if err := s.ctl.flushable(s.cfg.Flush); err != nil {
		return err
	}
	if _, err := s.ctl.do("SET", "live", "v"); err != nil {
		return err
	}
	if s.before, err = s.ctl.expired(); err != nil {
		return err
	}
	start := time.Now()
	s.deadline = start.Add(s.cfg.Lead)
	at := strconv.FormatInt(s.deadline.UnixMilli(), 10)
	err = load(ctx, s.cfg.Target, s.cfg.Items, s.line, "items", func(c *client, part, i int) int {
		return stormItems[s.cfg.Kind](c, fmt.Sprintf("%d:%06d", part, i/s.cfg.Fields), fmt.Sprintf("%d:%08d", part, i), at)
	})
	if err != nil {
		return err
	}
	size, err := s.ctl.do("DBSIZE")
	if err != nil {
		return err
	}
	fmt.Fprintf(s.cfg.Out, "loaded %d keys in %.1fs; %.1fs to the deadline; rss %d MiB; dbsize %s\n",
		s.cfg.Items, time.Since(start).Seconds(), time.Until(s.deadline).Seconds(), residentMiB(s.cfg.PID), size)
	if time.Until(s.probesFrom()) < 0 {
		return errors.New("loading took too long: raise --lead")
	}
	return nil
}

// measure probes from now until after the storm, and prints what was found.
func (s *storm) measure(ctx context.Context) error {
	p := probes{target: s.cfg.Target, rate: s.cfg.Rate}
	var v view
	err := p.during(ctx, func(ctx context.Context) (err error) {
		v, err = s.watch(ctx)
		return err
	})
	if err != nil {
		return err
	}
	p.print(s.cfg.Out, "before", s.deadline.Add(-s.cfg.Before), s.deadline.Add(-10*time.Millisecond))
	p.print(s.cfg.Out, "during", s.deadline, s.deadline.Add(v.during))
	p.print(s.cfg.Out, "after", s.deadline.Add(v.during), s.deadline.Add(v.during+s.cfg.After))
	fmt.Fprintf(s.cfg.Out, "half gone after %s, all gone after %s; server cpu %.2fs in %s; rss %d MiB\n", v.half.Round(time.Millisecond),
		v.all.Round(time.Millisecond), v.cpu.Seconds(), v.during.Round(time.Millisecond), v.rss)
	if lag, err := s.ctl.lag(); err == nil && lag != "" {
		fmt.Fprintf(s.cfg.Out, "the server's own figures: %s\n", lag)
	}
	return nil
}

// lag returns how late the server says it was, where it says so: INFO expiry.
func (c *client) lag() (string, error) {
	v, err := c.do("INFO", "expiry")
	if err != nil {
		return "", err
	}
	var out []string
	for line := range strings.Lines(v.String()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if short, ok := strings.CutPrefix(name, "expiry_lag_"); ok && strings.HasSuffix(short, "_us") && !strings.Contains(short, "histogram") {
			out = append(out, strings.TrimSuffix(short, "_us")+" "+value+" us")
		}
	}
	return strings.Join(out, ", "), nil
}

// view has the figures of the storm that the control connection has read.
type view struct {
	half, all time.Duration // after the deadline
	during    time.Duration
	cpu       time.Duration
	rss       int // MiB
}

// watch follows the reclaiming, and returns when all the time to measure is
// over.
func (s *storm) watch(ctx context.Context) (v view, err error) {
	if err := s.line.wait(ctx, s.deadline, "measuring before the storm"); err != nil {
		return v, err
	}
	cpu, err := CPUTime(s.cfg.PID)
	if err != nil {
		return v, err
	}
	for v.all == 0 {
		n, err := s.ctl.expired()
		if err != nil {
			return v, err
		}
		n -= s.before
		since := time.Since(s.deadline)
		if v.half == 0 && n >= s.cfg.Items/2 {
			v.half = since
		}
		switch {
		case n >= s.cfg.Items:
			v.all = since
		case since > s.cfg.Tail:
			return v, fmt.Errorf("after %s the server counts %d of %d as expired", s.cfg.Tail, n, s.cfg.Items)
		default:
			s.line.set("storm: %s of %s reclaimed", thousands(float64(n)), thousands(float64(s.cfg.Items)))
			time.Sleep(5 * time.Millisecond)
		}
	}
	v.during = max(v.all, s.cfg.During)
	if err := s.line.wait(ctx, s.deadline.Add(v.during), "measuring during the storm"); err != nil {
		return v, err
	}
	used, err := CPUTime(s.cfg.PID)
	if err != nil {
		return v, err
	}
	v.cpu, v.rss = used-cpu, residentMiB(s.cfg.PID)
	return v, s.line.wait(ctx, s.deadline.Add(v.during+s.cfg.After), "measuring after the storm")
}
