package objects

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// Site is the backend of a check of the rules.
type Site struct {
	*ebb.Conn
	// Name returns a name that no other test uses.
	Name func(name string) string
	// Pass lets time pass.
	Pass func(d time.Duration)
	// Objects are those that the rules are checked for; nil: All.
	Objects []Object
}

// On returns a backend of the conformance suite.
func On(b *backends.Backend) Site { return Site{Conn: b.Conn, Name: b.Name, Pass: b.Pass} }

func (s Site) objects() []Object {
	if s.Objects == nil {
		return All()
	}
	return s.Objects
}

// forEach calls check for each object for which has is true, with a connection that may
// have faults and one that has none.
func (s Site) forEach(t testing.TB, has func(i *Instance) bool, check func(o Object, faulty, plain *Instance, f *backends.Faults)) {
	t.Helper()
	n := 0
	for _, o := range s.objects() {
		c, f := backends.Faulty(s.Conn)
		name := s.Name(o.Constructor)
		i, err := o.New(c, name)
		if err != nil {
			t.Errorf("%s: %v", o.Constructor, err)
			continue
		}
		if !has(i) {
			continue
		}
		plain, err := o.New(s.Conn, name)
		if err != nil {
			t.Fatal(err)
		}
		check(o, i, plain, f)
		n++
	}
	if n == 0 {
		t.Error("no object was looked at")
	}
}

// trouble is a fault during a release.
type trouble struct {
	name string
	// again says that the object must send the request again.
	again bool
	// begin makes the context of the release, and sets the fault.
	begin func(f *backends.Faults) (context.Context, context.CancelFunc)
}

func troubles() []trouble {
	all := []trouble{
		{"its context has ended before", false, func(*backends.Faults) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx, cancel
		}},
		{"its context ends as it is sent", false, func(f *backends.Faults) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			f.Before(cancel)
			return ctx, cancel
		}},
		{"one request is lost", true, func(f *backends.Faults) (context.Context, context.CancelFunc) {
			f.LoseRequests(1)
			return context.WithCancel(context.Background())
		}},
		{"four requests are lost", true, func(f *backends.Faults) (context.Context, context.CancelFunc) {
			f.LoseRequests(4)
			return context.WithCancel(context.Background())
		}},
		{"one reply is lost", true, func(f *backends.Faults) (context.Context, context.CancelFunc) {
			f.LoseReplies(1)
			return context.WithCancel(context.Background())
		}},
		{"one request is lost, and its context has ended", true, func(f *backends.Faults) (context.Context, context.CancelFunc) {
			f.LoseRequests(1)
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx, cancel
		}},
	}
	for _, d := range []time.Duration{50, 100, 200, 350} {
		all = append(all, trouble{fmt.Sprintf("its context has %d us", d), false, func(*backends.Faults) (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), d*time.Microsecond)
		}})
	}
	return all
}

// Releases checks that a released object is free at once, even if the context ends or
// single requests are lost.
func Releases(t testing.TB, s Site) {
	t.Helper()
	ctx := context.Background()
	s.forEach(t, func(i *Instance) bool { return i.Hold != nil }, func(o Object, i, plain *Instance, f *backends.Faults) {
		for _, x := range troubles() {
			if x.again && i.Counts {
				continue
			}
			release, err := i.Hold(ctx)
			if err != nil {
				t.Errorf("%s: before %q: %v", o.Constructor, x.name, err)
				return
			}
			last, cancel := x.begin(f)
			if err := release(last); err != nil {
				t.Errorf("%s: released while %s: %v", o.Constructor, x.name, err)
			}
			cancel()
			free, err := plain.Hold(ctx)
			if err == nil {
				err = free(ctx)
			}
			if err != nil {
				t.Errorf("%s: released while %s, and then: %v", o.Constructor, x.name, err)
				return
			}
		}
	})
}

// Callbacks checks that an object that is held while a function of the caller runs is
// released when the function has ended, even if it panics, if the context ends meanwhile,
// or if requests are lost.
func Callbacks(t testing.TB, s Site) {
	t.Helper()
	s.forEach(t, func(i *Instance) bool { return i.Within != nil }, func(o Object, i, plain *Instance, f *backends.Faults) {
		all := append(troubles(), trouble{name: "the function panics", begin: func(*backends.Faults) (context.Context, context.CancelFunc) {
			return nil, func() { panic(errPanic) }
		}})
		for _, x := range all {
			ctx, cancel := context.WithCancel(context.Background())
			err := within(i, ctx, func() {
				end, done := x.begin(f)
				done()
				if end.Err() != nil && !x.again {
					cancel()
				}
			})
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %s: %v", o.Constructor, x.name, err)
			}
			if i.Stays && x.name == "the function panics" {
				continue
			}
			ran := false
			ctx, cancel = context.WithTimeout(context.Background(), soon)
			err = within(plain, ctx, func() { ran = true })
			cancel()
			if err != nil || !ran {
				t.Errorf("%s: held while %s, and then: %v (it ran: %v)", o.Constructor, x.name, err, ran)
				return
			}
		}
	})
}

var errPanic = errors.New("the test panics")

// within calls Within and recovers a panic, as an HTTP server does.
func within(i *Instance, ctx context.Context, inside func()) (err error) {
	defer func() {
		if p := recover(); p != nil && p != errPanic { //nolint:errorlint // it is this very one
			panic(p)
		}
	}()
	return i.Within(ctx, inside)
}

// Loops checks how each loop ends with its context.
func Loops(t testing.TB, s Site) {
	t.Helper()
	s.forEach(t, func(i *Instance) bool { return len(i.Loops) > 0 }, func(o Object, _, _ *Instance, _ *backends.Faults) {
		var running sync.WaitGroup
		var later []context.CancelFunc
		for n := range must(t, o, s).Loops {
			for _, end := range ends() {
				c, f := backends.Faulty(s.Conn)
				i, err := o.New(c, s.Name(fmt.Sprint(o.Constructor, n, end.name)))
				if err != nil {
					t.Fatal(err)
				}
				l := i.Loops[n]
				if l.Kind == Finite && !end.before {
					continue // it has come to its own end by then
				}
				ctx, cancel := end.begin(f)
				running.Go(func() {
					defer cancel()
					err := l.Run(ctx)
					switch {
					case l.Kind == Endless && err != nil:
						t.Errorf("%s: %s, %s: it yielded %v", o.Constructor, l.Name, end.name, err)
					case l.Kind == Endless && ctx.Err() == nil:
						t.Errorf("%s: %s, %s: it ended before its context", o.Constructor, l.Name, end.name)
					case l.Kind != Endless && !errors.Is(err, end.err):
						t.Errorf("%s: %s, %s: the error has no %q in its chain: %v", o.Constructor, l.Name, end.name, end.err, err)
					}
				})
				if end.later {
					later = append(later, cancel)
				}
			}
		}
		s.Pass(20 * time.Millisecond)
		for _, cancel := range later {
			cancel()
		}
		running.Wait()
	})
}

func must(t testing.TB, o Object, s Site) *Instance {
	t.Helper()
	i, err := o.New(s.Conn, s.Name(o.Constructor))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// end is a way in which a context ends.
type end struct {
	name          string
	before, later bool // before: before the loop begins; later: some ms later
	err           error
	begin         func(f *backends.Faults) (context.Context, context.CancelFunc)
}

func ends() []end {
	timeout := func(d time.Duration) func(*backends.Faults) (context.Context, context.CancelFunc) {
		return func(*backends.Faults) (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), d)
		}
	}
	return []end{
		{"cancelled", false, true, context.Canceled, func(*backends.Faults) (context.Context, context.CancelFunc) {
			return context.WithCancel(context.Background())
		}},
		{"after 20 ms", false, false, context.DeadlineExceeded, timeout(20 * time.Millisecond)},
		{"after 33 ms", false, false, context.DeadlineExceeded, timeout(33 * time.Millisecond)},
		{"a deadline that the client notices early", false, false,
			context.DeadlineExceeded, func(f *backends.Faults) (context.Context, context.CancelFunc) {
				f.Early(2 * time.Millisecond)
				return context.WithTimeout(context.Background(), 40*time.Millisecond)
			}},
		{"cancelled before", true, false, context.Canceled, func(*backends.Faults) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return ctx, cancel
		}},
	}
}

// BadNames are invalid names of objects.
var BadNames = []string{"", "{", "}", "a}b", "jobs{eu", "{}", "{}jobs", "a{}b{c}", "}{"}

// names returns valid names: on a cluster, an object's helper keys must share its slot.
func names(base string) []string {
	return []string{base, "{" + base + "}", "a{" + base + "}b", "{" + base + "}:}{", "{x}" + base, base + " *?[x]\\-é\x00"}
}

// Names checks that bad names and a nil Conn are refused where the object is made, and
// that every object works by every other name.
func Names(t testing.TB, s Site) {
	t.Helper()
	for _, o := range s.objects() {
		for _, name := range BadNames {
			_, err := o.New(s.Conn, name)
			if !errors.Is(err, ebb.ErrArgument) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("%q", name)) {
				t.Errorf("%s of the name %q: %v", o.Constructor, name, err)
			}
		}
		if _, err := o.New(nil, "x"); !errors.Is(err, ebb.ErrArgument) || !strings.Contains(fmt.Sprint(err), "connection is nil") {
			t.Errorf("%s of no connection: %v", o.Constructor, err)
		}
		for _, name := range names(s.Name(o.Constructor)) {
			used(t, s, o, name)
		}
	}
}

// used creates an object, uses it, and deletes it.
func used(t testing.TB, s Site, o Object, name string) {
	t.Helper()
	i, err := o.New(s.Conn, name)
	if err != nil {
		t.Errorf("%s of the name %q: %v", o.Constructor, name, err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := i.Use(ctx); err != nil {
		t.Errorf("%s of the name %q: %v", o.Constructor, name, err)
	}
	if i.KeepsNothing {
		return
	}
	if err := i.Delete(ctx); err != nil {
		t.Errorf("%s of the name %q: delete: %v", o.Constructor, name, err)
	}
}

// Deletes checks that nothing is left of an object that was deleted, and that it may be
// used again.
func Deletes(t testing.TB, s Site) {
	t.Helper()
	for _, o := range s.objects() {
		name := s.Name("deleted:" + o.Constructor)
		i, err := o.New(s.Conn, name)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for range 2 {
			if err := i.Use(ctx); err != nil {
				t.Errorf("%s: %v", o.Constructor, err)
			}
			if keys := left(t, s, name); i.KeepsNothing != (len(keys) == 0) {
				t.Errorf("%s: in use it keeps %q", o.Constructor, keys)
			}
			if i.KeepsNothing {
				continue
			}
			for range 2 {
				if err := i.Delete(ctx); err != nil {
					t.Errorf("%s: delete: %v", o.Constructor, err)
				}
			}
			if keys := left(t, s, name); len(keys) > 0 {
				t.Errorf("%s: deleted, it leaves %q", o.Constructor, keys)
			}
		}
	}
}

// left returns the keys and rules whose names contain a name.
func left(t testing.TB, s Site, name string) (all []string) {
	t.Helper()
	ctx := context.Background()
	for key, err := range s.Scan(ctx, "*"+kit.Escape(name)+"*") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, key)
	}
	if !s.Capabilities().Native {
		return all
	}
	rules, err := s.Do(ctx, "EXPIRY", "RULE", "LIST")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules.Elems {
		if x, _ := r.Get("name"); strings.Contains(x.Str, name) {
			all = append(all, "rule "+x.Str)
		}
	}
	return all
}
