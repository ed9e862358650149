package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
)

// playList is row 9.
func playList(s *stage) error {
	const length = 8 * second
	jobs := 0
	s.every(200*time.Millisecond, 380*time.Millisecond, 6500*time.Millisecond, func(int) error {
		jobs++
		_, err := s.do("RPUSH", "jobs", fmt.Sprintf("job-%02d", jobs))
		return err
	})
	dead, crashed := false, time.Duration(0)
	ctx2, kill := context.WithCancel(s.ctx)
	defer kill()
	work := func(ctx context.Context, own string, takes time.Duration) error {
		for {
			v, err := s.c.Block(ctx, "BLMOVE", "jobs", own, "LEFT", "RIGHT", 0)
			if err != nil {
				return err
			}
			s.note("BLMOVE jobs "+own+" LEFT RIGHT 0", v.String(), green)
			if err := s.sleep(ctx, takes); err != nil {
				return err
			}
			if _, err := s.do("LREM", own, 1, v.Str); err != nil {
				return err
			}
			if _, err := s.do("RPUSH", "done", v.Str); err != nil {
				return err
			}
		}
	}
	s.act(func(ctx context.Context) error { return work(ctx, "worker-1", 500*time.Millisecond) })
	s.act(func(context.Context) error {
		err := work(ctx2, "worker-2", 650*time.Millisecond)
		if ctx2.Err() != nil {
			return nil // killed
		}
		return err
	})
	s.at(3*second, func() error {
		kill()
		dead, crashed = true, s.now()
		s.note("kill -9", "worker-2 is gone; what it had is in its list", red)
		return nil
	})
	s.at(5*second, func() error {
		_, err := s.say("LMOVE", "worker-2", "jobs", "RIGHT", "LEFT")
		return err
	})
	return s.show(length, func(cv *canvas, t time.Duration) error {
		for i, key := range []string{"jobs", "worker-1", "worker-2", "done"} {
			y := top + i*4
			v, err := s.do("LRANGE", key, -8, -1)
			if err != nil {
				return err
			}
			n, err := s.do("LLEN", key)
			if err != nil {
				return err
			}
			st := [...]style{yellow, blue, blue, green}[i]
			cv.put(1, y+1, bold, key)
			cv.right(79, y+1, dim, n.String())
			if key == "worker-2" && dead {
				cv.put(1, y+2, red, "died")
				st = red
				if t-crashed < 400*time.Millisecond {
					cv.put(62, y+1, red, "✗ ✗ ✗")
				}
			}
			x := 11
			for _, e := range v.Elems {
				cv.box(x, y, 8, 3, st)
				cv.put(x+1, y+1, st, e.String())
				x += 8
			}
		}
		return nil
	})
}

// playPubSub is row 10.
func playPubSub(s *stage) error {
	const length = 7 * second
	type listener struct {
		name, asked string
		since       time.Duration
		got         []string
		on          bool
	}
	all := []*listener{{name: "ann", asked: "news:tea"}, {name: "bob", asked: "news:cake"}, {name: "carol", asked: "news:*"},
		{name: "dave", asked: "news:tea", since: 3500 * time.Millisecond}}
	for _, l := range all {
		s.at(l.since, func() error {
			subscribe := s.c.Subscribe
			if strings.Contains(l.asked, "*") {
				subscribe = s.c.PSubscribe
			}
			sub, err := subscribe(s.ctx, l.asked)
			if err != nil {
				return err
			}
			l.on = true
			s.act(func(ctx context.Context) error {
				for m, err := range sub.All(ctx) {
					if err != nil {
						return err
					}
					s.mu.Lock()
					l.got = append(l.got, m.Payload)
					s.mu.Unlock()
				}
				return nil
			})
			return nil
		})
	}
	s.every(600*time.Millisecond, 420*time.Millisecond, length-300*time.Millisecond, func(i int) error {
		channel := []string{"news:tea", "news:cake", "news:tea", "news:milk"}[i%4]
		_, err := s.say("PUBLISH", channel, fmt.Sprintf("%s-%d", strings.TrimPrefix(channel, "news:"), i+1))
		return err
	})
	return s.show(length, func(cv *canvas, _ time.Duration) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, l := range all {
			x, st := 1+i*20, cyan
			if !l.on {
				st = dim
			}
			cv.box(x, top, 18, bottom-top, st)
			cv.put(x+2, top, bold, " "+l.name+" ")
			if !l.on {
				cv.put(x+2, top+1, dim, "not there yet")
				continue
			}
			cv.put(x+2, top+1, dim, l.asked)
			from := max(len(l.got)-11, 0)
			for j, m := range l.got[from:] {
				st := plain
				if from+j == len(l.got)-1 {
					st = yellow
				}
				cv.put(x+2, top+3+j, st, m)
			}
			cv.right(x+16, bottom-1, bold, fmt.Sprintf(" %d ", len(l.got)))
		}
		return nil
	})
}

// orders is a stream, and the state of its workers.
type orders struct {
	*stage
	ids   []string          // in their order; stage.mu guards it
	acked map[string]string // entry -> worker; stage.mu guards it
	died  bool              // worker-2
}

// playStream is row 12.
func playStream(s *stage) error {
	const length = 8 * second
	o := &orders{stage: s, acked: map[string]string{}}
	if _, err := s.do("XGROUP", "CREATE", "orders", "billing", "$", "MKSTREAM"); err != nil {
		return err
	}
	s.every(300*time.Millisecond, 180*time.Millisecond, 6*second, o.add)
	life, kill := context.WithCancel(s.ctx)
	defer kill()
	s.act(func(ctx context.Context) error {
		for {
			if err := o.read(ctx, "worker-1", 200*time.Millisecond); err != nil {
				return err
			}
			if err := o.claim(ctx, "worker-1"); err != nil {
				return err
			}
		}
	})
	s.act(func(context.Context) error {
		for {
			if err := o.read(life, "worker-2", 450*time.Millisecond); err != nil {
				if life.Err() != nil {
					return nil
				}
				return err
			}
		}
	})
	s.at(3*second, func() error {
		kill()
		o.died = true
		s.note("kill -9", "worker-2 is gone; what it had is pending", red)
		return nil
	})
	return s.show(length, o.picture)
}

func (o *orders) add(i int) error {
	v, err := o.do("XADD", "orders", "*", "order", i+1)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ids = append(o.ids, v.Str)
	return err
}

// read takes new orders and handles them.
func (o *orders) read(ctx context.Context, who string, takes time.Duration) error {
	v, err := o.c.Block(ctx, "XREADGROUP", "GROUP", "billing", who, "COUNT", 2, "BLOCK", o.ms(300*time.Millisecond), "STREAMS", "orders", ">")
	if err != nil || v.IsNull() {
		return err
	}
	entries, _ := v.Get("orders")
	if len(v.Elems) == 1 && len(v.Elems[0].Elems) == 2 { // without RESP3's maps
		entries = v.Elems[0].Elems[1]
	}
	return o.work(ctx, entries.Elems, who, takes)
}

// claim takes orders that other workers have left, and handles them.
func (o *orders) claim(ctx context.Context, who string) error {
	v, err := o.c.Do(ctx, "XAUTOCLAIM", "orders", "billing", who, o.ms(2*second), "0")
	if err != nil || len(v.Elems) < 2 || len(v.Elems[1].Elems) == 0 {
		return err
	}
	entries := v.Elems[1].Elems
	o.note("XAUTOCLAIM orders billing "+who+" 2000 0", fmt.Sprintf("%d entries", len(entries)), green)
	return o.work(ctx, entries, who, 200*time.Millisecond)
}

func (o *orders) work(ctx context.Context, entries []ebb.Value, who string, takes time.Duration) error {
	for _, e := range entries {
		if err := o.sleep(ctx, takes); err != nil {
			return err
		}
		id := e.Elems[0].Str
		if _, err := o.c.Do(ctx, "XACK", "orders", "billing", id); err != nil {
			return err
		}
		o.mu.Lock()
		o.acked[id] = who
		o.mu.Unlock()
	}
	return nil
}

func (o *orders) picture(cv *canvas, _ time.Duration) error {
	v, err := o.do("XPENDING", "orders", "billing", "-", "+", 100)
	if err != nil {
		return err
	}
	pending, held, done := map[string]string{}, map[string]int{}, map[string]int{}
	for _, p := range v.Elems {
		who := p.Elems[1].Str
		pending[p.Elems[0].Str] = who
		held[who]++
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, id := range o.ids {
		st, state := yellow, "new"
		switch who := o.acked[id]; {
		case who != "":
			done[who]++
			st, state = green, "✓ "+who[7:]
		case pending[id] != "":
			st, state = blue, "… "+pending[id][7:]
			if o.died && pending[id] == "worker-2" {
				st = red
			}
		}
		cv.putf(2+i%8*9, top+i/8*2, st, "%2d %s", i+1, state)
	}
	cv.put(2, top+11, dim, "…1 pending at worker-1   ✓1 acknowledged by worker-1")
	for i, who := range []string{"worker-1", "worker-2"} {
		y := top + 13 + i
		cv.put(2, y, bold, who)
		cv.putf(14, y, blue, "pending %d", held[who])
		cv.putf(28, y, green, "done %d", done[who])
		if o.died && who == "worker-2" {
			cv.put(42, y, red, "died")
		}
	}
	return nil
}

// playOrders is row 3.
func playOrders(s *stage) error {
	const (
		length  = 8 * second
		halfAnH = 3 * second
	)
	if _, err := s.do("EXPIRY", "RULE", "SET", "unpaid", "MATCH", "orders:*", "LEVEL", "MEMBER", "TO", "unpaid"); err != nil {
		return err
	}
	if _, err := s.do("XGROUP", "CREATE", "unpaid", "billing", "$", "MKSTREAM"); err != nil {
		return err
	}
	users := []string{"ann", "bob", "carol"}
	order := 0
	add := func(user string) func() error {
		return func() error {
			order++
			_, err := s.say("SADDEX", "orders:"+user, "PX", s.ms(halfAnH), "MAXLEN", 3, "MEMBERS", 1, fmt.Sprintf("o-%02d", order))
			return err
		}
	}
	for _, cue := range []struct {
		ms   int
		user string
	}{{200, "ann"}, {600, "bob"}, {1000, "ann"}, {1400, "ann"}, {1900, "ann"}, {2300, "carol"}, {3700, "bob"}, {4000, "ann"}, {4300, "carol"},
		{4600, "carol"}, {4900, "carol"}, {5900, "bob"}} {
		s.at(time.Duration(cue.ms)*time.Millisecond, add(cue.user))
	}
	s.at(2700*time.Millisecond, func() error {
		_, err := s.say("SREM", "orders:ann", "o-03")
		return err
	})
	s.at(3100*time.Millisecond, add("ann"))
	var events []string
	s.act(func(ctx context.Context) error {
		for {
			v, err := s.c.Block(ctx, "XREADGROUP", "GROUP", "billing", "b-1", "BLOCK", 0, "NOACK", "STREAMS", "unpaid", ">")
			if err != nil {
				return err
			}
			entries, _ := v.Get("unpaid")
			for _, e := range entries.Elems {
				f := ebb.Value{Kind: v.Kind, Elems: e.Elems[1].Elems}
				item, deadline, fired := value(f, "item"), value(f, "deadline"), value(f, "fired-at")
				s.mu.Lock()
				events = append(events, fmt.Sprintf("%s unpaid, %d ms late", item, number(fired)-number(deadline)))
				s.mu.Unlock()
			}
		}
	})
	return s.show(length, func(cv *canvas, _ time.Duration) error {
		for i, user := range users {
			y := top + i*5
			v, err := s.do("SMEMBERS", "orders:"+user, "WITHTTL")
			if err != nil {
				return err
			}
			cv.putf(1, y, bold, "orders:%s", user)
			cv.putf(16, y, dim, "%d of 3", len(v.Elems))
			orders := map[string]int64{}
			for _, m := range v.Elems {
				if len(m.Elems) == 2 {
					orders[m.Elems[0].Str] = m.Elems[1].Int
				}
			}
			row := 0
			for n := 1; n <= order && row < 3; n++ {
				name := fmt.Sprintf("o-%02d", n)
				ms, there := orders[name]
				if !there {
					continue
				}
				left := s.told(time.Duration(ms) * time.Millisecond)
				share := float64(left) / float64(halfAnH)
				row++
				cv.put(3, y+row, plain, name)
				cv.bar(9, y+row, 30, aging(share), share)
				cv.right(47, y+row, plain, fmt.Sprintf("%d min", int(share*30+0.5)))
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		cv.box(50, top, 30, bottom-top, magenta)
		cv.put(52, top, bold, " stream unpaid ")
		from := max(len(events)-12, 0)
		for i, e := range events[from:] {
			cv.put(52, top+2+i, plain, e)
		}
		return nil
	})
}

// value finds a field of a stream's entry, whose fields and values come in turn.
func value(v ebb.Value, name string) string {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if v.Elems[i].Str == name {
			return v.Elems[i+1].Str
		}
	}
	return ""
}

func number(s string) (n int64) {
	_, _ = fmt.Sscan(s, &n)
	return n
}

var errReply = errors.New("an unexpected reply")
