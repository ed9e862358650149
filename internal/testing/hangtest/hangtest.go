package hangtest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

var some = flag.String("hang.objects", "", "only the objects with this in their names")

// object is a row of the table: one object, and the calls of the test.
type object struct {
	name string // of the object, which its errors mention
	key  string

	write, read func(ctx context.Context) error
	// wait is a call that waits until the other program has called wake; nil: the object has
	// no such call.
	wait func(ctx context.Context) error
	wake func(ctx context.Context) error
	// endless says that wait continues while the backend hangs; otherwise it returns an
	// error.
	endless bool
	// cleanup is the time after its deadline in which a call may still clean up.
	cleanup time.Duration
	// during and after check the properties of this object: during runs when the hang has
	// lasted longer than any lease, after when it is over.
	during, after func(t *testing.T, o *object)
}

// site holds the connections and times of one run.
type site struct {
	*testing.T
	b *backends.Backend
	h *backends.Hang
	// c is the connection whose backend hangs; other is the connection of another program.
	c, other *ebb.Conn
	prefix   string
	// lease is the duration of leases. silence is the duration of the hang: longer than
	// lease, and in virtual time long enough for all timeouts.
	lease, silence time.Duration
}

// theirs is the time for which the other program holds the object for which calls wait. It
// is longer than any hang, which lasts until all calls have returned.
const theirs = 10 * time.Minute

// deadline is the time limit of calls while the backend hangs.
const deadline = 100 * time.Millisecond

// slack returns the delay that a busy machine may add, which is much less than a call that
// never returns; in virtual time it is short.
func (s *site) slack() time.Duration {
	if s.b.Virtual() {
		return 55 * time.Millisecond // go-redis looks at its clock every 50 ms
	}
	return 20 * time.Second
}

// Objects runs all objects through a hang of their backend, to which b is a connection.
func Objects(t *testing.T, b *backends.Backend, h *backends.Hang) {
	s := &site{T: t, b: b, h: h, lease: 400 * time.Millisecond, silence: 600 * time.Millisecond}
	if b.Virtual() {
		s.lease, s.silence = 10*time.Second, time.Minute
	}
	var all []*object
	for _, scripts := range []bool{false, true} {
		if scripts && b.Kind != "mem" {
			break // kind ebb-scripts has it
		}
		s.c, s.other, s.prefix = b.Conn, h.Other, "as-it-is:"
		if scripts {
			s.c, s.prefix = b.Hidden(), "scripts:"
			s.other = (&backends.Backend{Conn: h.Other}).Hidden()
		}
		all = append(all, s.objects()...)
	}
	s.run(all)
}

// run runs all objects through one hang.
func (s *site) run(all []*object) {
	all = slices.DeleteFunc(all, func(o *object) bool { return !strings.Contains(o.name, *some) })
	each(all, func(o *object) {
		s.again(o, "write", o.write)
		s.again(o, "read", o.read)
	})
	var waiting sync.WaitGroup
	stop, cancel := context.WithCancel(context.Background()) // without a deadline
	defer waiting.Wait()
	defer cancel()
	waits := map[*object]chan error{}
	for _, o := range all {
		// A client notices a cut connection within half a minute, so this check needs virtual
		// time.
		if o.wait != nil && (s.b.Virtual() || s.h.Way != "cut") {
			done := make(chan error, 1)
			waits[o] = done
			waiting.Go(func() { done <- o.wait(stop) })
		}
	}
	s.b.Pass(20 * time.Millisecond) // most of the calls wait now

	s.h.Begin()
	silence := time.Now()
	each(all, s.speaks)
	if left := s.silence - time.Since(silence); left > 0 {
		s.b.Pass(left)
	}
	for _, o := range all {
		if o.during != nil {
			o.during(s.T, o)
		}
	}
	s.h.End()

	each(all, func(o *object) {
		s.again(o, "write", o.write)
		s.again(o, "read", o.read)
		if o.after != nil {
			o.after(s.T, o)
		}
	})
	var woken sync.WaitGroup
	for o, done := range waits {
		woken.Go(func() { s.woken(context.Background(), o, done) })
	}
	woken.Wait()
}

// each calls do with all objects at the same time.
func each(all []*object, do func(o *object)) {
	var wg sync.WaitGroup
	for _, o := range all {
		wg.Go(func() { do(o) })
	}
	wg.Wait()
}

// speaks checks the errors of an object's calls while its backend hangs.
func (s *site) speaks(o *object) {
	var calls sync.WaitGroup
	defer calls.Wait()
	for what, call := range map[string]func(context.Context) error{"read": o.read, "write": o.write, "wait": o.wait} {
		if call == nil {
			continue
		}
		calls.Go(func() { s.inTime(o, what, call) })
	}
	for what, call := range map[string]func(context.Context) error{"read": o.read, "write": o.write} {
		calls.Go(func() { s.byItself(o, what, call) })
	}
}

// inTime checks a call with a deadline.
func (s *site) inTime(o *object, what string, call func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	took := time.Since(began)
	switch {
	case !errors.Is(err, context.DeadlineExceeded):
		s.Errorf("%s: %s with a deadline, after %v: %v", o.name, what, took, err)
	case !strings.Contains(err.Error(), o.key):
		s.Errorf("%s: %s: the error does not name the object: %v", o.name, what, err)
	case took > deadline+o.cleanup+s.slack():
		s.Errorf("%s: %s took %v, with a deadline of %v: %v", o.name, what, took, deadline, err)
	}
}

// byItself checks a call without a deadline.
func (s *site) byItself(o *object, what string, call func(context.Context) error) {
	began := time.Now()
	err := call(context.Background())
	took := time.Since(began)
	if !errors.Is(err, ebb.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		s.Errorf("%s: %s without a deadline, after %v: %v", o.name, what, took, err)
	}
	// A lock sends three requests, and each may wait behind another one without a reply.
	if limit := 8*backends.Patience + s.slack(); took > limit {
		s.Errorf("%s: %s without a deadline took %v", o.name, what, took)
	}
}

// again waits until a call works.
func (s *site) again(o *object, what string, call func(context.Context) error) {
	var err error
	for range s.tries(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		err = call(ctx)
		if cancel(); err == nil {
			return
		}
		_ = kit.Sleep(context.Background(), 20*time.Millisecond)
	}
	s.Errorf("%s: %s: does not work: %v", o.name, what, err)
}

// first returns the result of a call. It repeats the call, because the backend of a busy
// machine may be late.
func first[V any](s *site, call func(ctx context.Context) (V, error)) (v V) {
	s.Helper()
	var err error
	for range s.tries(20 * time.Millisecond) {
		if v, err = call(s.b.Context()); err == nil {
			return v
		}
		_ = kit.Sleep(context.Background(), 20*time.Millisecond)
	}
	s.Fatal(err)
	return v
}

// tries returns how often a test repeats an attempt with these pauses. An abandoned
// request may hold the object until its lease ends.
func (s *site) tries(pause time.Duration) int { return int((3*s.lease + 10*time.Second) / pause) }

// woken wakes the calls that have waited during the hang.
func (s *site) woken(ctx context.Context, o *object, done chan error) {
	for range s.tries(50 * time.Millisecond) {
		err := o.wake(ctx)
		if err != nil && !errors.Is(err, ebb.ErrUnavailable) {
			s.Errorf("%s: wake: %v", o.name, err)
			return
		}
		timer := time.NewTimer(50 * time.Millisecond)
		select {
		case err := <-done:
			timer.Stop()
			if err != nil && (o.endless || !errors.Is(err, ebb.ErrUnavailable)) {
				s.Errorf("%s: a call that waited during the hang: %v", o.name, err)
			}
			return
		case <-timer.C:
		}
	}
	s.Errorf("%s: %s: a call that waited during the hang still waits", o.name, o.key)
}

// name returns a key of this run.
func (s *site) name(what string) string {
	return s.b.Name(fmt.Sprint(s.prefix, what))
}
