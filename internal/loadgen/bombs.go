package loadgen

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/resp"
)

// BombsConfig describes scripts that take all the time or memory there is, and
// the clients that are there meanwhile.
type BombsConfig struct {
	Common
	Rate      int           // GETs a second meanwhile, open loop; default 2,000
	Patience  time.Duration // after which the script is killed; default 2 s
	Threshold time.Duration // busy-reply-threshold; default 500 ms
	Only      string        // comma-separated names; all if empty
}

func (cfg *BombsConfig) setDefaults() {
	orDefault(&cfg.Rate, 2000)
	orDefault(&cfg.Patience, 2*time.Second)
	orDefault(&cfg.Threshold, 500*time.Millisecond)
}

// bombs are the scripts.
var bombs = []struct{ name, text string }{
	{"endless loop", `while true do end`},
	{"endless loop, caught", `while true do pcall(function() while true do end end) end`},
	{"endless calls", `while true do redis.call('GET', 'live') end`},
	{"string growth", `local s = 'x' while true do s = s .. s end`},
	{"string growth, slow", `local s = '' while true do s = s .. 'some more text' end`},
	{"string.rep", `local t = {} for i = 1, 1e9 do t[i] = string.rep('x', 1e7) end`},
	{"string.rep, once", `return #string.rep('x', 2^40)`},
	{"find", `return string.find(string.rep('a', 3000), string.rep('a*', 3000) .. 'b')`},
	{"gsub", `return #string.gsub(string.rep('x', 1e6), '', string.rep('y', 1e6))`},
	{"sparse table", `local t = {} for i = 1, 1e9 do t[i * 1048576] = i end`},
	{"large table", `local t = {} for i = 1, 1e12 do t[i] = i end`},
	{"nested tables", `local t = {} while true do t = {t} end`},
	{"deep recursion", `local function f(n) return 1 + f(n + 1) end return f(1)`},
	{"endless tail calls", `local function f() return f() end return f()`},
	{"recursion in pcall", `local function f() return pcall(f) end return f()`},
	{"a million globals", `for i = 1, 1e6 do rawset(_G, 'g' .. i, i) end return 1`},
	{"a million locals' names", `local t = {} for i = 1, 1e6 do t['name' .. i] = i end return 1`},
	{"coroutines",
		`local t = {} while true do local c = coroutine.create(function() coroutine.yield() end) coroutine.resume(c) t[#t + 1] = c end`},
	{"closures", `local t = {} while true do local x = {} t[#t + 1] = function() return x end end`},
	{"sort without order", `local t = {} for i = 1, 1e6 do t[i] = i end table.sort(t, function() return true end)`},
	{"deep JSON", `return cjson.decode(string.rep('[', 1e6))`},
	{"large arguments", `return redis.call('SET', 'bomb', string.rep('x', 600 * 1024 * 1024))`},
	{"many results", `return unpack({}, 1, 1e8)`},
	{"large reply", `local t = {} for i = 1, 3e6 do t[i] = 'element ' .. i end return t`},
}

// Bombs runs each script, kills it where it does not end by itself, and prints
// the latency of the others' GETs, how many of them were refused with BUSY, the
// highest resident memory, and how the script ended.
func Bombs(ctx context.Context, cfg BombsConfig) error {
	cfg.setDefaults()
	c, err := cfg.Target.client(ctx)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	defer c.closeWith(ctx)()
	if _, err := c.do("CONFIG", "SET", "busy-reply-threshold", fmt.Sprint(cfg.Threshold.Milliseconds())); err != nil {
		return err
	}
	if _, err := c.do("SET", "live", "v"); err != nil {
		return err
	}
	fmt.Fprintf(cfg.Out, "%-24s %7s %9s %9s %7s %7s  %s\n", "script", "s", "p99 ms", "max ms", "BUSY", "rss MiB", "how it ended")
	for _, b := range bombs {
		if cfg.Only != "" && !strings.Contains(cfg.Only, b.name) {
			continue
		}
		if err := cfg.runScript(ctx, c, b.name, b.text); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

// runScript runs one of the scripts.
func (cfg *BombsConfig) runScript(ctx context.Context, killer *client, name, text string) error {
	line := statusLine{cfg.Progress}
	defer line.clear()
	line.set("%s", name)
	p := probes{target: cfg.Target, rate: cfg.Rate}
	var rss atomic.Int64
	var from, to time.Time
	var how string
	err := p.during(ctx, func(ctx context.Context) error {
		c, err := cfg.Target.client(ctx)
		if err != nil {
			return err
		}
		defer c.conn.Close()
		from = time.Now()
		ended := make(chan error, 1)
		go func() {
			v, err := c.do("EVAL", text, "0")
			var refused resp.ReplyError
			switch {
			case err == nil:
				how = "replied " + clip(v.String())
			case errors.As(err, &refused):
				how, err = clip(string(refused)), nil
			}
			ended <- err
		}()
		kill := time.After(cfg.Patience)
		look := time.NewTicker(5 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case err := <-ended:
				to = time.Now()
				return err
			case <-look.C:
				if n := int64(residentMiB(cfg.PID)); n > rss.Load() {
					rss.Store(n)
				}
			case <-kill:
				if _, err := killer.do("SCRIPT", "KILL"); err != nil && !strings.Contains(err.Error(), "NOTBUSY") {
					return err
				}
			}
		}
	})
	if err != nil {
		return err
	}
	l := p.between(from, to)
	line.clear()
	fmt.Fprintf(cfg.Out, "%-24s %7.2f %9s %9s %7d %7d  %s\n", name, to.Sub(from).Seconds(), ms(quantile(l, 0.99, 1)), ms(quantile(l, 1, 1)),
		p.busy, rss.Load(), how)
	return nil
}

// clip shortens a text for a table.
func clip(s string) string {
	if i := strings.Index(s, " script: "); i >= 0 {
		s = s[:i]
	}
	if len(s) > 90 {
		s = s[:90] + "..."
	}
	return strings.ReplaceAll(s, "\n", " ")
}
