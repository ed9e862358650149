package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ebbdb/ebb"
)

// The rows of a screen: the picture is between the two.
const (
	top    = 5
	bottom = 20
)

// stage holds the engine, the canvas and the actors of a screen.
type stage struct {
	o     *Options
	sc    screen
	index int
	count int

	c      *ebb.Conn
	ctx    context.Context // ends with the screen
	cancel context.CancelFunc
	actors sync.WaitGroup
	began  time.Time
	cues   []cue
	cv     canvas

	mu    sync.Mutex // guards what follows, and what a screen's actors share
	err   error      // what an actor failed with
	said  string     // the last command and its reply
	reply string
	fine  style
}

// cue is something that happens at a certain time of the screen.
type cue struct {
	at time.Duration
	do func() error
}

func newStage(ctx context.Context, o *Options, sc screen, index, count int) (*stage, error) {
	s := &stage{o: o, sc: sc, index: index, count: count}
	s.cv.clear()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		return nil, err
	}
	s.c = c
	s.ctx, s.cancel = context.WithCancel(ctx)
	return s, nil
}

// run plays a screen. It turns a panic into an error, so that the caller restores the
// terminal.
func (s *stage) run(play func(*stage) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	s.began = time.Now()
	return play(s)
}

// close ends the actors and the engine.
func (s *stage) close() error {
	s.cancel()
	s.actors.Wait()
	return s.c.Close()
}

// d converts a time of the screen to real time at the tour's speed, in whole milliseconds,
// the engine's unit. told converts a time of the engine back.
func (s *stage) d(d time.Duration) time.Duration {
	return time.Duration(float64(d) / s.o.Speed).Round(time.Millisecond)
}

func (s *stage) told(d time.Duration) time.Duration {
	return time.Duration(float64(d) * s.o.Speed)
}

// ms returns d in milliseconds, for commands.
func (s *stage) ms(d time.Duration) int64 { return max(s.d(d).Milliseconds(), 1) }

// now returns the time since the screen began, in the screen's time.
func (s *stage) now() time.Duration { return s.told(time.Since(s.began)) }

// at calls do at a time of the screen.
func (s *stage) at(t time.Duration, do func() error) { s.cues = append(s.cues, cue{t, do}) }

// every calls do again and again, from first until until.
func (s *stage) every(first, pause, until time.Duration, do func(i int) error) {
	for i := 0; first+time.Duration(i)*pause < until; i++ {
		s.at(first+time.Duration(i)*pause, func() error { return do(i) })
	}
}

// act starts an actor: a goroutine that may wait. It ends with the screen, which then
// ignores its error.
func (s *stage) act(do func(ctx context.Context) error) {
	s.actors.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				s.fail(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		if err := do(s.ctx); err != nil && s.ctx.Err() == nil {
			s.fail(err)
		}
	})
}

func (s *stage) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// sleep waits for d of the screen's time.
func (s *stage) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(s.d(d))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// do runs a command without showing it.
func (s *stage) do(args ...any) (ebb.Value, error) { return s.c.Do(s.ctx, args...) }

// say runs a command and shows it with its reply. It shows an error reply too, and returns
// no error for it.
func (s *stage) say(args ...any) (ebb.Value, error) {
	v, err := s.c.Do(s.ctx, args...)
	var refused ebb.ReplyError
	switch {
	case errors.As(err, &refused):
		s.note(strings.TrimSpace(fmt.Sprintln(args...)), "(error) "+string(refused), red)
		return v, nil
	case err != nil:
		return v, err
	}
	s.note(strings.TrimSpace(fmt.Sprintln(args...)), oneLine(v), green)
	return v, nil
}

// note shows a line of code or a command, and its result.
func (s *stage) note(said, reply string, fine style) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.said, s.reply, s.fine = said, reply, fine
}

// oneLine returns a reply as one line of text.
func oneLine(v ebb.Value) string {
	if v.IsNull() {
		return "(nil)"
	}
	if len(v.Elems) == 0 {
		return v.String()
	}
	var parts []string
	for _, e := range v.Elems {
		parts = append(parts, oneLine(e))
	}
	return "[" + strings.Join(parts, " ") + "]"
}

// show plays the cues and draws the screen until its time is over or the user presses a
// key. It calls draw with the time of the screen.
func (s *stage) show(length time.Duration, draw func(cv *canvas, t time.Duration) error) error {
	slices.SortStableFunc(s.cues, func(a, b cue) int { return int(a.at - b.at) })
	for {
		now := s.now()
		for len(s.cues) > 0 && s.cues[0].at <= now {
			do := s.cues[0].do
			s.cues = s.cues[1:]
			if err := do(); err != nil {
				return err
			}
		}
		s.mu.Lock()
		err := s.err
		s.mu.Unlock()
		if err != nil {
			return err
		}
		if err := s.draw(min(now, length), length, draw); err != nil {
			return err
		}
		if now >= length {
			return nil
		}
		if err := s.pause(now, length); err != nil {
			return err
		}
	}
}

// draw draws the whole screen, and shows it.
func (s *stage) draw(t, length time.Duration, draw func(cv *canvas, t time.Duration) error) error {
	cv := &s.cv
	cv.clear()
	cv.put(0, 0, title, strings.Repeat(" ", width))
	cv.putf(1, 0, title, "ebb tour   %2d/%d   %s", s.index+1, s.count, s.sc.title)
	cv.right(width-1, 0, title, s.sc.name)
	for i, line := range strings.Split(s.sc.about, "\n") {
		cv.put(1, 2+i, plain, line)
	}
	if err := draw(cv, t); err != nil {
		return err
	}
	s.mu.Lock()
	if s.said != "" {
		cv.put(1, 21, cyan, clip("> "+s.said, width-2))
		cv.put(3, 22, s.fine, clip(s.reply, width-4))
	}
	s.mu.Unlock()
	cv.bar(1, 23, 30, blue, float64(t)/float64(length))
	if s.o.Term != nil {
		cv.right(width-1, 23, dim, "space next   p back   q quit")
		return s.o.Term.show(s.o.Out, cv)
	}
	return nil
}

// clip shortens a text to n columns.
func clip(text string, n int) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", " ")
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// pause waits for the next frame, or for the next cue if that is earlier.
func (s *stage) pause(now, length time.Duration) error {
	wait := min(frameTime, s.d(length-now))
	if len(s.cues) > 0 {
		wait = min(wait, s.d(s.cues[0].at-now))
	}
	t := time.NewTimer(max(wait, time.Millisecond))
	defer t.Stop()
	var keys <-chan key
	if s.o.Term != nil {
		keys = s.o.Term.keys
	}
	select {
	case <-t.C:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	case k := <-keys:
		switch k {
		case keyNext:
			return errNext
		case keyBack:
			return errBack
		case keyQuit:
			return errQuit
		}
		return nil
	}
}
