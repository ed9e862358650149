// Package backends runs a test on every kind of backend that a program may have:
// the conformance suite of the toolkit is the tests that go through Each.
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
// The environment variable EBB_BACKENDS names the kinds to run on, "all" or some of
// Kinds separated by commas; without it those are chosen that start at once: mem,
// file, ebb3 and redis, and mem alone with -short. redis8 and valkey8 are servers that run already, at the
// addresses that EBB_REDIS8 and EBB_VALKEY8 hold. ebb-scripts is an ebb server
// whose own commands an object does not see, so that its scripts run there.
// sentinel is a master, a replica and three sentinels; cluster is six nodes:
// Backend.Cluster moves their slots.
//
// mem runs the test in a testing/synctest bubble, in virtual time: there a test must
// not call t.Run, t.Parallel or t.Deadline, and may wait as long as it likes. On all
// others Pass takes its time: keep spans to tens of milliseconds. Servers are shared
// by the tests of a process: take names of keys from Backend.Name.
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
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/realserver"
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

// kind is a kind of backend, and how to have one.
type kind struct {
	name  string
	quick bool // it starts in less than a second
	// start makes what all tests of the process use; nil if each opens its own.
	start func(t testing.TB) site
	env   string // where the address of a server stands that runs already
}

// site is what tests of a kind share.
type site struct {
	url string
	// fault ends and restarts what serves the data, where the kind can.
	fault func()
	// repair undoes what is left of a fault; nil if nothing is.
	repair func()
	// wrap is put around each connection, if not nil.
	wrap    func(c *ebb.Conn) *ebb.Conn
	prefix  string              // of names, on a server that outlives the process
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
		{name: "redis", quick: true, start: redisServer},
		{name: "ebb-scripts", start: scripts},
		{name: "sentinel", start: sentinelSite},
		{name: "cluster", start: clusterSite},
		{name: "redis8", env: "EBB_REDIS8", start: running("EBB_REDIS8")},
		{name: "valkey8", env: "EBB_VALKEY8", start: running("EBB_VALKEY8")},
	}
}

// chosen returns the kinds to run on.
func chosen(t testing.TB) []kind {
	all := kinds()
	env := os.Getenv("EBB_BACKENDS")
	if env == "all" { // a caller that must not skip has named its addresses
		return slices.DeleteFunc(all, func(k kind) bool {
			return k.env != "" && os.Getenv(k.env) == "" && realserver.Required()
		})
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

// On runs a test on some of the kinds that were chosen, each as a subtest of that
// name. On the others the test does not exist: nothing is skipped.
type On func(t *testing.T, test func(t *testing.T, b *Backend))

// Each runs a test on each kind of backend.
func Each(t *testing.T, test func(t *testing.T, b *Backend)) {
	t.Helper()
	Except(t, nil, test)
}

// Virtual runs a test on kind mem alone: one that asserts exact times, or lets hours
// pass.
func Virtual(t *testing.T, test func(t *testing.T, b *Backend)) {
	t.Helper()
	only(t, func(k kind) bool { return k.name == virtual }, test)
}

// Except runs a test on all kinds but some, for which it means nothing.
func Except(t *testing.T, kinds []string, test func(t *testing.T, b *Backend)) {
	t.Helper()
	only(t, func(k kind) bool { return !slices.Contains(kinds, k.name) }, test)
}

// Asked runs a test on those of some kinds that EBB_BACKENDS asks for: it takes too
// long to be run unasked.
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
			test(t, &Backend{Conn: m.Conn, Kind: k.name, t: t, mem: m, nr: theHouse.next()})
		})
		return
	}
	b := &Backend{Kind: k.name, t: t, nr: theHouse.next()}
	if k.start == nil {
		b.site.url = "file://" + t.TempDir()
	} else {
		b.site = theHouse.site(t, k)
	}
	b.Conn = b.Open()
	test(t, b)
}

// Open returns another connection to the same data, as another program has it. It
// is closed when the test ends.
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

// Native reports whether ebb's own commands are there.
func (b *Backend) Native() bool { return b.Capabilities().Native }

// Virtual reports whether time passes by Pass alone.
func (b *Backend) Virtual() bool { return b.mem != nil }

// Name returns a name that no other test uses, nor another run of this one.
func (b *Backend) Name(name string) string {
	return fmt.Sprintf("%s%s:%d:%s", b.site.prefix, b.t.Name(), b.nr, name)
}

// patience bounds the wait for what comes in milliseconds, on a busy machine in seconds.
const patience = time.Minute

// Context returns a context that ends when the test has taken far too long; in
// virtual time nothing does.
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

// Until waits until ok, which it asks every few milliseconds, and fails the test
// with what if that takes too long.
func (b *Backend) Until(what string, ok func() bool) {
	b.t.Helper()
	for waited := time.Duration(0); !ok(); waited += 2 * time.Millisecond {
		if waited > patience/2 {
			b.t.Fatalf("%s: not within %v", what, patience/2)
		}
		b.Pass(2 * time.Millisecond)
	}
}

// Fault kills what serves the data, after what was written before it can be found
// again: a single server is started again, as after a crash; of kinds sentinel and
// cluster a master stays dead until the test ends, calls fail for some seconds, and
// a replica takes over: use Until. It reports false where there is nothing to kill.
func (b *Backend) Fault() bool {
	if b.site.fault == nil {
		return false
	}
	if b.site.repair != nil {
		b.t.Cleanup(b.site.repair)
	}
	b.site.fault()
	return true
}

// FaultAt is Fault for the master of a key, of kind cluster.
func (b *Backend) FaultAt(key string) bool {
	if b.site.cluster == nil {
		return b.Fault()
	}
	b.t.Cleanup(b.site.repair)
	b.site.cluster.KillMaster(key)
	return true
}

// ebbServer returns the real program, with files.
func ebbServer(parameters string) func(t testing.TB) site {
	return func(t testing.TB) site {
		p := realserver.NewProcess(t, realserver.Ebb(t), "--appendonly", "yes", "--appendfsync", "always")
		p.Start()
		return site{url: fmt.Sprintf("redis://%s/0%s", p.Addr(), parameters), process: p, fault: func() { p.Kill(); p.Start() }}
	}
}

func redisServer(t testing.TB) site {
	p := realserver.NewProcess(t, "redis-server", "--save", "", "--appendonly", "yes", "--appendfsync", "always")
	p.Start()
	return site{url: "redis://" + p.Addr() + "/0", process: p, fault: func() { p.Kill(); p.Start() }}
}

// scripts returns an ebb server, as far as objects know another one.
func scripts(t testing.TB) site {
	s := ebbServer("")(t)
	s.wrap = hide
	return s
}

// running returns a server that another process has started, and that others use.
func running(env string) func(t testing.TB) site {
	return func(t testing.TB) site {
		addr := os.Getenv(env)
		if addr == "" {
			realserver.Require(t, env+" does not name a server")
		}
		return site{url: "redis://" + addr + "/0", prefix: kit.ID()[:12] + ":"}
	}
}
