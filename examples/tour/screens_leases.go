package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/queue"
)

// timeline is a row of marks over the time of a screen.
type timeline struct {
	length  time.Duration
	columns int
	runes   []rune
	styles  []style
	drawn   int // columns that extend has drawn
}

func newTimeline(length time.Duration, columns int) *timeline {
	return &timeline{length, columns, []rune(strings.Repeat(" ", columns)), make([]style, columns), 0}
}

func (l *timeline) column(t time.Duration) int {
	return min(max(int(t*time.Duration(l.columns)/l.length), 0), l.columns-1)
}

func (l *timeline) mark(t time.Duration, st style, r rune) {
	l.runes[l.column(t)], l.styles[l.column(t)] = r, st
}

// extend marks the columns since the last call. At a high speed they can be more than one.
func (l *timeline) extend(t time.Duration, st style, r rune) {
	to := l.column(t)
	for x := min(l.drawn, to); x <= to; x++ {
		l.runes[x], l.styles[x] = r, st
	}
	l.drawn = to + 1
}

func (l *timeline) draw(cv *canvas, x, y int) {
	for i, r := range l.runes {
		if r == ' ' {
			cv.put(x+i, y, dim, "·")
		} else {
			cv.put(x+i, y, l.styles[i], string(r))
		}
	}
}

// playLimiter is row 2.
func playLimiter(s *stage) error {
	const length = 7 * second
	lim, err := limit.New(s.c, "api", limit.Per(5, s.d(second)), limit.FailClosed)
	if err != nil {
		return err
	}
	type client struct {
		name  string
		pause time.Duration
		line  *timeline
		count [2]int
	}
	clients := []*client{{name: "ann", pause: 450 * time.Millisecond}, {name: "bob", pause: 190 * time.Millisecond},
		{name: "eve", pause: 70 * time.Millisecond}}
	for i, c := range clients {
		c.line = newTimeline(length, 62)
		s.every(time.Duration(300+10*i)*time.Millisecond, c.pause, length-200*time.Millisecond, func(int) error {
			r, err := lim.Allow(s.ctx, c.name)
			if err != nil {
				return err
			}
			call := fmt.Sprintf("limiter.Allow(ctx, %q)", c.name)
			if r.Allowed {
				c.count[0]++
				c.line.mark(s.now(), green, '●')
				s.note(call, fmt.Sprintf("allowed, %d left", r.Remaining), green)
			} else {
				c.count[1]++
				c.line.mark(s.now(), red, '○')
				s.note(call, fmt.Sprintf("refused, try again in %d ms", s.told(r.RetryAfter).Milliseconds()), red)
			}
			return nil
		})
	}
	return s.show(length, func(cv *canvas, _ time.Duration) error {
		for i, c := range clients {
			y := top + i*5
			p, err := lim.Peek(s.ctx, c.name)
			if err != nil {
				return err
			}
			cv.put(1, y, bold, c.name)
			cv.putf(14, y, dim, "asks every %v", c.pause)
			cv.right(78, y, plain, fmt.Sprintf("%d granted, %d refused", c.count[0], c.count[1]))
			c.line.draw(cv, 14, y+1)
			cv.put(1, y+2, dim, "left")
			cv.bar(14, y+2, 20, aging(float64(p.Remaining)/5), float64(p.Remaining)/5)
			cv.putf(36, y+2, plain, "%d of %d", p.Remaining, p.Limit)
		}
		return nil
	})
}

// lockWorker is one of the workers of row 8. The stage's mu guards all but the name.
type lockWorker struct {
	name  string
	line  *timeline
	state rune
	token int64
	turns int
}

// lockRow is row 8: workers that share a lock, and the one that has taken it last.
type lockRow struct {
	*stage
	workers []*lockWorker
	holder  *lockWorker
}

// playLock is row 8.
func playLock(s *stage) error {
	const length = 9 * second
	row := &lockRow{stage: s}
	for i := range 4 {
		w := &lockWorker{name: fmt.Sprintf("worker-%d", i+1), line: newTimeline(length, 54), state: ' '}
		row.workers = append(row.workers, w)
		l, err := lock.New(s.c, "report", lock.Options{TTL: s.d(1500 * time.Millisecond), Owner: w.name})
		if err != nil {
			return err
		}
		s.act(func(ctx context.Context) error {
			if err := s.sleep(ctx, time.Duration(100+150*i)*time.Millisecond); err != nil {
				return err
			}
			dies := 0
			if i == 1 {
				dies = 2
			}
			return row.work(ctx, w, l, dies)
		})
	}
	return s.show(length, row.draw)
}

// set changes what the screen shows of w. With a token, w is the holder.
func (r *lockRow) set(w *lockWorker, state rune, token int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.state = state
	if token != 0 {
		w.token = token
		w.turns++
		r.holder = w
	}
}

// work takes turns with l until ctx ends. In the turn dies, the worker ends without
// releasing the lock; 0 is never.
func (r *lockRow) work(ctx context.Context, w *lockWorker, l *lock.Lock, dies int) error {
	for turn := 1; ; turn++ {
		r.set(w, '░', 0)
		life, die := context.WithCancel(ctx)
		lease, err := l.Acquire(life, r.d(time.Minute))
		if err != nil {
			die()
			return err
		}
		r.set(w, '█', lease.Token())
		r.note("lock.Acquire(ctx, c, \"report\", 1500*time.Millisecond)", fmt.Sprintf("%s has token %d", w.name, lease.Token()), green)
		if turn == dies {
			if err := r.sleep(ctx, 200*time.Millisecond); err != nil {
				die()
				return err
			}
			r.note("kill -9", w.name+" is gone, and the others do not know", red)
			die()
			r.set(w, '×', 0)
			return nil
		}
		err = r.sleep(ctx, 600*time.Millisecond)
		if err == nil {
			err = lease.Release(ctx)
		}
		die()
		r.set(w, ' ', 0)
		if err == nil {
			err = r.sleep(ctx, 300*time.Millisecond)
		}
		if err != nil {
			return err
		}
	}
}

// draw shows the workers, the holder's lease and the line.
func (r *lockRow) draw(cv *canvas, t time.Duration) error {
	// The call must not hold mu: in a bubble, time stands still while an actor waits for
	// mu.
	v, err := r.do("LOCK.INFO", "report")
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	colours := map[rune]style{'█': green, '░': yellow, '×': red}
	for i, w := range r.workers {
		w.line.extend(t, colours[w.state], w.state)
		y := top + i*3
		cv.put(1, y, bold, w.name)
		w.line.draw(cv, 11, y)
		if w.token != 0 {
			cv.right(79, y, plain, fmt.Sprintf("%d turns", w.turns))
			cv.putf(11, y+1, dim, "token %d", w.token)
		}
	}
	if h, ok := v.Get("holders"); ok && len(h.Elems) > 0 && r.holder != nil {
		ms := r.told(time.Duration(h.Elems[0].Elems[2].Int) * time.Millisecond)
		share := float64(ms) / float64(1500*time.Millisecond)
		cv.putf(1, top+13, bold, "%s's lease", r.holder.name)
		cv.bar(18, top+13, 40, aging(share), share)
		cv.right(70, top+13, plain, fmt.Sprintf("%.1f s", ms.Seconds()))
	}
	line, _ := v.Get("line")
	cv.putf(1, top+14, bold, "in line")
	cv.putf(18, top+14, plain, "%d", len(line.Elems))
	return nil
}

// playDelay is row 11.
func playDelay(s *stage) error {
	const (
		length = 8 * second
		axis   = 44
		span   = 6 * second
	)
	q, err := queue.New(s.c, "later", queue.Options[string]{Lease: s.d(10 * second)})
	if err != nil {
		return err
	}
	type job struct {
		name  string
		due   time.Duration
		state string
		late  time.Duration
		tries int
	}
	jobs := []*job{{name: "welcome", due: 5 * second}, {name: "report", due: 2 * second}, {name: "reminder", due: 3500 * time.Millisecond},
		{name: "invoice", due: 1200 * time.Millisecond},
		{name: "backup", due: 6 * second}, {name: "resize", due: 3500 * time.Millisecond}, {name: "survey", due: 4300 * time.Millisecond}}
	byName := map[string]*job{}
	for _, j := range jobs {
		byName[j.name] = j
		s.at(200*time.Millisecond, func() error {
			_, err := q.Push(s.ctx, j.name, queue.PushOptions{ID: j.name, Delay: s.d(j.due - 200*time.Millisecond)})
			s.note(fmt.Sprintf("q.Push(ctx, %q, queue.PushOptions{Delay: %v})", j.name, j.due), "nil", green)
			return err
		})
	}
	s.act(func(ctx context.Context) error {
		for job, err := range q.Consume(ctx) {
			if err != nil {
				return err
			}
			late := time.Since(job.Due)
			s.mu.Lock()
			j := byName[job.Value]
			j.late, j.tries = late, job.Deliveries
			failed := job.Value == "report" && job.Deliveries == 1
			if failed {
				j.due = s.now() + second
				j.state = "failed, again in 1 s"
			} else {
				j.state = "done"
			}
			s.mu.Unlock()
			if failed {
				s.note("job.Nack(ctx, time.Second)", job.Value+" is due again", red)
				err = job.Nack(ctx, s.d(second))
			} else {
				s.note("job.Ack(ctx)", fmt.Sprintf("%s, delivery %d", job.Value, job.Deliveries), green)
				err = job.Ack(ctx)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return s.show(length, func(cv *canvas, t time.Duration) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		cv.put(12, top, bold, "now")
		cv.right(13+axis, top, dim, "in 6 s")
		for i, j := range jobs {
			y := top + 1 + i*2
			cv.put(1, y, bold, j.name)
			cv.put(12, y, blue, "│")
			if j.state == "done" {
				cv.putf(14, y, green, "done, %.1f ms late", float64(j.late.Microseconds())/1000)
				if j.tries > 1 {
					cv.putf(34, y, dim, "delivery %d", j.tries)
				}
				continue
			}
			if t < 200*time.Millisecond {
				continue
			}
			left := j.due - t
			x := min(max(int(left*axis/span), 0), axis-1)
			cv.put(13, y, dim, strings.Repeat("·", x))
			cv.put(13+x, y, aging(float64(left)/float64(4*second)), "◆")
			cv.right(66, y, plain, fmt.Sprintf("%.1f s", max(left, 0).Seconds()))
			cv.right(79, y, red, strings.TrimSuffix(j.state, ", again in 1 s"))
		}
		return nil
	})
}

// playWindow is row 16.
func playWindow(s *stage) error {
	const (
		length = 8 * second
		quota  = 6
		window = 2 * second
	)
	type side struct {
		name  string
		lim   *limit.Limiter
		line  *timeline
		times []time.Duration
		worst int
	}
	sides := []*side{{name: "any two seconds"}, {name: "even to even second"}}
	for i, algorithm := range []limit.Algorithm{limit.SlidingLog, limit.FixedWindow} {
		lim, err := limit.New(s.c, sides[i].name, limit.Per(quota, s.d(window)), limit.FailClosed, limit.Options{Algorithm: algorithm})
		if err != nil {
			return err
		}
		sides[i].lim, sides[i].line = lim, newTimeline(length, 76)
	}
	// A burst comes before and another after each boundary of the fixed windows.
	began := time.Now()
	period := s.d(window)
	first := s.told(period - time.Duration(began.UnixNano())%period)
	for _, boundary := range []time.Duration{first, first + window, first + 2*window, first + 3*window} {
		for i := range 16 {
			at := boundary + time.Duration(i-8)*60*time.Millisecond + 30*time.Millisecond
			if at < 100*time.Millisecond || at > length-100*time.Millisecond {
				continue
			}
			s.at(at, func() error {
				for _, sd := range sides {
					asked := s.now() // not later than the grant, so that a request that counts as near is near
					r, err := sd.lim.Allow(s.ctx, "ann")
					if err != nil {
						return err
					}
					if !r.Allowed {
						sd.line.mark(s.now(), red, '○')
						s.note("limiter.Allow(ctx, \"ann\")    // "+sd.name, "refused", red)
						continue
					}
					sd.times = append(sd.times, asked)
					sd.line.mark(s.now(), green, '●')
					s.note("limiter.Allow(ctx, \"ann\")    // "+sd.name, "allowed", green)
				}
				return nil
			})
		}
	}
	return s.show(length, func(cv *canvas, t time.Duration) error {
		for i, sd := range sides {
			n := 0
			for _, at := range sd.times {
				if at > t-window {
					n++
				}
			}
			sd.worst = max(sd.worst, n)
			y := top + i*8
			cv.putf(1, y, bold, "%d in %s", quota, sd.name)
			sd.line.draw(cv, 2, y+3)
			from, to := sd.line.column(max(t-window, 0)), sd.line.column(t)
			cv.put(2+from, y+2, cyan, "┌"+strings.Repeat("─", max(to-from-1, 0))+"┐")
			cv.put(2+from, y+4, cyan, "└"+strings.Repeat("─", max(to-from-1, 0))+"┘")
			st := green
			if sd.worst > quota {
				st = red
			}
			cv.putf(2, y+5, plain, "granted in the last two seconds: %2d", n)
			cv.right(78, y+5, st, fmt.Sprintf("at worst %d", sd.worst))
			if i == 1 {
				for b := first; b < length; b += window {
					cv.put(2+sd.line.column(b), y+1, dim, "▾")
				}
			}
		}
		return nil
	})
}

// playFunnel is row 17. Its periods are whole seconds, at any speed of the tour.
func playFunnel(s *stage) error {
	const (
		length = 7 * second
		room   = 11
	)
	var last []int64
	granted, refused := 0, 0
	pour := func(int) error {
		v, err := s.say("CL.THROTTLE", "mail:ann", room-1, 10, 2, 1)
		if err != nil {
			return err
		}
		last = nil
		for _, e := range v.Elems {
			last = append(last, e.Int)
		}
		if len(last) != 5 {
			return errors.New("CL.THROTTLE replied " + v.String())
		}
		if last[0] == 0 {
			granted++
		} else {
			refused++
		}
		return nil
	}
	s.every(300*time.Millisecond, 90*time.Millisecond, 2500*time.Millisecond, pour)
	s.every(4*second, 350*time.Millisecond, 6500*time.Millisecond, pour)
	return s.show(length, func(cv *canvas, t time.Duration) error {
		v, err := s.do("RL.TAKE", "mail:ann", 10, 2000, "BURST", room, "PEEK")
		if err != nil {
			return err
		}
		level := room - int(v.Elems[2].Int)
		const x, w = 8, 24
		cv.put(x-1, top, dim, "╲"+strings.Repeat(" ", w)+"╱")
		for i := range room {
			y := top + room - i
			cv.put(x, y, plain, "│"+strings.Repeat(" ", w-2)+"│")
			if i < level {
				st := green
				if i > room*2/3 {
					st = red
				} else if i > room/3 {
					st = yellow
				}
				cv.put(x+1, y, st, strings.Repeat("▓", w-2))
			}
		}
		cv.put(x, top+room+1, plain, "└"+strings.Repeat("─", w/2-3)+"╮  ╭"+strings.Repeat("─", w/2-3)+"┘")
		if level > 0 {
			cv.put(x+w/2-int(t/(100*time.Millisecond))%2, top+room+2+int(t/(150*time.Millisecond))%2, cyan, "●")
		}
		cv.putf(42, top+1, bold, "CL.THROTTLE mail:ann %d 10 2 1", room-1)
		for i, name := range []string{"refused", "limit", "left", "try again in, s", "empty in, s"} {
			cv.put(44, top+3+i, plain, name)
			if i < len(last) {
				st := plain
				if i == 0 {
					st = [...]style{green, red}[last[0]&1]
				}
				cv.right(66, top+3+i, st, fmt.Sprint(last[i]))
			}
		}
		cv.putf(44, top+10, green, "let through %3d", granted)
		cv.putf(44, top+11, red, "refused     %3d", refused)
		return nil
	})
}
