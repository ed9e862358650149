package backends

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/ebbdb/ebb/internal/testing/leaks"
)

// sharedServers owns the servers that the tests of a process share. The code that starts them
// sees it as a test that lasts as long as the process.
type sharedServers struct {
	testing.TB // nil: the methods below replace those that are called

	nr   atomic.Int64 // of the last backend
	main atomic.Bool  // Main runs the tests, and ends the servers later

	mu    sync.Mutex // guards what follows
	sites map[string]site
	// failed has the kinds whose servers did not start. A start takes a minute to fail, so the next tests do not try it again.
	failed map[string]missing
	ends   []func()
	dirs   []string
}

// servers holds the servers of this process from the first test on. Main ends them.
var servers = &sharedServers{sites: map[string]site{}, failed: map[string]missing{}}

func (h *sharedServers) next() int64 { return h.nr.Add(1) }

// missing is the panic that ends a start because a program is missing.
type missing struct {
	reason string
	skip   bool
}

// site returns the servers that the tests of a kind share; the first test starts them.
// Without Main each test starts its own.
func (h *sharedServers) site(t testing.TB, k kind) (s site) {
	t.Helper()
	if !h.main.Load() {
		return k.start(t) // for this test alone: nothing ends it later
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if m, ok := h.failed[k.name]; ok {
		m.end(t)
	}
	if s, ok := h.sites[k.name]; ok {
		return s
	}
	if m := try(func() { s = k.start(h) }); m != nil {
		h.failed[k.name] = *m
		m.end(t)
	}
	h.sites[k.name] = s
	return s
}

// try runs f, and returns why it ended early, if code in it has called Fatal or Skip of sharedServers.
func try(f func()) (early *missing) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case missing:
			early = &p
		default:
			panic(p)
		}
	}()
	f()
	return nil
}

// breaks notes that the servers of a kind can no longer be used.
func (h *sharedServers) breaks(kind string, m missing) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failed[kind] = m
}

// end ends a test for the reason that has ended a start.
func (m missing) end(t testing.TB) {
	t.Helper()
	if m.skip {
		t.Skip(m.reason)
	}
	t.Fatal(m.reason)
}

// Main runs the tests of a package, ends the servers, and fails if a goroutine is
// left over. Call it from TestMain.
func Main(m *testing.M) {
	redis.SetLogger(silence{})
	servers.main.Store(true)
	code := m.Run()
	servers.close()
	if code == 0 {
		if err := leaks.Find(theirs()...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// theirs returns the goroutines of go-redis that continue after its clients were closed:
// its clock, which never ends, and after faults a pause between two attempts to connect
// and the listener to sentinels. scs.New starts a sweeper that its user cannot end for
// certain: StopCleanup does nothing before the sweeper has begun.
func theirs() (o []goleak.Option) {
	const lib = "github.com/redis/go-redis/v9"
	for _, f := range []string{"/internal/pool.startGlobalTimeCache.func1", "/internal/pool.(*ConnPool).tryDial",
		".(*sentinelFailover).listen",
		".(*channel).initHealthCheck.func1", ".(*channel).initMsgChan.func1"} {
		o = append(o, goleak.IgnoreAnyFunction(lib+f))
	}
	return append(o, goleak.IgnoreAnyFunction("github.com/alexedwards/scs/v2/memstore.(*MemStore).startCleanup"))
}

// silence is a logger for go-redis that drops its messages about the faults of tests.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

func (h *sharedServers) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.ends) - 1; i >= 0; i-- {
		h.ends[i]()
	}
	for _, dir := range h.dirs {
		_ = os.RemoveAll(dir)
	}
}

// The methods below are the part of testing.TB that internal/testing/realserver calls.

func (h *sharedServers) Helper()          {}
func (h *sharedServers) Name() string     { return "the backends of this process" }
func (h *sharedServers) Cleanup(f func()) { h.ends = append(h.ends, f) }
func (h *sharedServers) Log(args ...any)  { fmt.Fprintln(os.Stderr, args...) }
func (h *sharedServers) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (h *sharedServers) TempDir() string {
	dir, err := os.MkdirTemp("", "ebb-backends-")
	if err != nil {
		h.Fatal(err)
	}
	h.dirs = append(h.dirs, dir)
	return dir
}

// Error and Errorf end what the server is asked for, as Fatal does: no test is known that could fail and go on.
func (h *sharedServers) Error(args ...any)                 { h.Fatal(args...) }
func (h *sharedServers) Errorf(format string, args ...any) { h.Fatalf(format, args...) }

func (h *sharedServers) Fatal(args ...any) { panic(missing{reason: fmt.Sprint(args...)}) }
func (h *sharedServers) Fatalf(format string, args ...any) {
	panic(missing{reason: fmt.Sprintf(format, args...)})
}
func (h *sharedServers) Skip(args ...any) { panic(missing{fmt.Sprint(args...), true}) }
