package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
)

const second = time.Second

// playFields is row 1.
func playFields(s *stage) error {
	type field struct {
		name, value string
		ttl         time.Duration // 0: none
	}
	fields := []field{{"user", "ann", 0}, {"language", "en", 0}, {"csrf", "9f3c", 5 * second},
		{"cart", "tea, cake", 4 * second}, {"notice", "saved", 2500 * time.Millisecond}, {"code", "4711", 1500 * time.Millisecond}}
	const key = "session:ann"
	for _, f := range fields {
		s.at(0, func() error {
			if f.ttl == 0 {
				_, err := s.say("HSET", key, f.name, f.value)
				return err
			}
			_, err := s.say("HSETEX", key, "PX", s.ms(f.ttl), "FIELDS", 1, f.name, f.value)
			return err
		})
	}
	s.at(3*second, func() error {
		_, err := s.say("HPEXPIRE", key, s.ms(5*second), "FIELDS", 1, "cart")
		return err
	})
	s.at(4500*time.Millisecond, func() error {
		_, err := s.say("HSETEX", key, "PX", s.ms(1500*time.Millisecond), "FIELDS", 1, "code", "0815")
		return err
	})
	return s.show(7*second, func(cv *canvas, _ time.Duration) error {
		args := []any{"HPTTL", key, "FIELDS", len(fields)}
		for _, f := range fields {
			args = append(args, f.name)
		}
		left, err := s.do(args...)
		if err != nil {
			return err
		}
		all, err := s.do("HGETALL", key)
		if err != nil {
			return err
		}
		n, err := s.do("HLEN", key)
		if err != nil {
			return err
		}
		cv.putf(1, top, bold, "HGETALL %s", key)
		for i, f := range fields {
			y := top + 2 + i*2
			value, there := all.Get(f.name)
			ms := int64(-2)
			if i < len(left.Elems) {
				ms = left.Elems[i].Int
			}
			switch {
			case !there:
				cv.put(3, y, dim, f.name)
				cv.put(13, y, dim, "gone")
			case ms < 0:
				cv.put(3, y, bold, f.name)
				cv.put(13, y, plain, value.String())
				cv.put(26, y, dim, "no deadline")
			default:
				d := s.told(time.Duration(ms) * time.Millisecond)
				share := float64(d) / float64(5*second)
				cv.put(3, y, bold, f.name)
				cv.put(13, y, plain, value.String())
				cv.bar(26, y, 44, aging(share), share)
				cv.right(78, y, plain, fmt.Sprintf("%.1f s", d.Seconds()))
			}
		}
		cv.putf(1, bottom-1, bold, "HLEN %s = %s", key, n)
		return nil
	})
}

// playCommands is row 5.
func playCommands(s *stage) error {
	const key = "loan"
	lines := [][]any{
		{"SET", key, "ann", "PX", s.ms(4 * second)},
		{"PEXPIRE", key, s.ms(6 * second), "GT"},
		{"PEXPIRE", key, s.ms(2 * second), "GT"},
		{"PEXPIRE", key, s.ms(3 * second), "LT"},
		{"SET", key, "bob", "KEEPTTL"},
		{"PEXPIRE", key, s.ms(9 * second), "NX"},
		{"GETEX", key, "PX", s.ms(5 * second)},
		{"PERSIST", key},
		{"PEXPIRE", key, s.ms(1200 * time.Millisecond), "NX"},
	}
	type done struct {
		line, reply string
		left        time.Duration
	}
	var did []done
	ttl := func() (time.Duration, error) {
		d, err := s.c.TTL(s.ctx, key)
		if err == ebb.ErrNil {
			return 0, nil
		}
		if d > 0 {
			d = s.told(d)
		}
		return d, err
	}
	s.every(200*time.Millisecond, 650*time.Millisecond, 6*second, func(i int) error {
		if i >= len(lines) {
			return nil
		}
		v, err := s.say(lines[i]...)
		if err != nil {
			return err
		}
		left, err := ttl()
		did = append(did, done{strings.TrimSpace(fmt.Sprintln(lines[i]...)), oneLine(v), left})
		return err
	})
	return s.show(8*second, func(cv *canvas, _ time.Duration) error {
		left, err := ttl()
		if err != nil {
			return err
		}
		cv.put(1, top, bold, "PTTL")
		switch {
		case left == ebb.Forever:
			cv.put(8, top, cyan, strings.Repeat("█", 58)+" ∞")
		case left == 0:
			cv.put(8, top, dim, strings.Repeat("·", 58))
			if len(did) > 0 {
				cv.right(78, top, red, "expired")
			}
		default:
			share := float64(left) / float64(6*second)
			cv.bar(8, top, 58, aging(share), share)
			cv.right(78, top, plain, fmt.Sprintf("%.2f s", left.Seconds()))
		}
		cv.putf(1, top+2, dim, "%-40s %-10s %s", "command", "reply", "left then")
		for i, d := range did {
			text := fmt.Sprintf("%.2f s", d.left.Seconds())
			if d.left == ebb.Forever {
				text = "for ever"
			}
			st := plain
			if d.reply == "0" {
				st = dim
			}
			cv.putf(1, top+3+i, st, "%-40s %-10s %s", d.line, d.reply, text)
		}
		return nil
	})
}

// playStorm is row 6.
func playStorm(s *stage) error {
	const (
		storm, drip = 20_000, 400
		length      = 7 * second
		stormAt     = 3 * second
		columns     = 70
		rows        = 9
	)
	if _, err := s.do("CONFIG", "SET", "notify-keyspace-events", "Ex"); err != nil {
		return err
	}
	sub, err := s.c.Subscribe(s.ctx, "__keyevent@0__:expired")
	if err != nil {
		return err
	}
	told := 0
	s.act(func(ctx context.Context) error {
		for _, err := range sub.All(ctx) {
			if err != nil {
				return err
			}
			s.mu.Lock()
			told++
			s.mu.Unlock()
		}
		return nil
	})
	base := time.Now().UnixMilli()
	var b ebb.Batch
	for i := range storm {
		b.Do("SET", fmt.Sprintf("storm:%d", i), "x", "PXAT", base+s.d(stormAt).Milliseconds())
	}
	for i := range drip {
		b.Do("SET", fmt.Sprintf("drip:%d", i), "x", "PXAT", base+s.d(second+5*second*time.Duration(i)/drip).Milliseconds())
	}
	if _, err := s.c.Pipeline(s.ctx, &b); err != nil {
		return err
	}
	s.note(fmt.Sprintf("SET storm:0 x PXAT %d, and %d others", base+s.d(stormAt).Milliseconds(), storm+drip-1), "", plain)
	seen := [columns]int64{}
	for i := range seen {
		seen[i] = -1
	}
	return s.show(length, func(cv *canvas, t time.Duration) error {
		n, err := s.c.DBSize(s.ctx)
		if err != nil {
			return err
		}
		for x := min(int(t*columns/length), columns-1); x >= 0; x-- {
			if seen[x] >= 0 && x != min(int(t*columns/length), columns-1) {
				break
			}
			seen[x] = n // and the columns that a high speed has skipped
		}
		cv.putf(1, top, bold, "DBSIZE %6d", n)
		s.mu.Lock()
		cv.putf(18, top, bold, "events %6d", told)
		s.mu.Unlock()
		lag, err := s.do("EXPIRY", "LAG")
		if err != nil {
			return err
		}
		all, _ := lag.Get("key")
		p50, _ := all.Get("p50-us")
		p99, _ := all.Get("p99-us")
		longest, _ := all.Get("max-us")
		cv.putf(35, top, plain, "late in ms: p50 %.1f  p99 %.1f  max %.1f", float64(p50.Int)/1000, float64(p99.Int)/1000,
			float64(longest.Int)/1000)
		for x, n := range seen {
			if n < 0 {
				continue
			}
			cv.column(5+x, top+2, rows, cyan, float64(n)/(storm+drip))
		}
		cv.put(5, top+2+rows, dim, strings.Repeat("─", columns))
		for sec := range 8 {
			cv.putf(min(5+sec*columns/7, 74), top+3+rows, dim, "%ds", sec)
		}
		cv.put(0, top+2, dim, " 20k")
		cv.put(0, top+1+rows, dim, "   0")
		return nil
	})
}

// column draws a share of h rows from the bottom up.
func (c *canvas) column(x, y, h int, st style, share float64) {
	const steps = "▁▂▃▄▅▆▇█"
	n := int(min(max(share, 0), 1)*float64(h)*8 + 0.5)
	for i := range h {
		if part := min(n-i*8, 8); part > 0 {
			c.put(x, y+h-1-i, st, string([]rune(steps)[part-1]))
		}
	}
}

// playFiles plays the row of the tour about files.
func playFiles(s *stage) (err error) {
	dir, err := os.MkdirTemp(s.o.Dir, "ebb-tour-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	url := "file://" + filepath.ToSlash(dir)
	if !strings.HasPrefix(filepath.ToSlash(dir), "/") {
		url = "file:///" + filepath.ToSlash(dir)
	}
	url += "?fsync=no"
	var c *ebb.Conn
	open := func() error {
		c, err = ebb.Open(s.ctx, url)
		s.note("ebb.Open(ctx, \"file:///var/lib/shop\")", "open", green)
		return err
	}
	defer func() {
		if c != nil {
			_ = c.Close()
		}
	}()
	ttls := []time.Duration{1200 * time.Millisecond, 2500 * time.Millisecond, 3500 * time.Millisecond, 5 * second, 6 * second, 9 * second}
	s.at(0, open)
	s.at(200*time.Millisecond, func() error {
		for i, ttl := range ttls {
			if err := c.SetTTL(s.ctx, fmt.Sprintf("seat:%d", i+1), "held", s.d(ttl)); err != nil {
				return err
			}
		}
		s.note("c.SetTTL(ctx, \"seat:6\", \"held\", 9*time.Second)", "nil", green)
		return nil
	})
	s.at(2*second, func() error {
		err := c.Close()
		c = nil
		s.note("c.Close()", "nil: what was written is on disk", yellow)
		return err
	})
	s.at(4*second, open)
	return s.show(6500*time.Millisecond, func(cv *canvas, t time.Duration) error {
		state, st := "open", green
		if c == nil {
			state, st = "closed: no sweep looks at the time", yellow
		}
		cv.put(1, top, bold, "the engine is")
		cv.put(15, top, st, state)
		for i, ttl := range ttls {
			key, y := fmt.Sprintf("seat:%d", i+1), top+2+i
			cv.put(3, y, bold, key)
			left := 200*time.Millisecond + ttl - t
			if c == nil {
				cv.bar(12, y, 52, dim, float64(left)/float64(9*second))
				continue
			}
			d, err := c.TTL(s.ctx, key)
			switch {
			case err == ebb.ErrNil && t > second:
				cv.put(12, y, dim, "gone")
			case err == ebb.ErrNil:
			case err != nil:
				return err
			default:
				share := float64(s.told(d)) / float64(9*second)
				cv.bar(12, y, 52, aging(share*2), share)
				cv.right(78, y, plain, fmt.Sprintf("%.1f s", s.told(d).Seconds()))
			}
		}
		cv.put(1, top+9, bold, "files")
		y := top + 10
		return filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
			if err != nil || e.IsDir() || y > bottom {
				return nil // the file was there a moment ago
			}
			name, _ := filepath.Rel(dir, path)
			if info, err := e.Info(); err == nil {
				cv.putf(3, y, plain, "%-52s %6d bytes", filepath.ToSlash(name), info.Size())
				y++
			}
			return nil
		})
	})
}
