package grouptest

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

var (
	only = flag.String("group.kind", "", "the kind of all rounds; empty: kinds are drawn")
	keep = flag.String("group.keep", "", "a folder for the histories and the logs of rounds that fail, or are slow; empty: they are not kept")
)

const (
	// perRound is the number of acknowledged writes before the fault, and again after it.
	perRound = 300
	// slow is the time without an acknowledgement above which the history is saved.
	slow = 4 * time.Second
	// diskSize is the size of a node's file system, which is more than the data of any node.
	diskSize = "256m"
)

// site is the servers that keep the same data, and the functions by which the rounds use them.
type site struct {
	*testing.T
	net      *network // nil: the process may not create one
	machines []machine
	servers  int // machines with data; witnesses have higher indexes
	write    writes
	connect  func() *redis.Client      // returns a client that finds the master
	url      string                    // of the master, for the toolkit
	view     func(*ebb.Conn) *ebb.Conn // wraps the toolkit's connection; nil: it is used as it is
	master   func() int                // the index of the master; -1: unknown
	settled  func() bool               // reports whether all servers run and are in sync
}

// machine is the processes of one machine, which are killed together.
type machine []*realserver.Process

func (m machine) kill() {
	for _, p := range m {
		p.Kill()
	}
}

// mode is a configuration of a group.
type mode struct {
	name    string
	servers int
	disk    bool // a node that restarts has lost nothing
	args    []string
}

// modes are the groups that the rounds use. The gate runs the first four.
var modes = []mode{
	{"3 nodes, in memory", 3, false, []string{"--appendonly", "no", "--min-sync-replicas", "1"}},
	{"3 nodes, appendfsync everysec", 3, false, []string{"--appendonly", "yes", "--appendfsync", "everysec", "--min-sync-replicas", "1"}},
	{"3 nodes, on disk", 3, true, []string{"--appendonly", "yes", "--appendfsync", "always", "--sync-level", "disk",
		"--min-sync-replicas", "1"}},
	{"2 nodes and a witness, in memory", 2, false, []string{"--appendonly", "no"}},
	{"3 nodes, appendfsync no", 3, false, []string{"--appendonly", "yes", "--appendfsync", "no", "--min-sync-replicas", "1"}},
	{"2 nodes and a witness, on disk", 2, true, []string{"--appendonly", "yes", "--appendfsync", "always", "--sync-level", "disk"}},
}

// fault is a kind of fault.
type fault struct {
	kind  string
	parts bool // it needs the test's network or file systems
	both  bool // it stops two servers
	begin func(f *field) (what string, heal func())
}

// field is the servers that a fault affects.
type field struct {
	*site
	rnd    *rand.Rand
	master int
	most   time.Duration // the longest duration of a fault
}

// lasts waits for the duration of a fault, and returns it.
func (f *field) lasts(least, most time.Duration) time.Duration {
	d := least + draw.Below(f.rnd, most-least)
	wait(f.Context(), d)
	return d.Round(time.Millisecond)
}

// other returns a server that is not the master.
func (f *field) other() int { return (f.master + 1 + f.rnd.IntN(f.servers-1)) % f.servers }

// either returns the master or another server at random.
func (f *field) either() int {
	if f.rnd.IntN(2) == 0 {
		return f.master
	}
	return f.other()
}

// called returns the role of a machine, for the history.
func (f *field) called(i int) string {
	switch {
	case i == f.master:
		return "the master"
	case i >= f.servers:
		return "the witness"
	}
	return "a member"
}

func (f *field) begin(i int) {
	for _, p := range f.machines[i] {
		if err := p.Begin(); err != nil {
			f.Fatal(err)
		}
	}
}

var faults = []fault{
	{kind: "kill -9 of the master", begin: func(f *field) (string, func()) { return f.kills(f.master, f.most) }},
	{kind: "cut in one direction", parts: true, begin: func(f *field) (string, func()) { return f.cuts(false) }},
	{kind: "SIGSTOP of the master", begin: func(f *field) (string, func()) { return f.stops(f.master) }},
	{kind: "full disk", parts: true, begin: (*field).fills},
	{kind: "kill -9 of two servers", both: true, begin: (*field).killsTwo},
	{kind: "clients cut from the master", parts: true, begin: (*field).cutsClients},
	{kind: "restart within group-timeout", begin: func(f *field) (string, func()) { return f.kills(f.either(), groupTimeout*8/10) }},
	{kind: "cut in both directions", parts: true, begin: func(f *field) (string, func()) { return f.cuts(true) }},
	{kind: "kill -9 of a member", begin: func(f *field) (string, func()) { return f.kills(f.other(), f.most) }},
	{kind: "SIGSTOP of a member", begin: func(f *field) (string, func()) { return f.stops(f.other()) }},
}

func (f *field) kills(i int, most time.Duration) (string, func()) {
	f.machines[i].kill()
	away := f.lasts(0, most)
	return fmt.Sprintf("%s was killed, and away for %v", f.called(i), away), func() { f.begin(i) }
}

func (f *field) killsTwo() (string, func()) {
	two := []int{f.master, f.other()}
	f.rnd.Shuffle(2, func(i, j int) { two[i], two[j] = two[j], two[i] })
	f.machines[two[0]].kill()
	between := f.lasts(0, 3*groupTimeout/2)
	f.machines[two[1]].kill()
	f.rnd.Shuffle(2, func(i, j int) { two[i], two[j] = two[j], two[i] })
	f.lasts(0, f.most/2)
	f.begin(two[0])
	f.lasts(0, f.most/2)
	return fmt.Sprintf("two servers were killed, %v after each other", between), func() { f.begin(two[1]) }
}

func (f *field) stops(i int) (string, func()) {
	for _, p := range f.machines[i] {
		p.Pause(f)
	}
	away := f.lasts(min(time.Second, f.most/2), f.most)
	return fmt.Sprintf("%s was stopped for %v", f.called(i), away), func() {
		for _, p := range f.machines[i] {
			p.Resume(f)
		}
	}
}

// between returns the paths between a machine and others, in some directions: 1 from the machine, 2 to it, 3 both.
func between(i int, others []int, directions int, on []line) (all []path) {
	for _, o := range others {
		for _, l := range on {
			if directions&1 != 0 {
				all = append(all, path{i, o, l})
			}
			if directions&2 != 0 {
				all = append(all, path{o, i, l})
			}
		}
	}
	return all
}

var arrows = []string{1: "from", 2: "to", 3: "from and to"}

// cuts cuts a machine, the master in two of three cases, from one other machine or from all.
func (f *field) cuts(both bool) (string, func()) {
	i := f.master
	if f.rnd.IntN(3) == 0 {
		i = f.rnd.IntN(len(f.machines))
	}
	var others []int
	for o := range f.machines {
		if o != i {
			others = append(others, o+1)
		}
	}
	if f.rnd.IntN(3) == 0 {
		one := f.rnd.IntN(len(others))
		others = others[one : one+1]
	}
	directions := 3
	if !both {
		directions = 1 + f.rnd.IntN(2)
	}
	choice := f.rnd.IntN(4)
	on, what := lines, "everything"
	switch choice {
	case 0:
		on, what = []line{data}, "the replication link"
	case 1:
		on, what = []line{peers, sentinel}, "the group's port"
	}
	heal := f.net.cut(between(i+1, others, directions, on))
	away := f.lasts(f.most/10, f.most)
	return fmt.Sprintf("%s was cut %s %s, %d others, for %v", what, arrows[directions], f.called(i), len(others), away), heal
}

// cutsClients cuts the master from the clients, and sometimes from all others.
func (f *field) cutsClients() (string, func()) {
	others := []int{clients}
	if f.rnd.IntN(2) == 0 {
		for o := range f.machines {
			if o != f.master {
				others = append(others, o+1)
			}
		}
	}
	directions := 1 + f.rnd.IntN(3)
	heal := f.net.cut(between(f.master+1, others, directions, lines))
	away := f.lasts(f.most/10, f.most)
	return fmt.Sprintf("clients and %d nodes were cut %s the master, for %v", len(others)-1, arrows[directions], away), heal
}

// fills fills the file system of a server. It returns the server's role, and a function that frees the space.
func (f *field) fills() (string, func()) {
	i := f.either()
	name := f.machines[i][0].Dir + "/filler"
	file, err := unix.Open(name, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		f.Fatal(err)
	}
	for size := int64(0); ; { // fills what the server frees meanwhile too
		var s unix.Statfs_t
		if err := unix.Fstatfs(file, &s); err != nil {
			f.Fatal(err)
		}
		free := int64(s.Bfree) * s.Bsize
		if free == 0 {
			break
		}
		if unix.Fallocate(file, 0, size, free) == nil {
			size += free
		}
	}
	away := f.lasts(f.most/10, f.most)
	return fmt.Sprintf("the disk of %s was full for %v", f.called(i), away), func() {
		_ = unix.Close(file)
		if err := unix.Unlink(name); err != nil {
			f.Error(err)
		}
		for _, p := range f.machines[i] {
			f.revive(p)
		}
	}
}

// revive restarts a program that has ended, as a supervisor would: redis-server ends when a replica cannot write its
// files.
func (f *field) revive(p *realserver.Process) {
	select {
	case <-p.Ended():
		p.Kill()
		if err := p.Begin(); err != nil {
			f.Fatal(err)
		}
	default:
	}
}

// plan is the rounds to play and their results.
type plan struct {
	modes  []mode
	faults []fault // in turn
	rounds int     // per mode
	begin  func(*testing.T, mode, *network) *site
	strict bool // each violation fails the test

	mu  sync.Mutex // guards all
	all []result
}

type result struct {
	kind, mode string
	verdict
	next      time.Duration // from the fault to the first acknowledgement of a write that began after it; -1: none
	gap       time.Duration // the longest time without an acknowledgement since the fault began
	recovered bool
}

// TestNothingAcknowledgedIsLostInFaults exposes groups to faults under load, and compares their data with what they
// have acknowledged.
func TestNothingAcknowledgedIsLostInFaults(t *testing.T) {
	many := modes
	if *rounds <= 2 { // plan.short
		many = modes[:4]
	}
	p := &plan{modes: many, faults: chosen(), rounds: *rounds, begin: groupSite, strict: true}
	p.play(t)
}

// chosen returns the faults that the flag selects.
func chosen() []fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return *only != "" && f.kind != *only })
}

// short reports whether the gate runs the plan.
func (p *plan) short() bool { return p.rounds <= 2 }

// play plays all rounds.
func (p *plan) play(t *testing.T) {
	why := mayCut()
	rnd := draw.Rand(t)
	first := 0
	if !p.short() {
		first = rnd.IntN(len(p.faults))
	}
	t.Run("rounds", func(t *testing.T) {
		for i, m := range p.modes {
			seed := rnd.Uint64()
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				own := rand.New(rand.NewPCG(seed, 0))
				for round, group := 0, 1; round < p.rounds; group++ {
					t.Run(fmt.Sprintf("group %d", group), func(t *testing.T) {
						round = p.group(t, m, own, round, first+i*p.rounds, why == nil)
					})
				}
			})
		}
	})
	t.Logf("\n%s", p.table())
	if why != nil && slices.ContainsFunc(p.faults, func(f fault) bool { return f.parts }) {
		t.Run("cuts and full disks", func(t *testing.T) {
			realserver.Lacks(t, "namespaces", "network namespaces and file systems need a process that may make them: "+why.Error())
		})
	}
}

// group plays rounds with one group until all are played or the group does not recover. It returns the number of the
// next round.
func (p *plan) group(t *testing.T, m mode, rnd *rand.Rand, round, first int, parts bool) int {
	var n *network
	if parts {
		n = newNetwork(t, m.servers|1)
	}
	s := p.begin(t, m, n)
	if !within(t, s.settled) {
		t.Fatalf("the group does not begin; %s", s.said())
	}
	conn, err := ebb.Open(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if s.view != nil {
		conn = s.view(conn)
	}
	c := assemble(t, s.write, s.connect, conn)
	for ; round < p.rounds; round++ {
		x := p.round(s, c, rnd, p.choose(m, first+round, parts), m, round)
		p.mu.Lock()
		p.all = append(p.all, x)
		p.mu.Unlock()
		if !x.recovered {
			return round + 1
		}
	}
	return round
}

// choose returns the fault with a number, or the next one that suits the mode.
func (p *plan) choose(m mode, number int, parts bool) fault {
	for ; ; number++ {
		f := p.faults[number%len(p.faults)]
		switch {
		case f.parts && !parts:
		case f.both && m.servers == 2 && !m.disk: // no copy of the data would be left
		default:
			return f
		}
	}
}

// within waits until yes returns true, for tier.Patience at most. It reports whether yes did.
func within(t *testing.T, yes func() bool) bool {
	for end := time.Now().Add(tier.Patience); time.Now().Before(end); wait(t.Context(), 10*time.Millisecond) {
		if yes() {
			return true
		}
	}
	return false
}

// said returns the last lines of the machines' logs.
func (s *site) said() string {
	var b strings.Builder
	for i, m := range s.machines {
		for _, p := range m {
			fmt.Fprintf(&b, "machine %d said: %s\n", i+1, p.Said())
		}
	}
	return b.String()
}

// round plays one round.
func (p *plan) round(s *site, c *crowd, rnd *rand.Rand, f fault, m mode, round int) result {
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	x := result{kind: f.kind, mode: m.name, next: -1}
	stopped := c.run(ctx, round, rnd)
	goesOn := func() bool {
		before := c.acked.Load()
		return within(s.T, func() bool { return c.acked.Load() >= before+perRound })
	}
	master := -1
	ok := goesOn() && within(s.T, func() bool { master = s.master(); return master >= 0 })
	what := "nothing happened, for no write was acknowledged"
	if ok {
		at := &field{site: s, rnd: rnd, master: master, most: 10 * time.Second}
		if p.short() {
			at.most = 2 * time.Second
		}
		c.mu.Lock()
		c.fault = c.now()
		c.mu.Unlock()
		c.note(c.now(), "the fault begins")
		var heal func()
		what, heal = f.begin(at)
		heal()
		c.note(c.now(), "the fault has ended: %s", what)
		ok = goesOn() && within(s.T, s.settled)
	}
	cancel()
	stopped()
	if c.next != 0 {
		x.next, x.gap = time.Duration(c.next-c.fault), time.Duration(c.gap)
	}
	bad := 0
	say := func(format string, args ...any) {
		c.note(c.now(), format, args...)
		if bad++; bad <= 5 {
			s.Logf("round %d: "+format, append([]any{round + 1}, args...)...)
		}
	}
	if ok {
		var err error
		judging, end := context.WithTimeout(s.Context(), tier.Patience)
		defer end()
		client := s.connect()
		defer client.Close()
		if x.verdict, err = c.judge(judging, round, client, say); err != nil {
			say("the group cannot be read: %v", err)
			ok = false
		}
	} else {
		say("the group does not recover; %s", s.said())
	}
	x.recovered = ok
	s.Logf("round %d: %s: %s; %d acknowledged, %d errors, next write %v, gap %v, %+v", round+1, f.kind, what, c.acked.Load(),
		c.failed.Load(), x.next.Round(time.Millisecond), x.gap.Round(time.Millisecond), x.verdict)
	if bad > 0 && p.strict {
		s.Errorf("round %d: %d violations", round+1, bad)
	}
	if *keep != "" && (bad > 0 || x.gap > slow) {
		var logs []string
		for _, m := range s.machines {
			for _, one := range m {
				logs = append(logs, one.Log())
			}
		}
		c.save(s.T, *keep, round, logs)
	}
	return x
}

// table returns the results, with a line for each kind of fault, for each mode, and for all rounds.
func (p *plan) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-33s %6s %6s %6s %6s %6s %8s %7s %7s %6s %9s %8s %8s %8s %8s\n", "", "rounds", "bad", "lost", "twice", "stale",
		"holders", "tokens", "limits", "jobs", "unrecov.", "next p50", "max", "gap p50", "max")
	row := func(kind string, of func(result) bool) {
		var sum verdict
		var next, gap []time.Duration
		count, bad, without := 0, 0, 0
		for _, x := range p.all {
			if !of(x) {
				continue
			}
			count++
			sum.count(x.verdict)
			if x.verdict != (verdict{}) {
				bad++
			}
			if !x.recovered {
				without++
			}
			if x.next >= 0 {
				next, gap = append(next, x.next), append(gap, x.gap)
			}
		}
		if count == 0 {
			return
		}
		fmt.Fprintf(&b, "%-33s %6d %6d %6d %6d %6d %8d %7d %7d %6d %9d %8v %8v %8v %8v\n", kind, count, bad, sum.lost, sum.twice,
			sum.stale, sum.holders, sum.tokens, sum.limits, sum.jobs, without, middle(next), longest(next), middle(gap), longest(gap))
	}
	for _, f := range p.faults {
		row(f.kind, func(x result) bool { return x.kind == f.kind })
	}
	for _, m := range p.modes {
		row(m.name, func(x result) bool { return x.mode == m.name })
	}
	row("all", func(result) bool { return true })
	return b.String()
}

// middle returns the median.
func middle(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2].Round(time.Millisecond)
}

// longest returns the maximum.
func longest(all []time.Duration) time.Duration {
	return slices.Max(append(all, 0)).Round(time.Millisecond)
}

// disk mounts a file system for a process, which the test can fill.
func disk(t *testing.T, p *realserver.Process) {
	t.Helper()
	if err := unix.Mount("ebb-test", p.Dir, "tmpfs", 0, "size="+diskSize); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if err := unix.Unmount(p.Dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// settle makes a process of a node run in the network n, with some ports.
func (n *network) settle(t *testing.T, node int, p *realserver.Process, ports map[int]line) {
	t.Helper()
	p.Within = func(start func() error) error { return n.in(node, start) }
	for port, l := range ports {
		if err := n.add(port, place{node, l}); err != nil {
			t.Fatal(err)
		}
	}
}

// groupSite starts a group of ebb.
func groupSite(t *testing.T, m mode, n *network) *site {
	g := newGroup(t, m.servers)
	s := &site{T: t, net: n, servers: m.servers, write: plainly, url: "redis+sentinel://" + strings.Join(g.sentinels, ",") + "/ebb"}
	for i, p := range g.all() {
		s.machines = append(s.machines, machine{p})
		if n != nil {
			disk(t, p)
			n.settle(t, i+1, p, map[int]line{p.Port: data, portOf(g.peers[i]): peers, portOf(g.sentinels[i]): sentinel})
		}
	}
	g.begin(m.args...)
	s.connect = g.connect
	s.master = func() int { return slices.Index(g.nodes, g.master()) }
	s.settled = func() bool {
		for _, p := range g.nodes {
			if i := g.info(p); i["group_state"] == "leading" && i["group_in_sync"] == fmt.Sprint(m.servers) && i["group_lease"] == "1" {
				return g.master() == p
			}
		}
		return false
	}
	return s
}

func portOf(addr string) int {
	a, _ := net.ResolveTCPAddr("tcp", addr)
	return a.Port
}
