package chaostest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/spans"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/queue"
)

var chaosTime = flag.Duration("chaos.time", 0, "how long the chaos run lasts; 0: a fixed number of rounds")

func TestMain(m *testing.M) { backends.Main(m) }

// skews are the clients' clocks, beside the servers'.
var skews = []time.Duration{-7 * time.Minute, 0, 3 * time.Minute, 45 * time.Minute}

const grantsPerSecond = 20

// TestChaos kills and restarts the nodes of a cluster, and pauses some, and parts some from
// the others, and one program from some meanwhile, with programs at work whose clocks are
// minutes apart, and looks at what they were granted.
func TestChaos(t *testing.T) {
	program := build(t)
	cluster := backends.NewPartableCluster(t)
	var clients []*client
	for i, skew := range skews {
		clients = append(clients, start(t, program, cluster.URL(), fmt.Sprintf("client-%d", i), skew))
	}
	kills, pauses, partitions, rnd := 0, 0, 0, draw.Rand(t)
	for round := range draw.Rounds(*chaosTime, 2) {
		pass(time.Duration(4+rnd.IntN(6)) * time.Second)
		node, away := rnd.IntN(len(cluster.Addrs())), time.Duration(1+rnd.IntN(5))*time.Second
		what := fmt.Sprintf("node %d was killed", node)
		who := rnd.IntN(len(clients))
		parted := clients[who].part(rnd, cluster.Addrs())
		trouble := rnd.IntN(5)
		if *chaosTime == 0 { // one of each kind that matters most
			trouble = []int{4, 1}[round]
		}
		switch trouble {
		default:
			cluster.Kill(node)
			pass(away)
			cluster.Restart(node)
			kills++
		case 0:
			what = fmt.Sprintf("node %d was paused", node)
			cluster.Pause(node)
			pass(away)
			cluster.Resume(node)
			pauses++
		case 1, 2:
			nodes := rnd.Perm(len(cluster.Addrs()))[:1+rnd.IntN(3)]
			away += 3 * time.Second // for a failover, and a while after it
			what = fmt.Sprintf("nodes %d were parted from the others", nodes)
			cluster.Part(nodes...)
			pass(away)
			cluster.Join()
			partitions++
		}
		clients[who].join()
		t.Logf("%d: %s, for %v, in which client %d was parted from %d nodes", round, what, away, who, parted)
	}
	cluster.Repair()
	var all events
	for _, c := range clients {
		c.stop()
		all.add(c)
	}
	left := time.Now()
	dead := drain(t, cluster.URL(), &all)
	t.Logf("%d kills, %d pauses, %d partitions; jobs that were left were done within %v", kills, pauses, partitions,
		time.Since(left).Round(time.Millisecond))
	all.judge(t, dead)
}

func pass(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	<-timer.C
}

// build builds the client with a package time whose Now is as wrong as the
// environment variable EBB_CHAOS_SKEW says, in seconds.
func build(t *testing.T) string {
	realserver.Program(t, "go")
	dir := t.TempDir()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	src, err := os.ReadFile(from)
	if err != nil {
		realserver.Require(t, "the source of package time is not there: "+err.Error())
	}
	const line = "sec, nsec, mono := runtimeNow()\n"
	text := strings.Replace(string(src), line, line+"\tsec += skew()\n", 1)
	text = strings.Replace(text, "\t\"math/bits\"\n", "\t\"math/bits\"\n\t\"syscall\"\n", 1)
	if strings.Count(text, "skew()") != 1 {
		t.Fatal("time.Now of this Go looks different")
	}
	text += `
func skew() (s int64) {
	v, _ := syscall.Getenv("EBB_CHAOS_SKEW")
	minus := false
	for i := range len(v) {
		if v[i] == '-' {
			minus = true
			continue
		}
		s = 10*s + int64(v[i]-'0')
	}
	if minus {
		return -s
	}
	return s
}
`
	wrong := filepath.Join(dir, "time.go")
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{from: wrong}})
	for name, data := range map[string][]byte{wrong: []byte(text), filepath.Join(dir, "overlay.json"): overlay} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "client")
	out, err := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./client").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// client is a program at work.
type client struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	wait  sync.WaitGroup
	lines []string
}

func start(t *testing.T, program, url, id string, skew time.Duration) *client {
	c := &client{t: t, cmd: exec.Command(program, "-url", url, "-id", id, "-limit", fmt.Sprint(grantsPerSecond))}
	c.cmd.Env = append(os.Environ(), fmt.Sprintf("EBB_CHAOS_SKEW=%d", int(skew.Seconds())))
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err == nil {
		c.stdin, err = c.cmd.StdinPipe()
	}
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	c.wait.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines = append(c.lines, s.Text())
		}
	})
	return c
}

// part has nothing go between the client and some of the nodes, or all of them; it
// returns how many.
func (c *client) part(rnd *rand.Rand, nodes []string) int {
	rnd.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	n := 1 + rnd.IntN(len(nodes))
	c.tell("cut " + strings.Join(nodes[:n], " "))
	return n
}

// join ends that.
func (c *client) join() { c.tell("join") }

func (c *client) tell(line string) {
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		c.t.Errorf("a client does not listen: %v", err)
	}
}

// stop hangs up, and waits for the end.
func (c *client) stop() {
	_ = c.stdin.Close()
	c.wait.Wait()
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("a client ended with %v", err)
	}
}

type held struct {
	token      int64
	spans.Span // by the machine's monotonic clock
}

// events has the grants of all clients.
type events struct {
	grants []spans.Span
	holds  []held
	pushed map[string]bool
	done   map[string]int
	errors map[string]int
}

func (e *events) add(c *client) {
	if e.pushed == nil {
		e.pushed, e.done, e.errors = map[string]bool{}, map[string]int{}, map[string]int{}
	}
	for _, line := range c.lines {
		kind, rest, _ := strings.Cut(line, " ")
		var s spans.Span
		var h held
		switch kind {
		case "grant":
			_, _ = fmt.Sscan(rest, &s.From, &s.To)
			e.grants = append(e.grants, s)
		case "hold":
			_, _ = fmt.Sscan(rest, &h.token, &h.From, &h.To)
			e.holds = append(e.holds, h)
		case "push":
			e.pushed[rest] = true
		case "done":
			e.done[rest]++
		case "error":
			what, _, _ := strings.Cut(rest, " ")
			e.errors[what]++
		default:
			c.t.Errorf("a client said %q", line)
		}
	}
}

// drain does the jobs that are left, and returns the dead ones.
func drain(t *testing.T, url string, e *events) (dead int) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*tier.Patience)
	defer cancel()
	c, err := ebb.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	q, err := queue.New[string](c, "chaos:jobs", queue.Options[string]{Lease: 3 * time.Second, MaxDeliveries: 100})
	if err != nil {
		t.Fatal(err)
	}
	for {
		info, err := q.Info(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.Delayed+info.Ready+info.Leased == 0 {
			return int(info.Dead)
		}
		job, err := q.Pop(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := job.Ack(ctx); err != nil && !errors.Is(err, queue.ErrLost) { // the queue delivers a lost one again
			t.Fatal(err)
		}
		e.done[job.Value]++
	}
}

// judge checks the history for violations.
func (e *events) judge(t *testing.T, dead int) {
	most := spans.MostIn(e.grants, time.Second)
	t.Logf("limiter: %d grants, at most %d within a second, of %d allowed", len(e.grants), most, grantsPerSecond)
	if most > grantsPerSecond {
		t.Errorf("%d grants within a second", most)
	}
	slices.SortFunc(e.holds, func(a, b held) int { return int(a.token>>1 - b.token>>1) })
	twice, back := 0, 0
	for i := 1; i < len(e.holds); i++ {
		a, b := e.holds[i-1], e.holds[i]
		if a.token == b.token {
			twice++
		}
		if b.From < a.To {
			back++
		}
	}
	t.Logf("lock: held %d times; tokens given twice: %d; held before the one with the smaller token was let go: %d", len(e.holds), twice, back)
	if twice+back > 0 {
		t.Error("the lock had two holders")
	}
	lost, again := 0, 0
	for id := range e.pushed {
		if e.done[id] == 0 {
			lost++
		}
	}
	for _, n := range e.done {
		again += n - 1
	}
	t.Logf("queue: %d jobs in, %d done, %d dead letters, %d lost; done once more: %d", len(e.pushed), len(e.done), dead, lost-dead, again)
	if lost > dead {
		t.Errorf("%d jobs are neither done nor dead letters", lost-dead)
	}
	t.Logf("errors that clients saw and got over: %v", e.errors)
	if len(e.grants) == 0 || len(e.holds) == 0 || len(e.pushed) == 0 {
		t.Error("something was never granted")
	}
}
