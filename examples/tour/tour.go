// Command tour shows ebb's functions in a terminal, one screen for each example, on an
// engine in this process: orders that expire, a limiter that grants and refuses, a lock
// that several workers acquire in turn.
//
//	Run ── screen ── stage ── engine      a screen's play tells the stage what happens
//	  │                │                  when, and how to draw the state; it reads the
//	  │              canvas               state from the engine for each frame
//	  └─ Terminal ◀────┘                  shows the canvas, and reads keys
//
// Each screen has a fresh engine. On a terminal a screen is drawn twenty times a
// second; elsewhere its last picture is printed, without escape codes.
//
// Invariants: every goroutine of a screen has ended before the next one begins; the
// terminal is as it was when Run returns, even after a panic.
//
// Start reading at Run, then stage.show, then any screen.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Options say how Run plays. The zero value plays all screens at normal speed, as text.
type Options struct {
	Out   io.Writer // the output; nil: no output
	Term  *Terminal // the terminal of Out; nil: Out gets text
	Once  string    // the name of the one screen to play; "": all
	Speed float64   // factor of the speed; 0: 1
	Dir   string    // for the screen that shows files; "": the system's for temporary ones
}

// Names returns the names of the screens, in their order. They are the names of the
// examples.
func Names() []string {
	var names []string
	for _, s := range screens() {
		names = append(names, s.name)
	}
	return names
}

// screen is a screen of the tour.
type screen struct {
	name  string // of the example
	title string
	about string // what to look at: two lines of 78 columns at most
	play  func(s *stage) error
}

// Run plays the screens until the last has ended, q is pressed, or ctx ends; neither
// of the two is an error.
func Run(ctx context.Context, o Options) error {
	if o.Speed == 0 {
		o.Speed = 1
	}
	if !(o.Speed >= 0.1 && o.Speed <= 50) { // this form also refuses NaN
		return fmt.Errorf("the speed is 0.1 to 50, not %g", o.Speed)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	list := screens()
	first, last := 0, len(list)
	if o.Once != "" {
		i := slices.IndexFunc(list, func(s screen) bool { return s.name == o.Once })
		if i < 0 {
			return fmt.Errorf("no screen is called %q; there are %s", o.Once, strings.Join(Names(), ", "))
		}
		first, last = i, i+1
	}
	for i := first; i >= 0 && i < last; {
		step, err := o.screen(ctx, list[i], i, len(list))
		switch {
		case ctx.Err() != nil || errors.Is(err, errQuit):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", list[i].name, err)
		}
		i = max(i+step, first)
	}
	return nil
}

// frameTime is the time between two pictures: bars move smoothly, and a slow link
// to the terminal keeps up.
const frameTime = 50 * time.Millisecond

var (
	errQuit = errors.New("quit")
	errNext = errors.New("next")
	errBack = errors.New("back")
)

// screen plays a screen, and returns the step to the next one.
func (o *Options) screen(ctx context.Context, sc screen, i, n int) (step int, err error) {
	s, err := newStage(ctx, o, sc, i, n)
	if err != nil {
		return 0, err
	}
	err = errors.Join(s.run(sc.play), s.close())
	if o.Term == nil {
		fmt.Fprintf(o.Out, "%s\n", s.cv.text())
	}
	switch {
	case errors.Is(err, errNext):
		return 1, nil
	case errors.Is(err, errBack):
		return -1, nil
	}
	return 1, err
}
