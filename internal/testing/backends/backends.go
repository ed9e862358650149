// Package backends runs a test on every kind of backend that a program may have. The tests
// that call Each are the conformance suite of the toolkit.
//
//	func TestMain(m *testing.M) { backends.Main(m) }
//
//	func TestALockHasOneHolder(t *testing.T) {
//		backends.Each(t, func(t *testing.T, b *backends.Backend) {
//			l := lock.New(b.Conn, b.Name("report"), ...)
//			...
//			b.Pass(50 * time.Millisecond) // lets time pass
//		})
//	}
//
// The environment variable EBB_BACKENDS names the kinds to run on, "all" or some of Kinds
// separated by commas; without it, tests run on the kinds that start quickly: mem, file,
// ebb3 and redis, and in the short tier on mem only. redis is Redis 7, redis8 Redis 8 and valkey9
// Valkey 9. ebb-scripts is an ebb server that hides its own commands from the objects, so
// that their scripts run there. sentinel is a master, a replica and three sentinels; cluster
// is six nodes: Backend.Cluster moves their slots.
//
// mem runs the test in a testing/synctest bubble, in virtual time: there a test must not
// call t.Run, t.Parallel or t.Deadline, and may wait as long as it likes. On all other
// kinds Pass takes real time: keep times to tens of milliseconds. The tests of a process
// share the servers: take names of keys from Backend.Name.
//
// Start reading at Each.
package backends

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Backend is an open backend for one test.
type Backend struct {
	*ebb.Conn
	// Kind is one of Kinds.
	Kind string

	t    testing.TB
	nr   int64            // of all backends of the process
	mem  *ebbtest.Backend // nil for kinds other than mem
	site site
}

// kind is a kind of backend, with the function that starts one.
type kind struct {
	name  string
	quick bool // it starts in less than a second
	// start starts the site that all tests of the process share; nil if each test opens its
	// own.
	start func(t testing.TB) site
}

// site holds the servers that the tests of a kind share.
type site struct {
	url string
	// fault kills and restarts a server of the data, if the kind can.
	fault func()
	// repair undoes the rest of a fault; nil if there is none.
	repair func()
	// wrap wraps each connection, if it is not nil.
	wrap    func(c *ebb.Conn) *ebb.Conn
	process *realserver.Process // a single server; nil if there is none
	cluster *Cluster
	group   *Group
}

// Kinds returns the names that EBB_BACKENDS knows, in the order of the table.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

func kinds() []kind {
	return []kind{
		{name: virtual, quick: true},
		{name: "file", quick: true},
		{name: "ebb2", start: ebbServer("?protocol=2")},
		{name: "ebb3", quick: true, start: ebbServer("")},
		{name: "redis", quick: true, start: redisServer(realserver.Redis7)},
		{name: "ebb-scripts", start: scripts},
		{name: "sentinel", start: sentinelSite},
		{name: "cluster", start: clusterSite},
		{name: "redis8", start: redisServer(realserver.Redis8)},
		{name: "valkey9", start: redisServer(realserver.Valkey9)},
	}
}

// chosen returns the kinds to run on.
func chosen(t testing.TB) []kind {
	all := kinds()
	env := os.Getenv("EBB_BACKENDS")
	if env == "all" {
		return all
	}
	if env == "" && realserver.Alone() {
		return slices.DeleteFunc(all, func(k kind) bool { return k.name != virtual })
	}
	if env == "" {
		return slices.DeleteFunc(all, func(k kind) bool { return !k.quick })
	}
	var some []kind
	for _, name := range strings.Split(env, ",") {
		i := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
		if i < 0 {
			t.Fatalf("EBB_BACKENDS: %q is none of %s", name, strings.Join(Kinds(), ", "))
		}
		some = append(some, all[i])
	}
	return some
}

// On runs a test on some of the chosen kinds, each as a subtest of that name. It does not
// create a subtest for the others, so none is skipped.
type On func(t *testing.T, test func(t *testing.T, b *Backend))

// Each runs a test on each kind of backend.
func Each(t *testing.T, test func(t *testing.T, b *Backend)) {
	t.Helper()
	Except(t, nil, test)
}

// Virtual runs a test on kind mem only. It is for tests that assert exact times or let
// hours pass.
func Virtual(t *testing.T, test func(t *testing.T, b *Backend)) {
	t.Helper()
	only(t, func(k kind) bool { return k.name == virtual }, test)
}

// Except runs a test on all kinds except some, on which it would prove nothing.
func Except(t *testing.T, kinds []string, test func(t *testing.T, b *Backend)) {
	t.Helper()
	only(t, func(k kind) bool { return !slices.Contains(kinds, k.name) }, test)
}

// Asked runs a test on those of the given kinds that EBB_BACKENDS names. It is for tests
// that take too long to run by default.
func Asked(t *testing.T, kinds []string, test func(t *testing.T, b *Backend)) {
	t.Helper()
	only(t, func(k kind) bool { return os.Getenv("EBB_BACKENDS") != "" && slices.Contains(kinds, k.name) }, test)
}

func only(t *testing.T, fits func(k kind) bool, test func(t *testing.T, b *Backend)) {
	t.Helper()
	for _, k := range chosen(t) {
		if fits(k) {
			t.Run(k.name, func(t *testing.T) { k.run(t, test) })
		}
	}
}

// virtual is the kind whose time is virtual.
const virtual = "mem"

// run runs a test on one kind.
func (k kind) run(t *testing.T, test func(t *testing.T, b *Backend)) {
	t.Helper()
	if k.name == virtual {
		synctest.Test(t, func(t *testing.T) {
			m := ebbtest.Run(t)
			test(t, &Backend{Conn: m.Conn, Kind: k.name, t: t, mem: m, nr: servers.next()})
		})
		return
	}
	b := &Backend{Kind: k.name, t: t, nr: servers.next()}
	if k.start == nil {
		b.site.url = "file://" + t.TempDir()
	} else {
		b.site = servers.site(t, k)
	}
	b.Conn = b.Open()
	test(t, b)
}

// Open returns another connection to the same data, as another program would have. The end
// of the test closes it.
func (b *Backend) Open() *ebb.Conn {
	b.t.Helper()
	if b.mem != nil {
		return b.mem.Conn
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := ebb.Open(ctx, b.site.url)
	if err != nil {
		b.t.Fatal(err)
	}
	if b.site.wrap != nil {
		c = b.site.wrap(c)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Cluster returns the cluster of kind cluster, for tests that move its slots; nil for
// other kinds.
func (b *Backend) Cluster() *Cluster {
	if b.site.cluster != nil {
		b.t.Cleanup(b.site.cluster.Repair)
	}
	return b.site.cluster
}

// URL returns what Open opens; empty for mem, which is private.
func (b *Backend) URL() string { return b.site.url }

// Native reports whether the backend has ebb's own commands.
func (b *Backend) Native() bool { return b.Capabilities().Native }

// Virtual reports whether the time is virtual, so that only Pass advances it.
func (b *Backend) Virtual() bool { return b.mem != nil }

// Name returns a name that no other test uses, nor another run of this one.
func (b *Backend) Name(name string) string {
	return fmt.Sprintf("%s:%d:%s", b.t.Name(), b.nr, name)
}

// patience is the limit of a wait for an event that comes in milliseconds, or on a busy
// machine in seconds.
var patience = tier.Patience

// Context returns a context that ends when the test takes far too long; in virtual time it
// does not end.
func (b *Backend) Context() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	if b.mem == nil {
		ctx, cancel = context.WithTimeout(ctx, patience)
	}
	b.t.Cleanup(cancel)
	return ctx
}

// Pass lets d pass, for the backend and for the program's timers alike.
func (b *Backend) Pass(d time.Duration) {
	if b.mem != nil {
		b.mem.Clock.Advance(d)
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	<-t.C
}

// Until calls ok every few milliseconds until it returns true, and fails the test with
// what if that takes too long.
func (b *Backend) Until(what string, ok func() bool) {
	b.t.Helper()
	for waited := time.Duration(0); !ok(); waited += 2 * time.Millisecond {
		if waited > patience/2 {
			b.t.Fatalf("%s: not within %v", what, patience/2)
		}
		b.Pass(2 * time.Millisecond)
	}
}

// Fault kills a server of the data, after the earlier writes are safe. A single server
// starts again, as after a crash. For the kinds sentinel and cluster, a master stays dead
// until the test ends; calls fail for some seconds, and a replica takes over: use Until.
// It reports false if the kind has no server to kill.
func (b *Backend) Fault() bool {
	if b.site.fault == nil {
		return false
	}
	if b.site.repair != nil {
		b.t.Cleanup(func() { b.shared(b.site.repair) })
	}
	b.shared(b.site.fault)
	return true
}

// FaultAt kills the master of a key, as Fault does, on kind cluster.
func (b *Backend) FaultAt(key string) bool {
	if b.site.cluster == nil {
		return b.Fault()
	}
	b.t.Cleanup(func() { b.shared(b.site.repair) })
	b.shared(func() { b.site.cluster.KillMaster(key) })
	return true
}

// shared runs f on the servers that tests share. If f panics, shared ends the test, and the later tests of the kind.
func (b *Backend) shared(f func()) {
	b.t.Helper()
	if m := try(f); m != nil {
		servers.breaks(b.Kind, *m)
		m.end(b.t)
	}
}

// ebbServer returns a function that starts the real program, with files.
func ebbServer(parameters string) func(t testing.TB) site {
	return func(t testing.TB) site {
		p := realserver.NewProcess(t, realserver.Ebb(t), "--appendonly", "yes", "--appendfsync", "always")
		p.Start()
		return site{url: fmt.Sprintf("redis://%s/0%s", p.Addr(), parameters), process: p, fault: func() { p.Kill(); p.Start() }}
	}
}

// redisServer returns a function that starts a program of Redis or Valkey.
func redisServer(program string) func(t testing.TB) site {
	return func(t testing.TB) site {
		p := realserver.NewProcess(t, program, "--save", "", "--appendonly", "yes", "--appendfsync", "always")
		p.Start()
		return site{url: "redis://" + p.Addr() + "/0", process: p, fault: func() { p.Kill(); p.Start() }}
	}
}

// scripts starts an ebb server that looks to objects like another server.
func scripts(t testing.TB) site {
	s := ebbServer("")(t)
	s.wrap = hide
	return s
}
