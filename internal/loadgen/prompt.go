package loadgen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/wire"
)

// PromptConfig describes a test of how late `expired` events are. The zero
// value, with a Target and Out, is one without other keys in the way.
type PromptConfig struct {
	Common
	Background int           // other keys, each with a TTL of an hour
	Probes     int           // keys with one deadline that nothing reads; default 1000
	Lead       time.Duration // from creating them to their deadline; default 2 s
	Wait       time.Duration // longest wait for the last event; default 30 s
}

func (c *PromptConfig) setDefaults() {
	orDefault(&c.Probes, 1000)
	orDefault(&c.Lead, 2*time.Second)
	orDefault(&c.Wait, 30*time.Second)
}

// Prompt prints how many of the probes' events came, and how late. It deletes
// everything in the server, and switches keyspace events on meanwhile.
func Prompt(ctx context.Context, cfg PromptConfig) error {
	cfg.setDefaults()
	p := prompt{cfg: cfg, line: statusLine{cfg.Progress}}
	c, end, err := cfg.Target.emptied(ctx, cfg.Flush)
	if err != nil {
		return err
	}
	defer end()
	p.ctl = c
	restore, err := p.switchOn()
	if err != nil {
		return err
	}
	defer restore()
	err = load(ctx, cfg.Target, cfg.Background, p.line, "background keys", func(c *client, part, i int) int {
		c.add("SET", fmt.Sprintf("bg:%d:%d", part, i), "v", "EX", "3600")
		return 1
	})
	if err != nil {
		return err
	}
	return p.measure(ctx)
}

// prompt is one test under way.
type prompt struct {
	cfg  PromptConfig
	ctl  *client
	line statusLine
}

// switchOn has the server publish expired events; restore undoes that.
func (p *prompt) switchOn() (restore func(), err error) {
	const name = "notify-keyspace-events"
	old, err := p.ctl.do("CONFIG", "GET", name)
	if err != nil {
		return nil, err
	}
	was, _ := old.Get(name)
	if _, err := p.ctl.do("CONFIG", "SET", name, "Ex"); err != nil {
		return nil, err
	}
	return func() { _, _ = p.ctl.do("CONFIG", "SET", name, was.Str) }, nil
}

func (p *prompt) measure(ctx context.Context) error {
	sub, err := p.cfg.Target.client(ctx)
	if err != nil {
		return err
	}
	defer sub.conn.Close()
	defer sub.closeWith(ctx)()
	if _, err := sub.do("SUBSCRIBE", fmt.Sprintf("__keyevent@%d__:expired", p.cfg.Target.DB)); err != nil {
		return err
	}
	deadline, err := p.createProbes()
	if err != nil {
		return err
	}
	_ = sub.conn.SetReadDeadline(deadline.Add(p.cfg.Wait))
	lags, err := p.listen(sub, deadline)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	slices.Sort(lags)
	fmt.Fprintf(p.cfg.Out, "bg=%d delivered=%d/%d within %s", p.cfg.Background, len(lags), p.cfg.Probes, p.cfg.Wait)
	if len(lags) > 0 {
		const unit = 10 * time.Microsecond
		fmt.Fprintf(p.cfg.Out, " lag p50=%s p99=%s max=%s", quantile(lags, 0.5, unit), quantile(lags, 0.99, unit), quantile(lags, 1, unit))
	}
	fmt.Fprintln(p.cfg.Out)
	return nil
}

func (p *prompt) createProbes() (deadline time.Time, err error) {
	deadline = time.Now().Add(p.cfg.Lead)
	at := strconv.FormatInt(deadline.UnixMilli(), 10)
	for i := range p.cfg.Probes {
		p.ctl.add("SET", "probe:"+strconv.Itoa(i), "v", "PXAT", at)
	}
	if err := p.ctl.flush(); err != nil {
		return deadline, err
	}
	return deadline, p.ctl.skip(p.cfg.Probes)
}

// listen collects how late the events come, until all are there or the time is
// up.
func (p *prompt) listen(sub *client, deadline time.Time) (lags []time.Duration, err error) {
	defer p.line.clear()
	for len(lags) < p.cfg.Probes {
		v, err := wire.ReadValue(sub.in)
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			return lags, nil
		}
		if err != nil {
			return lags, err
		}
		if len(v.Elems) != 3 || !strings.HasPrefix(v.Elems[2].Str, "probe:") {
			continue
		}
		lags = append(lags, time.Since(deadline))
		if len(lags)%50 == 0 {
			p.line.set("%d of %d events, the last %s late", len(lags), p.cfg.Probes, lags[len(lags)-1].Round(10*time.Microsecond))
		}
	}
	return lags, nil
}
