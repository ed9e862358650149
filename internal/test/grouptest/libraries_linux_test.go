package grouptest

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

var (
	failovers = flag.Int("group.failovers", 1, "how often the libraries of clients meet a new master")
	ioredis   = flag.String("group.ioredis", "", "a folder with node_modules/ioredis; empty: it takes no part")
)

// library is a client library in Sentinel mode, with its default settings, that writes all the time.
type library struct {
	name string
	mu   sync.Mutex // guards the fields below
	errs int
	kill time.Time
	next time.Time // the first acknowledgement of a write that began after the kill; zero: none yet
}

// wrote records the outcome of a write.
func (l *library) wrote(began time.Time, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case failed:
		l.errs++
	case l.next.IsZero() && !l.kill.IsZero() && began.After(l.kill):
		l.next = time.Now()
	}
}

func (l *library) writes() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.next.IsZero()
}

// python and node are programs that write, and print for each write its duration in seconds and "ok" or an error.
const python = `
import redis.sentinel, sys, time
at = [a.rsplit(":", 1) for a in sys.argv[1].split(",")]
master = redis.sentinel.Sentinel([(h, int(p)) for h, p in at], socket_timeout=2).master_for("ebb", socket_timeout=2)
while True:
    began = time.monotonic()
    try:
        master.set("python", "v")
        what = "ok"
    except Exception as e:
        what = repr(e)
    print("%f %s" % (time.monotonic() - began, what.replace("\n", " ")), flush=True)
    time.sleep(0.01)
`

const node = `
const Redis = require("ioredis");
const sentinels = process.argv[2].split(",").map((a) => ({ host: a.split(":")[0], port: Number(a.split(":")[1]) }));
const r = new (Redis.Redis || Redis)({ sentinels, name: "ebb" });
r.on("error", () => {});
(async () => {
  for (;;) {
    const began = performance.now();
    let what = "ok";
    try { await r.set("node", "v"); } catch (e) { what = String(e).replaceAll("\n", " "); }
    console.log(((performance.now() - began) / 1000).toFixed(6) + " " + what);
    await new Promise((f) => setTimeout(f, 10));
  }
})();
`

// program runs a library as a separate program.
func (l *library) program(ctx context.Context, running *sync.WaitGroup, cmd *exec.Cmd) error {
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	running.Go(func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			took, what, _ := strings.Cut(s.Text(), " ")
			var seconds float64
			_, _ = fmt.Sscan(took, &seconds)
			l.wrote(time.Now().Add(-time.Duration(seconds*float64(time.Second))), what != "ok")
		}
		_ = cmd.Wait() // killed by ctx
	})
	return nil
}

// loop runs a library in this process.
func (l *library) loop(ctx context.Context, running *sync.WaitGroup, set func(context.Context) error) {
	running.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			call, cancel := context.WithTimeout(ctx, 5*time.Second)
			err := set(call)
			cancel()
			l.wrote(began, err != nil)
			wait(ctx, 10*time.Millisecond)
		}
	})
}

// libraries starts all libraries, which write until ctx ends, and returns them.
func (g *group) libraries(ctx context.Context, running *sync.WaitGroup) (all []*library) {
	add := func(name string) *library {
		all = append(all, &library{name: name})
		return all[len(all)-1]
	}
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "ebb", SentinelAddrs: g.sentinels})
	g.Cleanup(func() { _ = c.Close() })
	add("go-redis").loop(ctx, running, func(ctx context.Context) error { return c.Set(ctx, "go-redis", "v", 0).Err() })
	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: g.sentinels, Sentinel: rueidis.SentinelOption{MasterSet: "ebb"}})
	if err != nil {
		g.Fatal(err)
	}
	g.Cleanup(r.Close)
	add("rueidis").loop(ctx, running, func(ctx context.Context) error {
		return r.Do(ctx, r.B().Set().Key("rueidis").Value("v").Build()).Error()
	})
	addrs := strings.Join(g.sentinels, ",")
	err = add("redis-py").program(ctx, running, exec.CommandContext(ctx, realserver.Python(g, "redis"), "-c", python, addrs))
	if err != nil {
		g.Fatal(err)
	}
	if *ioredis != "" {
		cmd := exec.CommandContext(ctx, "node", "-", addrs)
		cmd.Dir, cmd.Stdin, cmd.Stderr = *ioredis, strings.NewReader(node), os.Stderr
		if err := add("ioredis").program(ctx, running, cmd); err != nil {
			g.Fatal(err)
		}
	}
	return all
}

// TestClientLibrariesFollowTheMaster kills the master while client libraries write, and waits until each one writes
// again.
func TestClientLibrariesFollowTheMaster(t *testing.T) {
	t.Parallel()
	realserver.Program(t, "python3")
	g := start(t, 3, "--appendonly", "no", "--min-sync-replicas", "1")
	g.settled(3)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	all := g.libraries(ctx, &running)
	took := map[*library][]time.Duration{}
	for round := range *failovers + 1 {
		master := g.settled(3)
		for _, l := range all {
			l.mu.Lock()
			l.next, l.kill = time.Time{}, time.Now()
			l.mu.Unlock()
		}
		if round > 0 { // the first round only waits until all libraries write
			master.Kill()
		}
		for _, l := range all {
			g.eventually(l.name+" writes", l.writes)
			if round > 0 {
				took[l] = append(took[l], l.next.Sub(l.kill))
			} else {
				l.errs = 0
			}
		}
		if round > 0 {
			if err := master.Begin(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, l := range all {
		slices.Sort(took[l])
		t.Logf("%-10s %d failovers, %d errors, writes again after p50 %v, max %v", l.name, len(took[l]), l.errs,
			middle(took[l]), longest(took[l]))
	}
}
