package crashtest

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// peer is a connection that says one request after the other, or several at once.
type peer struct {
	net.Conn
	r *bufio.Reader
}

func dial(addr string) (*peer, error) {
	c, err := net.DialTimeout("tcp", addr, tier.Patience)
	if err != nil {
		return nil, err
	}
	return &peer{c, bufio.NewReaderSize(c, 1<<16)}, nil
}

// do sends a request and returns the reply, as an error if it is one.
func (p *peer) do(args ...string) (resp.Value, error) {
	all, err := p.all(args)
	if err != nil {
		return resp.Value{}, err
	}
	return all[0], all[0].Err()
}

// all sends requests in one piece and returns their replies.
func (p *peer) all(requests ...[]string) (replies []resp.Value, err error) {
	var b []byte
	for _, args := range requests {
		b = wire.AppendCommand(b, args...)
	}
	if err := p.SetDeadline(time.Now().Add(tier.Patience)); err != nil {
		return nil, err
	}
	if _, err := p.Write(b); err != nil {
		return nil, err
	}
	for range requests {
		v, err := wire.ReadValue(p.r)
		if err != nil {
			return nil, err
		}
		replies = append(replies, v)
	}
	return replies, nil
}

// ask is do on a connection of its own, again while the server loads what its master has
// sent; it fails the test if that fails.
func ask(t *testing.T, p *realserver.Process, args ...string) (v resp.Value) {
	t.Helper()
	tier.Eventually(t, fmt.Sprint("an answer to ", args), func() bool {
		c, err := dial(p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		v, err = c.do(args...)
		if err != nil && !strings.HasPrefix(err.Error(), "LOADING") {
			t.Fatalf("%q: %v", args, err)
		}
		return err == nil
	})
	return v
}

// field is a field of INFO, "" where it is not there.
func field(t *testing.T, p *realserver.Process, name string) string {
	t.Helper()
	for line := range strings.Lines(ask(t, p, "INFO", "everything").Str) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// complaints are the lines of a server's log about commands of its master.
func complaints(t *testing.T, p *realserver.Process) (bad string) {
	t.Helper()
	b, err := os.ReadFile(p.Log())
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		for _, text := range []string{"was refused", "sending an error to its", "error to its master", "Protocol error", "panic", "DATA RACE",
			"cannot parse"} {
			if strings.Contains(line, text) {
				bad += line
				break
			}
		}
	}
	return bad
}

// promise is a client that pushes rising numbers to a list of its own, each behind
// WAIT 1, and knows which ones the replica has acknowledged.
type promise struct {
	id   int
	next int64
	safe []int64
	all  *atomic.Int64 // safe ones of all clients
}

func (w *promise) key() string { return fmt.Sprintf("promise:%d", w.id) }

// run goes on until the master is gone. Some ask for the acknowledgement in the
// same packet, some in a transaction's wake, some push much.
func (w *promise) run(addr string) {
	c, err := dial(addr)
	if err != nil {
		return
	}
	defer c.Close()
	wait := []string{"WAIT", "1", "300"}
	for {
		w.next++
		n := strconv.FormatInt(w.next, 10)
		push := []string{"RPUSH", w.key(), n}
		var replies []resp.Value
		switch w.id % 4 {
		case 0:
			if replies, err = c.all(push); err == nil && replies[0].Err() == nil {
				replies, err = c.all(wait)
			}
		case 1:
			replies, err = c.all(push, wait)
		case 2:
			replies, err = c.all([]string{"MULTI"}, push, []string{"HSET", w.key() + ":h", n, n}, []string{"EXEC"}, wait)
		default:
			replies, err = c.all([]string{"SET", w.key() + ":s", strings.Repeat(n, 2000)}, push, wait)
		}
		if err != nil {
			return
		}
		bad := false
		for _, v := range replies {
			bad = bad || v.Err() != nil
		}
		if last := replies[len(replies)-1]; !bad && last.Int >= 1 {
			w.safe = append(w.safe, w.next)
			w.all.Add(1)
		}
	}
}

// check compares what is there with what was acknowledged.
func (w *promise) check(t *testing.T, p *realserver.Process) {
	t.Helper()
	there, last := map[int64]bool{}, int64(0)
	for _, v := range ask(t, p, "LRANGE", w.key(), "0", "-1").Elems {
		n := number(t, v.Str)
		if n <= last {
			t.Errorf("client %d: %d stands behind %d", w.id, n, last)
		}
		there[n], last = true, n
	}
	for i, n := range w.safe {
		if !there[n] {
			t.Errorf("client %d: %d of %d is lost, the %dth of %d that were acknowledged; the last there is %d", w.id, n,
				w.next, i+1, len(w.safe), last)
		}
	}
}

// TestWhatWaitHasCountedSurvivesAPromotion kills the master with kill -9 while
// clients write with WAIT 1, and promotes the replica at once; the old master comes
// back as the replica, with a full synchronisation under load. So a write may be
// lost at the cut of a snapshot, where the stream begins behind it, or at the
// promotion.
func TestWhatWaitHasCountedSurvivesAPromotion(t *testing.T) {
	for _, mode := range []struct {
		name string
		args []string
	}{
		{"memory", []string{"--appendonly", "no", "--save", ""}},
		{"files", []string{"--appendonly", "yes"}},
		{"always", []string{"--appendonly", "yes", "--appendfsync", "always", "--repl-diskless-sync", "no"}},
	} {
		t.Run(mode.name, func(t *testing.T) { promotions(t, mode.args) })
	}
}

func promotions(t *testing.T, args []string) {
	args = append(args, "--repl-diskless-sync-delay", "0")
	master, replica := realserver.NewProcess(t, realserver.Ebb(t), args...), realserver.NewProcess(t, realserver.Ebb(t), args...)
	master.Start()
	replica.Start()
	rnd := rand.New(rand.NewPCG(draw.Seed(t, 0), 1))
	var total atomic.Int64
	var clients []*promise
	for i := range 8 {
		clients = append(clients, &promise{id: i, all: &total})
	}
	n := roundsOr(4)
	for round := range n {
		var writing sync.WaitGroup
		for _, w := range clients {
			writing.Go(func() { w.run(master.Addr()) })
		}
		before := total.Load()
		ask(t, replica, "REPLICAOF", "127.0.0.1", strconv.Itoa(master.Port))
		enough := before + 1 + int64(rnd.IntN(400))
		tier.Eventually(t, "writes are acknowledged by the replica", func() bool { return total.Load() >= enough })
		master.Kill()
		ask(t, replica, "REPLICAOF", "NO", "ONE")
		writing.Wait()
		for _, w := range clients {
			w.check(t, replica)
		}
		if text := complaints(t, replica); text != "" {
			t.Errorf("the replica complains: %s", text)
		}
		if t.Failed() {
			t.Fatalf("round %d; the replica said: %s", round, replica.Said())
		}
		if round%8 == 7 {
			ask(t, replica, "FLUSHALL")
			for _, w := range clients {
				w.safe = w.safe[:0]
			}
		}
		master.Start()
		master, replica = replica, master
	}
	t.Logf("%d promotions, %d acknowledged writes, none lost", n, total.Load())
}

// TestWhatWaitHasCountedSurvivesARestartOfTheMaster kills the master and starts it
// again, which its replica then follows: what the replica had acknowledged, the
// master's files have as well.
func TestWhatWaitHasCountedSurvivesARestartOfTheMaster(t *testing.T) {
	args := []string{"--appendonly", "yes", "--repl-diskless-sync-delay", "0"}
	master, replica := realserver.NewProcess(t, realserver.Ebb(t), args...), realserver.NewProcess(t, realserver.Ebb(t), args...)
	master.Start()
	replica.Start("--replicaof", fmt.Sprint("127.0.0.1 ", master.Port))
	rnd := rand.New(rand.NewPCG(draw.Seed(t, 0), 1))
	var total atomic.Int64
	var clients []*promise
	for i := range 8 {
		clients = append(clients, &promise{id: i, all: &total})
	}
	n := roundsOr(4)
	for range n {
		var writing sync.WaitGroup
		for _, w := range clients {
			writing.Go(func() { w.run(master.Addr()) })
		}
		enough := total.Load() + 1 + int64(rnd.IntN(400))
		tier.Eventually(t, "writes are acknowledged by the replica", func() bool { return total.Load() >= enough })
		master.Kill()
		writing.Wait()
		master.Start()
		for _, w := range clients {
			w.check(t, master)
			w.safe = w.safe[:0]
		}
	}
	t.Logf("%d restarts, %d acknowledged writes", n, total.Load())
}
