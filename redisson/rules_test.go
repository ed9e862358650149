package redisson

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
	"github.com/ebbdb/ebb/internal/testing/objects"
	"github.com/ebbdb/ebb/lock"
)

// all are the rows of the package's objects for the rules that every object of the toolkit keeps.
func all() []objects.Object {
	return []objects.Object{
		{Constructor: "redisson.NewBloomFilter", New: newFilter},
		{Constructor: "redisson.NewDelayedQueue", New: newQueue},
		{Constructor: "redisson.NewFencedLock", New: newFencedLock},
		{Constructor: "redisson.NewLatch", New: newLatch},
		{Constructor: "redisson.NewLock", New: newSimpleLock},
		{Constructor: "redisson.NewMapCache", New: newMap},
		{Constructor: "redisson.NewPermits", New: newPermits},
		{Constructor: "redisson.NewRateLimiter", New: newLimiter},
		{Constructor: "redisson.NewReadWriteLock", New: newReadWriteLock},
		{Constructor: "redisson.NewSemaphore", New: newSemaphore},
		{Constructor: "redisson.NewSetCache", New: newSet},
	}
}

func rule(t *testing.T, check func(t testing.TB, s objects.Site)) {
	t.Helper()
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		s := objects.On(b)
		s.Objects = all()
		check(t, s)
	})
}

func TestAReleaseOutlivesItsContextAndItsConnection(t *testing.T) { rule(t, objects.Releases) }
func TestALoopEndsAsItsKindSays(t *testing.T)                     { rule(t, objects.Loops) }
func TestNamesAreCheckedWhereTheObjectIsMade(t *testing.T)        { rule(t, objects.Names) }
func TestDeleteLeavesNothing(t *testing.T)                        { rule(t, objects.Deletes) }
func TestTwoPrefixesDoNotMeet(t *testing.T)                       { rule(t, objects.Prefixes) }

func TestWhatACallGaveUpIsGivenBack(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) { objects.GiveUp(t, takers(t, b.Conn, b.Name("up"))) })
}

// takers are those whose backend counts, and does not know which call took something.
func takers(t *testing.T, c *ebb.Conn, name string) []objects.Taker {
	t.Helper()
	hour, client := LockOptions{TTL: time.Hour, UntilRelease: true}, NewClient(c, "")
	l := must(NewLock(client, name+"-lock", hour))(t)
	rw := must(NewReadWriteLock(client, name+"-rw", hour))(t)
	var threads atomic.Int64
	ofThread := func(acquire func(context.Context, int64, time.Duration) (*lock.Lease, error)) func(context.Context) (*lock.Lease, error) {
		return func(ctx context.Context) (*lock.Lease, error) { return acquire(ctx, threads.Add(1), 0) }
	}
	once := func(acquire func(context.Context, int64) (*lock.Lease, error)) func(context.Context) (*lock.Lease, error) {
		return func(ctx context.Context) (*lock.Lease, error) { return acquire(ctx, threads.Add(1)) }
	}
	const permits = 4
	sem := must(NewSemaphore(c, name+"-sem"))(t)
	ok(t, second(sem.TrySetPermits(drivertest.Within(t), permits)))
	giveOne := func(ctx context.Context) error { return sem.Release(ctx, 1) }
	allPermits := func(ctx context.Context) error {
		if n, err := sem.AvailablePermits(ctx); err != nil || n != permits {
			return fmt.Errorf("of %d permits %d are free: %v", permits, n, err)
		}
		return nil
	}
	const rate = 1 << 20
	limiter := must(NewRateLimiter(c, name+"-rate"))(t)
	ok(t, limiter.SetRate(drivertest.Within(t), Rate{Rate: rate, Interval: time.Hour}))
	var granted atomic.Int64
	return []objects.Taker{
		{Name: "TryAcquire of a lock", Take: objects.Leased(once(l.TryAcquire)), Free: objects.AllOf(1, objects.Leased(once(l.TryAcquire)))},
		{Name: "Acquire of a lock", Take: objects.Leased(ofThread(l.Acquire)), Free: objects.AllOf(1, objects.Leased(once(l.TryAcquire)))},
		{Name: "sharing a lock", Take: objects.Leased(ofThread(rw.Share)), Free: objects.AllOf(1, objects.Leased(once(rw.TryAcquire)))},
		{Name: "a lock of writers", Take: objects.Leased(ofThread(rw.Acquire)), Free: objects.AllOf(1, objects.Leased(once(rw.TryAcquire)))},
		{Name: "TryAcquire of a semaphore", Take: func(ctx context.Context) (func(context.Context) error, error) {
			return unlessFailed(giveOne, sem.TryAcquire(ctx, 1))
		}, Free: allPermits},
		{Name: "Acquire of a semaphore", Take: func(ctx context.Context) (func(context.Context) error, error) {
			return unlessFailed(giveOne, sem.Acquire(ctx, 1, 0))
		}, Free: allPermits},
		{Name: "a rate limiter", Take: func(ctx context.Context) (func(context.Context) error, error) {
			err := limiter.Acquire(ctx, 1)
			if err == nil {
				granted.Add(1)
			}
			return nil, err
		}, Free: func(ctx context.Context) error {
			if n, err := limiter.AvailablePermits(ctx); err != nil || n != rate-granted.Load() {
				return fmt.Errorf("of %d permits %d are free after %d grants: %v", rate, n, granted.Load(), err)
			}
			return nil
		}},
	}
}

// unlessFailed returns what a Taker returns for a call with this error.
func unlessFailed(giveBack func(context.Context) error, err error) (func(context.Context) error, error) {
	if err != nil {
		return nil, err
	}
	return giveBack, nil
}

// constructors returns the exported functions New....
func constructors(t *testing.T) map[string]*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob("*.go")
	ok(t, err)
	found := map[string]*ast.FuncDecl{}
	for _, name := range files {
		f := must(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		for _, d := range f.Decls {
			if fn, is := d.(*ast.FuncDecl); is && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "New") && !strings.HasSuffix(name, "_test.go") {
				found["redisson."+fn.Name.Name] = fn
			}
		}
	}
	return found
}

func TestEveryObjectIsInTheTable(t *testing.T) {
	missing := constructors(t)
	for _, o := range all() {
		if missing[o.Constructor] == nil {
			t.Errorf("%s is in the table and nowhere else", o.Constructor)
		}
		delete(missing, o.Constructor)
	}
	delete(missing, "redisson.NewClient") // which makes no object
	for name := range missing {
		t.Errorf("%s has no row: the rules are not checked for it", name)
	}
}

// A constructor is func(c, name string, opts ...Options) (*Object, error).
func TestEveryConstructorHasTheOneShape(t *testing.T) {
	for what, fn := range constructors(t) {
		if what == "redisson.NewClient" {
			continue // it returns no error: the constructors with a Client do
		}
		var names []string
		for _, p := range fn.Type.Params.List {
			for _, n := range p.Names {
				names = append(names, n.Name)
			}
		}
		if got := strings.Join(names, ", "); got != "c, name, opts" {
			t.Errorf("%s has the parameters %s, not c, name, opts", what, got)
		}
		if r := fn.Type.Results; r == nil || len(r.List) != 2 {
			t.Errorf("%s does not return an object and an error", what)
		}
	}
}

func memory(t *testing.T) *ebb.Conn {
	t.Helper()
	c := must(ebb.Open(t.Context(), "mem://"))(t)
	t.Cleanup(func() { ok(t, c.Close()) })
	return c
}

// refused checks the errors of constructors: all are ErrArgument and begin with the package, "expmap" for a map.
func refused(t *testing.T, contains string, all map[string]error) {
	t.Helper()
	for what, err := range all {
		if !errors.Is(err, ebb.ErrArgument) || !begins(err) || !strings.Contains(err.Error(), contains) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// begins reports whether an error begins with the package of its object.
func begins(err error) bool {
	return regexp.MustCompile(`^(redisson:|exp(map|set) ")`).MatchString(err.Error())
}

func TestTwoOptionsAreAnErrorThatNamesTheirNumber(t *testing.T) {
	c := memory(t)
	client := NewClient(c, "")
	refused(t, "2 values of ", map[string]error{
		"NewBloomFilter":   second(NewBloomFilter(c, "x", make([]BloomFilterOptions[string], 2)...)),
		"NewDelayedQueue":  second(NewDelayedQueue(c, "x", make([]DelayedQueueOptions[int], 2)...)),
		"NewFencedLock":    second(NewFencedLock(client, "x", make([]LockOptions, 2)...)),
		"NewLatch":         second(NewLatch(c, "x", make([]LockOptions, 2)...)),
		"NewLock":          second(NewLock(client, "x", make([]LockOptions, 2)...)),
		"NewMapCache":      second(NewMapCache(c, "x", make([]expmap.Options[string, int], 2)...)),
		"NewPermits":       second(NewPermits(c, "x", make([]LockOptions, 2)...)),
		"NewRateLimiter":   second(NewRateLimiter(c, "x", make([]RateLimiterOptions, 2)...)),
		"NewReadWriteLock": second(NewReadWriteLock(client, "x", make([]LockOptions, 2)...)),
		"NewSemaphore":     second(NewSemaphore(c, "x", make([]LockOptions, 2)...)),
		"NewSetCache":      second(NewSetCache(c, "x", make([]expset.Options[int], 2)...)),
	})
}

func TestABadArgumentIsAnErrorThatBeginsWithThePackageAndNamesTheObject(t *testing.T) {
	c := memory(t)
	refused(t, `"x"`, map[string]error{
		"NewMapCache":  second(NewMapCache(c, "x", expmap.Options[int, int]{Events: true})),
		"NewSetCache":  second(NewSetCache(c, "x", expset.Options[int]{Events: true})),
		"NewLock":      second(NewLock(NewClient(c, ""), "x", LockOptions{TTL: 1})),
		"NewSemaphore": second(NewSemaphore(c, "x", LockOptions{TTL: -1})),
	})
}

func TestAConstructorRefusesATypeThatItsCodecCannotEncode(t *testing.T) {
	type value = chan int
	c := memory(t)
	refused(t, "JSON cannot encode chan int", map[string]error{
		"NewBloomFilter":  second(NewBloomFilter[value](c, "x")),
		"NewDelayedQueue": second(NewDelayedQueue[value](c, "x")),
		"NewMapCache":     second(NewMapCache[string, value](c, "x")),
		"NewSetCache":     second(NewSetCache[value](c, "x")),
	})
}

func TestTheErrorsOfOperationsBeginWithThePackage(t *testing.T) {
	c := memory(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for n, o := range all() {
		i := must(o.New(c, fmt.Sprint("x", n)))(t)
		for doing, err := range map[string]error{"use": i.Use(ctx), "delete": i.Delete(ctx)} {
			if err == nil {
				continue // what a release does, the end of the context does not end
			}
			for line := range strings.Lines(err.Error()) {
				if !begins(errors.New(line)) {
					t.Errorf("%s: %s: the error does not begin with the package: %s", o.Constructor, doing, line)
				}
			}
		}
	}
}
