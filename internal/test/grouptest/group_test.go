package grouptest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/internal/testing/certtest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

var rounds = flag.Int("group.rounds", 2, "the number of rounds of each group")

func TestMain(m *testing.M) {
	redis.SetLogger(quiet{}) // clients of killed servers log errors
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

// group is a group of real processes.
type group struct {
	*testing.T
	nodes     []*realserver.Process // nodes with data
	witness   *realserver.Process   // nil: none
	peers     []string              // addresses of the group's ports, one for each node
	sentinels []string              // addresses of Sentinel's protocol, one for each node
	client    *redis.Client         // follows the master
}

const groupTimeout = time.Second

// start starts a group of servers, and a witness if their number is even.
func start(t *testing.T, servers int, args ...string) *group {
	t.Helper()
	return startWith(t, servers, nil, args...)
}

// startWith starts a group, and calls prepare for each node before it starts.
func startWith(t *testing.T, servers int, prepare func(i int, p *realserver.Process), args ...string) *group {
	t.Helper()
	g := newGroup(t, servers)
	for i, p := range g.all() {
		if prepare != nil {
			prepare(i, p)
		}
	}
	g.begin(args...)
	return g
}

// newGroup returns a group whose nodes do not run yet.
func newGroup(t *testing.T, servers int) *group {
	t.Helper()
	g := &group{T: t}
	for range servers | 1 {
		p := realserver.NewProcess(t, realserver.Ebb(t))
		own, sentinel := realserver.FreePort(t), realserver.FreePort(t)
		g.peers = append(g.peers, net.JoinHostPort("127.0.0.1", strconv.Itoa(own)))
		g.sentinels = append(g.sentinels, net.JoinHostPort("127.0.0.1", strconv.Itoa(sentinel)))
		p.Args("--group-port", strconv.Itoa(own), "--sentinel-port", strconv.Itoa(sentinel))
		if len(g.nodes) == servers {
			p.Command, g.witness = "witness", p
		} else {
			g.nodes = append(g.nodes, p)
		}
	}
	return g
}

// begin starts the nodes.
func (g *group) begin(args ...string) {
	g.Helper()
	for _, p := range g.all() {
		timeout := strconv.FormatInt(groupTimeout.Milliseconds(), 10)
		p.Args("--group", strings.Join(g.peers, ","), "--group-timeout", timeout, "--sync-lease", "500")
		p.Args(args...)
		if err := p.Begin(); err != nil {
			g.Fatal(err)
		}
	}
	g.client = g.connect()
	g.Cleanup(func() { _ = g.client.Close() })
}

func (g *group) all() []*realserver.Process {
	if g.witness == nil {
		return g.nodes
	}
	return append(g.nodes[:len(g.nodes):len(g.nodes)], g.witness)
}

// connect returns a client that finds the master by Sentinel's protocol and does not retry. As the protocol requires,
// it asks each new connection for its role: a server that was just replaced would answer reads as a replica.
func (g *group) connect() *redis.Client {
	return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "ebb", SentinelAddrs: g.sentinels, MaxRetries: -1,
		DialTimeout: groupTimeout, ReadTimeout: 8 * time.Second, ContextTimeoutEnabled: true,
		OnConnect: func(ctx context.Context, c *redis.Conn) error {
			role, err := c.Do(ctx, "ROLE").Slice()
			if err == nil && (len(role) == 0 || role[0] == "slave") { // connections to sentinel-port report "sentinel"
				err = errReplica
			}
			return err
		}})
}

var errReplica = errors.New("the server is not the master")

// eventually calls tier.Eventually, and shows the logs of the nodes if it fails.
func (g *group) eventually(what string, yes func() bool) {
	g.Helper()
	defer func() {
		if g.Failed() {
			for i, p := range g.all() {
				g.Logf("node %d said: %s", i+1, p.Said())
			}
		}
	}()
	tier.Eventually(g, what, yes)
}

// wants fails the test unless each server has the value under the key k.
func (g *group) wants(value string) {
	g.Helper()
	for _, p := range g.nodes {
		c := redis.NewClient(&redis.Options{Addr: p.Addr()})
		if got := must[string](g.T)(c.Get(g.Context(), "k").Result()); got != value {
			g.Errorf("%s has %.10q, %d bytes, want %q", p.Addr(), got, len(got), value)
		}
		_ = c.Close()
	}
}

// master returns the node that Sentinel clients get as the master, or nil.
func (g *group) master() *realserver.Process {
	for _, addr := range g.sentinels {
		s := redis.NewSentinelClient(&redis.Options{Addr: addr, MaxRetries: -1})
		at, err := s.GetMasterAddrByName(g.Context(), "ebb").Result()
		_ = s.Close()
		if err != nil {
			continue
		}
		for _, p := range g.nodes {
			if p.Addr() == strings.Join(at, ":") {
				return p
			}
		}
	}
	return nil
}

// info returns the lines of a node's INFO replication.
func (g *group) info(p *realserver.Process) map[string]string { return g.section(p, "replication") }

// section returns the lines of a section of a node's INFO.
func (g *group) section(p *realserver.Process, name string) map[string]string {
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
	defer c.Close()
	lines := map[string]string{}
	text, _ := c.Info(g.Context(), name).Result() // a stopped node has no INFO
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		lines[name] = value
	}
	return lines
}

// settled waits until the master leads and inSync nodes are in sync, and returns the master.
func (g *group) settled(inSync int) (master *realserver.Process) {
	g.Helper()
	g.eventually(fmt.Sprintf("a master leads, and %d nodes are in sync", inSync), func() bool {
		for _, p := range g.nodes {
			if i := g.info(p); i["group_state"] == "leading" && i["group_in_sync"] == strconv.Itoa(inSync) && i["group_lease"] == "1" {
				master = p
				return g.master() == p
			}
		}
		return false
	})
	return master
}

// leaderBut waits until some node other than master leads, and returns it.
func (g *group) leaderBut(master *realserver.Process) (next *realserver.Process) {
	g.Helper()
	g.eventually("another node leads", func() bool {
		for _, p := range g.nodes {
			if p != master && g.info(p)["group_state"] == "leading" {
				next = p
			}
		}
		return next != nil
	})
	return next
}

// must fails the test if a call returns an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestThreeServersFoundAGroupAndReplaceAKilledMaster(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1")
	first := g.settled(3)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "v", 0).Result())
	for _, p := range g.nodes {
		if p == first {
			continue
		}
		c := redis.NewClient(&redis.Options{Addr: p.Addr()})
		if err := c.Set(ctx, "k", "other", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
			t.Errorf("a write to a replica: %v", err)
		}
		const refusal = "the group of this server chooses the master"
		if err := c.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err == nil || !strings.Contains(err.Error(), refusal) {
			t.Errorf("REPLICAOF on a member: %v", err)
		}
		if got := must[string](t)(c.Get(ctx, "k").Result()); got != "v" { // the write is acknowledged, so all nodes in sync have it
			t.Errorf("a replica has %q", got)
		}
		_ = c.Close()
	}
	first.Kill()
	second := g.settled(2)
	if second == first {
		t.Fatal("the killed master leads")
	}
	if got := must[string](t)(g.client.Get(ctx, "k").Result()); got != "v" {
		t.Errorf("after the failover it has %q", got)
	}
	must[string](t)(g.client.Set(ctx, "k", "w", 0).Result())
	if err := first.Begin(); err != nil {
		t.Fatal(err)
	}
	if g.settled(3) != second {
		t.Error("the master has changed because a node came back")
	}
	c := redis.NewClient(&redis.Options{Addr: first.Addr()})
	defer c.Close()
	if got := must[string](t)(c.Get(ctx, "k").Result()); got != "w" {
		t.Errorf("the node that came back has %q", got)
	}
}

func TestAServerWithDataBecomesAGroupWithEmptyOnes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	g := startWith(t, 3, func(i int, p *realserver.Process) {
		if i != 1 {
			return
		}
		p.Start("--appendonly", "yes")
		c := redis.NewClient(&redis.Options{Addr: p.Addr()})
		defer c.Close()
		must[string](t)(c.Set(ctx, "k", "v", 0).Result())
		p.Stop()
	}, "--appendonly", "yes", "--min-sync-replicas", "1")
	if master := g.settled(3); master != g.nodes[1] {
		t.Error("the master is not the server with the data")
	}
	g.wants("v")
}

func TestSentinelFailoverHandsTheGroupOver(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1")
	first := g.settled(3)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "v", 0).Result())
	for i, p := range g.nodes { // users of a server are users of its sentinel-port
		c := redis.NewClient(&redis.Options{Addr: p.Addr()})
		must[string](t)(c.Do(ctx, "ACL", "SETUSER", "reader", "on", ">r", "+@read").Text())
		_ = c.Close()
		s := redis.NewSentinelClient(&redis.Options{Addr: g.sentinels[i], Username: "reader", Password: "r", MaxRetries: -1})
		if err := s.Failover(ctx, "ebb").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOPERM") {
			t.Errorf("a user that may only read hands the group over: %v", err)
		}
		_ = s.Close()
	}
	for _, addr := range g.sentinels { // a node that is not the master proposes the Promote, the master hands over
		s := redis.NewSentinelClient(&redis.Options{Addr: addr})
		must[string](t)(s.Failover(ctx, "ebb").Result())
		_ = s.Close()
		var second *realserver.Process
		g.eventually("another node leads", func() bool {
			second = g.settled(3)
			return second != first
		})
		if got := must[string](t)(g.client.Get(ctx, "k").Result()); got != "v" {
			t.Errorf("after the failover it has %q", got)
		}
		first = second
	}
}

func TestAMasterWithoutItsMajorityAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1")
	master := g.settled(3)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "v", 0).Result())
	var others []*realserver.Process
	for _, p := range g.nodes {
		if p != master {
			others = append(others, p)
			p.Kill()
		}
	}
	c := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1, ReadTimeout: tier.Patience})
	defer c.Close()
	if err := c.Set(ctx, "k", "alone", 0).Err(); err == nil {
		t.Fatal("a master whose members are gone acknowledges a write")
	}
	for _, p := range others {
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	// Both members have lost their memory. Only the master has all data, and stays the master.
	if now := g.settled(3); now != master {
		t.Error("a node without the data is the master")
	}
	if got := must[string](t)(g.client.Get(ctx, "k").Result()); got != "v" && got != "alone" {
		t.Errorf("the server has %q", got)
	}
	must[string](t)(g.client.Set(ctx, "k", "together", 0).Result())
}

func TestAReplacedMasterFollowsWithoutWhatWasNotAcknowledged(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1")
	master := g.settled(3)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "v", 0).Result())
	c := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1, ReadTimeout: tier.Patience})
	defer c.Close()
	for _, p := range g.nodes {
		if p != master {
			p.Pause(t)
			defer p.Resume(t)
		}
	}
	// No member receives the whole command: it does not fit into the sockets' buffers.
	if err := c.Set(ctx, "k", strings.Repeat("lost", 8<<20), 0).Err(); err == nil {
		t.Fatal("a write that no member has is acknowledged")
	}
	master.Pause(t)
	for _, p := range g.nodes {
		if p != master {
			p.Resume(t)
		}
	}
	next := g.leaderBut(master)
	master.Resume(t)
	if now := g.settled(3); now != next {
		t.Errorf("the replaced master leads again")
	}
	g.wants("v")
}

// An idle client that found the master earlier must not read values that the next master has replaced.
func TestAMasterThatWasReplacedAnswersNoOldReads(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1")
	master := g.settled(3)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "old", 0).Result())
	idle := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1, PoolSize: 1, ReadTimeout: tier.Patience}).Conn()
	defer idle.Close()
	must[string](t)(idle.Get(ctx, "k").Result())
	master.Pause(t)
	g.eventually("another node has acknowledged a write", func() bool { return g.client.Set(ctx, "k", "new", 0).Err() == nil })
	master.Resume(t)
	for {
		got, err := idle.Get(ctx, "k").Result()
		if err != nil {
			break // the master was replaced
		}
		if got != "new" {
			t.Fatalf("the server answers %q, and %q is acknowledged", got, "new")
		}
	}
	g.settled(3)
}

func TestANewNameOfTheStreamEndsNoGroup(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1", "--enable-debug-command", "yes")
	master := g.settled(3)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "v", 0).Result())
	c := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1})
	defer c.Close()
	before := g.info(master)["master_replid"]
	must[string](t)(c.Do(ctx, "DEBUG", "CHANGE-REPL-ID").Text())
	if after := g.info(master)["master_replid"]; after == before || after[:16] != before[:16] {
		t.Errorf("the stream is named %s, before %s: want another name of the same epoch", after, before)
	}
	for _, stranger := range []string{"ebb/9/1/9223372036854775807/0", "ebb/2/99/0/0123456789abcdef"} {
		s := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1}).Conn()
		if err := s.Do(ctx, "REPLCONF", "group", stranger).Err(); err == nil || !strings.HasPrefix(err.Error(), "REFUSED") {
			t.Errorf("a client greets with %s as a member: %v", stranger, err)
		}
		_ = s.Close()
	}
	must[string](t)(g.client.Set(ctx, "k", "w", 0).Result())
	for _, p := range g.nodes {
		if p != master { // each link was closed and connects again
			r := redis.NewClient(&redis.Options{Addr: p.Addr()})
			_ = r.Do(ctx, "CLIENT", "KILL", "TYPE", "master").Err()
			_ = r.Close()
		}
	}
	g.settled(3)
	master.Kill()
	g.settled(2)
	if got := must[string](t)(g.client.Get(ctx, "k").Result()); got != "w" {
		t.Errorf("after the failover it has %q", got)
	}
}

// All nodes are killed at once. Those at level disk prove that they have lost nothing, and one of them becomes the
// master.
func TestAGroupOnDiskGoesOnAfterAllNodesWereKilled(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "yes", "--appendfsync", "always", "--sync-level", "disk", "--min-sync-replicas", "1")
	g.settled(3)
	ctx := t.Context()
	for round := range 2 {
		want := strconv.Itoa(round)
		must[string](t)(g.client.Set(ctx, "k", want, 0).Result())
		for _, p := range g.nodes {
			p.Kill()
		}
		for _, p := range g.nodes {
			if err := p.Begin(); err != nil {
				t.Fatal(err)
			}
		}
		master := g.settled(3)
		if got := g.info(master)["group_incarnation"]; got != "1" {
			t.Errorf("the master is incarnation %s, want 1: it has lost nothing", got)
		}
		if got := must[string](t)(g.client.Get(ctx, "k").Result()); got != want {
			t.Errorf("the server has %q, want %q", got, want)
		}
	}
	c := redis.NewClient(&redis.Options{Addr: g.nodes[0].Addr()})
	defer c.Close()
	if err := c.ConfigSet(ctx, "appendfsync", "everysec").Err(); err == nil {
		t.Error("a node at level disk stops syncing before it acknowledges")
	}
	g.nodes[0].Kill()
	out, err := realserver.CommandContext(ctx, realserver.Ebb(t), "check", filepath.Join(g.nodes[0].Dir, "group")).CombinedOutput()
	if said := string(out); err != nil || !strings.Contains(said, "state of node 1 of a group, incarnation 1: all that it acknowledged") ||
		!strings.Contains(said, "votes and the directory of a group's node") {
		t.Errorf("ebb check: %v, %s", err, said)
	}
}

// All members in sync have lost their memory, so none is promoted until an operator accepts the loss.
func TestAGroupWithoutANodeInSyncGoesOnWhenAnOperatorAcceptsTheLoss(t *testing.T) {
	t.Parallel()
	g := start(t, 2, "--appendonly", "yes")
	g.settled(2)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "v", 0).Result())
	for _, p := range g.nodes {
		p.Stop()
	}
	for _, p := range g.nodes {
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
	}
	witness := redis.NewClient(&redis.Options{Addr: g.sentinels[2], MaxRetries: -1})
	defer witness.Close()
	host, port, _ := net.SplitHostPort(g.nodes[1].Addr())
	g.eventually("no node is in sync", func() bool {
		i := g.info(g.nodes[1])
		return i["group_in_sync"] == "0" && i["group_node"] == "2"
	})
	if err := witness.Do(ctx, "SENTINEL", "RECOVER", "ebb", host, port, "YES").Err(); err == nil {
		t.Error("a node is promoted, and the loss was not accepted")
	}
	g.eventually("the witness takes the command", func() bool {
		return witness.Do(ctx, "SENTINEL", "RECOVER", "ebb", host, port, "ACCEPT-LOSS").Err() == nil
	})
	if master := g.settled(2); master != g.nodes[1] || g.info(master)["group_accepted_losses"] != "1" {
		t.Errorf("%s leads, and counts %q losses", master.Addr(), g.info(master)["group_accepted_losses"])
	}
	if got := must[string](t)(g.client.Get(ctx, "k").Result()); got != "v" {
		t.Errorf("the server has %q", got)
	}
	err := witness.Do(ctx, "SENTINEL", "RECOVER", "ebb", host, port, "ACCEPT-LOSS").Err()
	if err == nil || !strings.Contains(err.Error(), "is in sync") {
		t.Errorf("a node is to be lost while one is in sync: %v", err)
	}
	if out, err := g.operate(g.nodes[0], "recover", "1", "--accept-loss"); err == nil || !strings.Contains(out, "is in sync") {
		t.Errorf("the same by ebb group: %s, %v", out, err)
	}
}

// operate runs a subcommand of ebb group at a node.
func (g *group) operate(p *realserver.Process, words ...string) (string, error) {
	g.Helper()
	args := append(append([]string{"group"}, words...), "-p", strconv.Itoa(p.Port))
	out, err := realserver.CommandContext(g.Context(), realserver.Ebb(g.T), args...).CombinedOutput()
	return string(out), err
}

func TestAnOperatorPromotesANodeSetsKAndRemovesANode(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1")
	first := g.settled(3)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "v", 0).Result())
	refused := func(p *realserver.Process, want string, words ...string) {
		t.Helper()
		if out, err := g.operate(p, words...); err == nil || !strings.Contains(out, want) {
			t.Errorf("ebb group %q: %q, %v, want an error with %q", words, out, err, want)
		}
	}
	does := func(p *realserver.Process, words ...string) {
		t.Helper()
		if out, err := g.operate(p, words...); err != nil {
			t.Errorf("ebb group %q: %q, %v", words, out, err)
		}
	}
	next := g.nodes[0]
	if next == first {
		next = g.nodes[1]
	}
	node := g.info(next)["group_node"]
	does(next, "promote", node)
	var master *realserver.Process
	g.eventually("the node leads", func() bool {
		master = g.settled(3)
		return master == next
	})
	refused(first, "is the master already", "promote", node)
	g.wants("v")
	does(first, "set-k", "2")
	g.eventually("the master knows k", func() bool { return g.info(master)["group_min_sync_replicas"] == "2" })
	refused(first, "needs 4 nodes in sync", "set-k", "3")
	does(first, "set-k", "1")
	gone := g.nodes[2]
	if gone == master {
		gone = first
	}
	number := g.info(gone)["group_node"]
	refused(master, "stop it first", "remove", number)
	gone.Kill()
	g.settled(2)
	g.eventually("the node that has ended is removed", func() bool {
		_, err := g.operate(master, "remove", number)
		return err == nil
	})
	g.eventually("it has no vote", func() bool { return g.info(master)["group_voters"] == "2" })
	c := redis.NewClient(&redis.Options{Addr: master.Addr()})
	defer c.Close()
	status := must[string](t)(c.Do(ctx, "GROUP", "STATUS").Text())
	for _, want := range []string{"group_state:leading\r\n", "group_leader:", "group_peer2:node=3,", "removed=1"} {
		if !strings.Contains(status, want) {
			t.Errorf("GROUP STATUS has no %q: %s", want, status)
		}
	}
	if err := gone.Begin(); err != nil {
		t.Fatal(err)
	}
	must[string](t)(g.client.Set(ctx, "k", "w", 0).Result())
	if i := g.info(gone); i["group_state"] != "starting" {
		t.Errorf("a node that was removed is %s", i["group_state"])
	}
	s := redis.NewSentinelClient(&redis.Options{Addr: g.sentinels[slices.Index(g.nodes, gone)], MaxRetries: -1})
	defer s.Close()
	g.eventually("its sentinel-port answers", func() bool {
		at, err := s.GetMasterAddrByName(ctx, "ebb").Result()
		if err == nil {
			t.Errorf("a node that was removed says that the master is at %v", at)
		}
		return err == nil || errors.Is(err, redis.Nil)
	})
}

// Commands fail only during the exchange itself, and the group does not wait until the master is silent.
func TestAMasterThatGetsSIGTERMHandsItsGroupOver(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1", "--group-timeout", "5000")
	first := g.settled(3)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "v", 0).Result())
	first.Stop()
	var second *realserver.Process
	g.eventually("another node leads", func() bool {
		for _, p := range g.nodes {
			if p != first && g.info(p)["group_state"] == "leading" {
				second = p
			}
		}
		return second != nil
	})
	for _, p := range g.nodes {
		b, err := os.ReadFile(p.Log())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), "the master was silent") {
			t.Errorf("%s has replaced a silent master", p.Addr())
		}
	}
	c := redis.NewClient(&redis.Options{Addr: second.Addr(), MaxRetries: -1})
	defer c.Close()
	if got := must[string](t)(c.Get(ctx, "k").Result()); got != "v" {
		t.Errorf("the server has %q", got)
	}
}

// CLIENT PAUSE on both members: neither could acknowledge more as the master, so none replaces it.
func TestMembersThatArePausedAreNotPromoted(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1", "--sync-lag", "500")
	master := g.settled(3)
	ctx := t.Context()
	must[string](t)(g.client.Set(ctx, "k", "v", 0).Result())
	for _, p := range g.nodes {
		if p != master {
			c := redis.NewClient(&redis.Options{Addr: p.Addr()})
			must[string](t)(c.Do(ctx, "CLIENT", "PAUSE", "4000", "ALL").Text())
			_ = c.Close()
		}
	}
	c := redis.NewClient(&redis.Options{Addr: master.Addr(), ReadTimeout: -1, MaxRetries: -1})
	defer c.Close()
	g.eventually("the master takes writes again", func() bool { return c.Set(ctx, "k", "w", 0).Err() == nil })
	if g.settled(3) != master {
		t.Error("a paused member was promoted")
	}
	g.wants("w")
}

func TestReadsWithoutTheLeaseAreAnsweredOnlyWithSyncReadsLocal(t *testing.T) {
	t.Parallel()
	for _, reads := range []string{"lease", "local"} {
		t.Run(reads, func(t *testing.T) {
			t.Parallel()
			g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1", "--sync-reads", reads, "--sync-timeout", "1000")
			master := g.settled(3)
			must[string](t)(g.client.Set(t.Context(), "k", "v", 0).Result())
			for _, p := range g.nodes {
				if p != master {
					p.Pause(t)
					defer p.Resume(t)
				}
			}
			g.eventually("the lease is over", func() bool { return g.info(master)["group_lease"] == "0" })
			c := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1, ReadTimeout: tier.Patience})
			defer c.Close()
			switch got, err := c.Get(t.Context(), "k").Result(); {
			case reads == "local" && (err != nil || got != "v"):
				t.Errorf("a read: %q, %v", got, err)
			case reads == "lease" && (err == nil || !strings.HasPrefix(err.Error(), "UNSYNCED")):
				t.Errorf("a read that another node may know better: %q, %v", got, err)
			}
		})
	}
}

func TestTheNodesOfAGroupSpeakTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := certtest.Make(t, "node")
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for name, b := range map[string][]byte{certFile: cert, keyFile: key} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ports := map[*realserver.Process]string{}
	g := startWith(t, 3, func(_ int, p *realserver.Process) {
		ports[p] = strconv.Itoa(realserver.FreePort(t))
		p.Args("--tls-port", ports[p])
	}, "--appendonly", "no", "--min-sync-replicas", "1", "--tls-replication", "yes", "--tls-cert-file", certFile, "--tls-key-file", keyFile,
		"--tls-ca-cert-file", certFile)
	leads := func(without *realserver.Process, inSync string) (master *realserver.Process) {
		g.eventually("a master leads", func() bool {
			for _, p := range g.nodes {
				if i := g.info(p); p != without && i["group_state"] == "leading" && i["group_in_sync"] == inSync {
					master = p
				}
			}
			return master != nil
		})
		return master
	}
	ctx, first := t.Context(), leads(nil, "3")
	for _, p := range g.nodes {
		if p != first {
			g.eventually("its link goes to the TLS port", func() bool { return g.info(p)["master_port"] == ports[first] })
		}
	}
	c := redis.NewClient(&redis.Options{Addr: first.Addr()})
	must[string](t)(c.Set(ctx, "k", "v", 0).Result())
	_ = c.Close()
	first.Kill()
	c = redis.NewClient(&redis.Options{Addr: leads(first, "2").Addr()})
	defer c.Close()
	if got := must[string](t)(c.Get(ctx, "k").Result()); got != "v" {
		t.Errorf("the server has %q", got)
	}
}

// A member that acknowledges writes in memory would count as one that has synced them.
func TestAMemberInMemoryDoesNotJoinAGroupOnDisk(t *testing.T) {
	t.Parallel()
	g := startWith(t, 2, func(i int, p *realserver.Process) {
		if i == 1 {
			p.Args("--appendonly", "no")
		} else {
			p.Args("--appendonly", "yes", "--appendfsync", "always", "--sync-level", "disk")
		}
	})
	master := g.settled(1)
	if master != g.nodes[0] {
		t.Fatal("the second node is the master")
	}
	said := func(p *realserver.Process) string { return string(must[[]byte](t)(os.ReadFile(p.Log()))) }
	const both = "node 2 has sync-level memory and sync-lease 500ms, which is less than its master's sync-level disk"
	g.eventually("both sides say why", func() bool {
		return strings.Contains(said(master), "a member's directives differ from this master's") && strings.Contains(said(g.nodes[1]), both)
	})
	if got := g.info(master)["group_in_sync"]; got != "1" {
		t.Errorf("%s nodes are in sync", got)
	}
	must[string](t)(g.client.Set(t.Context(), "k", "v", 0).Result())
	g.nodes[1].Stop()
	if err := g.nodes[1].Begin("--appendonly", "yes", "--appendfsync", "always", "--sync-level", "disk"); err != nil {
		t.Fatal(err)
	}
	g.settled(2)
	if n := strings.Count(said(master), "a member's directives differ from this master's"); n != 1 {
		t.Errorf("the master has said so %d times", n)
	}
}

// stat returns a number of a node's INFO stats.
func (g *group) stat(p *realserver.Process, name string) int {
	g.Helper()
	return must[int](g.T)(strconv.Atoi(g.section(p, "stats")[name]))
}

// A master that was stopped for a while without a write that the others lack has added nothing to its stream, and
// gets only the rest.
func TestAMasterThatWasCutOffGetsWhatItLacksAlone(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1", "--repl-ping-replica-period", "1")
	for round := range max(*rounds, 3) {
		master := g.settled(3)
		want := strconv.Itoa(round)
		must[string](t)(g.client.Set(t.Context(), "k", want, 0).Result())
		full := map[*realserver.Process]int{}
		for _, p := range g.nodes {
			full[p] = g.stat(p, "sync_full")
		}
		master.Pause(t)
		next := g.leaderBut(master)
		c := redis.NewClient(&redis.Options{Addr: next.Addr()}) // g.client may have a connection to the other node, which would run this
		must[string](t)(c.Set(t.Context(), "k", want+" again", 0).Result())
		_ = c.Close()
		master.Resume(t)
		if now := g.settled(3); now != next {
			t.Fatal("the replaced master leads again")
		}
		if n := g.stat(next, "sync_full") - full[next]; n != 0 {
			t.Errorf("round %d: %d nodes have got all data, want none", round, n)
		}
		g.wants(want + " again")
	}
}

// Without a leader of the directory, a hand-over would only make the master refuse writes.
func TestAMasterWithoutALeaderHandsNothingOver(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no")
	master := g.settled(3)
	var other *realserver.Process
	for _, p := range g.nodes {
		if p != master {
			other = p
		}
	}
	to := g.info(other)["group_node"]
	for _, p := range g.nodes {
		if p != master {
			p.Pause(t)
		}
	}
	g.eventually("the master knows no leader", func() bool { return g.info(master)["group_leader"] == "0" })
	c := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	defer c.Close()
	if err := c.Do(t.Context(), "GROUP", "PROMOTE", to).Err(); err == nil || !strings.Contains(err.Error(), "no node leads") {
		t.Errorf("GROUP PROMOTE: %v, want an error that says that no node leads", err)
	}
	if state := g.info(master)["group_state"]; state != "leading" {
		t.Errorf("the master is %s", state)
	}
	for _, p := range g.nodes {
		if p != master {
			p.Resume(t)
		}
	}
	g.settled(3)
}

// A hand-over continues with the node that it began with.
func TestAMasterThatHandsItsGroupOverPromotesNoOtherNode(t *testing.T) {
	t.Parallel()
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1", "--sync-lag", "60000", "--sync-timeout", "60000")
	master := g.settled(3)
	leader := g.info(master)["group_leader"]
	var next, other *realserver.Process // the next master stops for a while, the leader does not
	for _, p := range g.nodes {
		switch {
		case p == master:
		case next == nil && g.info(p)["group_node"] != leader:
			next = p
		default:
			other = p
		}
	}
	nodes := []string{g.info(next)["group_node"], g.info(other)["group_node"]}
	c := redis.NewClient(&redis.Options{Addr: master.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
	defer c.Close()
	next.Pause(t)
	end := g.info(master)["master_repl_offset"]
	var written sync.WaitGroup
	written.Go(func() { _ = c.Set(t.Context(), "k", "v", 0).Err() }) // waits for the node that becomes the master
	g.eventually("the node lacks something", func() bool { return g.info(master)["master_repl_offset"] != end })
	promote := func(node string) error { return c.Do(t.Context(), "GROUP", "PROMOTE", node).Err() }
	if err := promote(nodes[0]); err != nil {
		t.Fatalf("GROUP PROMOTE: %v", err)
	}
	if err := promote(nodes[1]); err == nil || !strings.Contains(err.Error(), "hands the group over already") {
		t.Errorf("GROUP PROMOTE during a hand-over: %v, want an error", err)
	}
	s := redis.NewSentinelClient(&redis.Options{Addr: g.sentinels[slices.Index(g.nodes, master)], MaxRetries: -1})
	defer s.Close()
	if err := s.Failover(t.Context(), "ebb").Err(); err == nil || !strings.HasPrefix(err.Error(), "INPROG") {
		t.Errorf("SENTINEL FAILOVER during a hand-over: %v, want INPROG", err)
	}
	next.Resume(t)
	if got := g.leaderBut(master); got != next {
		t.Error("the group was not handed over to the node that was named first")
	}
	written.Wait()
	g.settled(3)
	g.wants("v")
}
