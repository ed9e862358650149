package session

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// A network loop does not sleep for a shard after a request, for any of the tasks that follow one. In these
// tests another transaction holds the shard; the service does not know it as slow, just as it does not know a
// script that has just begun.

// heldShard runs f, which plays the loop, while another transaction holds the shard of key.
func heldShard(t *testing.T, s *Service, key string, f func()) {
	t.Helper()
	other := s.DB.Begin(0, []byte(key))
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	select {
	case <-over:
	case <-time.After(tier.Patience):
		t.Error("the loop waits for a shard that another transaction holds")
	}
	other.Commit()
	<-over
	s.background.Wait()
}

// farFrom returns a key whose shard is not that of key.
func farFrom(s *Service, key string) string {
	tx := s.DB.Begin(0)
	defer tx.Commit()
	for i := 0; ; i++ {
		if k := fmt.Sprint("far", i); tx.ShardOf([]byte(k)) != tx.ShardOf([]byte(key)) {
			return k
		}
	}
}

// replies sends requests to a session of the loop and expects all replies at once.
func replies(t *testing.T, s *Session, want string, requests ...[]string) {
	t.Helper()
	var in []byte
	for _, r := range requests {
		in = wire.AppendCommand(in, r...)
	}
	if _, out, v := s.Serve(in, nil); string(out) != want || v == reactor.Park {
		t.Errorf("%q: got %q (verdict %v), want %q", requests, out, v, want)
	}
}

// begins sends a request that must begin to wait.
func begins(t *testing.T, s *Session, request ...string) {
	t.Helper()
	if _, out, v := s.Serve(wire.AppendCommand(nil, request...), nil); v != reactor.Park {
		t.Fatalf("%q does not wait: %q", request, out)
	}
}

// gets expects the reply to a request that has waited.
func gets(t *testing.T, s *Session, want string) {
	t.Helper()
	if _, out, _ := s.Serve(nil, nil); string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestALoopAnswersWhileAWaitersOtherShardIsHeld(t *testing.T) {
	svc := loopService(t)
	mover, pusher := svc.NewSession(newLoopConn()), svc.NewSession(newLoopConn())
	defer mover.Closed(nil)
	defer pusher.Closed(nil)
	to := farFrom(svc, "from")
	begins(t, mover, "BLMOVE", "from", to, "LEFT", "RIGHT", "0")
	heldShard(t, svc, to, func() {
		replies(t, pusher, ":1\r\n+PONG\r\n", []string{"RPUSH", "from", "x"}, []string{"PING"})
	})
	gets(t, mover, "$1\r\nx\r\n")

	// The shard is free: the waiter is served before the pusher's next request.
	begins(t, mover, "BLMOVE", "from", to, "LEFT", "RIGHT", "0")
	replies(t, pusher, ":1\r\n$-1\r\n:2\r\n", []string{"RPUSH", "from", "y"}, []string{"LPOP", "from"}, []string{"LLEN", to})
	gets(t, mover, "$1\r\ny\r\n")
}

// A reclaimer runs on a loop, and wakes the clients that wait for a member that is due.
func TestALoopThatWakesALineDoesNotWaitForAnotherShard(t *testing.T) {
	svc := loopService(t)
	mover := svc.NewSession(newLoopConn())
	defer mover.Closed(nil)
	to := farFrom(svc, "from")
	begins(t, mover, "ZMOVEDUE", "from", to, "LEFT", "BLOCK", "0")
	replies(t, svc.NewSession(newLoopConn()), ":1\r\n", []string{"ZADD", "from", "1700000000.05", "job"})
	heldShard(t, svc, to, func() { svc.DB.Clock().(*clock.Manual).Advance(50 * time.Millisecond) })
	gets(t, mover, "*1\r\n*2\r\n$3\r\njob\r\n$13\r\n1700000000.05\r\n")
	replies(t, svc.NewSession(newLoopConn()), "$3\r\njob\r\n", []string{"LPOP", to})
}

// A client that leaves makes those behind it check again, which needs the shard of the key.
func TestALoopDoesNotWaitForTheShardOfAClientThatLeaves(t *testing.T) {
	svc := loopService(t)
	do(svc.NewSession(nil), "RL.TAKE", "k", "1", "600000")
	gone, next := svc.NewSession(newLoopConn()), svc.NewSession(newLoopConn())
	defer next.Closed(nil)
	for _, s := range []*Session{gone, next} {
		begins(t, s, "RL.WAIT", "k", "1", "600000", "0")
	}
	heldShard(t, svc, "k", func() {
		gone.Closed(nil)
		replies(t, svc.NewSession(newLoopConn()), "+PONG\r\n", []string{"PING"})
	})
}

// A lock whose grant did not reach its client is passed to the next one.
func TestALoopDoesNotWaitForTheShardOfALockThatItTakesBack(t *testing.T) {
	svc := loopService(t)
	owner := svc.NewSession(nil)
	held := do(owner, "LOCK.ACQUIRE", "k", "me", "600000")
	gone := svc.NewSession(newLoopConn())
	begins(t, gone, "LOCK.ACQUIRE", "k", "gone", "600000", "WAIT", "0")
	if v := do(owner, "LOCK.RELEASE", "k", "me", fmt.Sprint(held.Int)); v.Int != 1 {
		t.Fatal(held, v)
	}
	heldShard(t, svc, "k", func() { gone.Closed(nil) })
	if v := do(owner, "LOCK.ACQUIRE", "k", "me", "600000"); v.Kind == resp.KindNull || v.Err() != nil {
		t.Errorf("the lock is not free: %v", v)
	}
}

// A session that has a goroutine of its own waits for the shard, so that its next request finds its waiter served.
func TestAnEmbeddedCallerWaitsForTheShardOfItsWaiter(t *testing.T) {
	svc := loopService(t)
	mover, pusher := svc.NewSession(newLoopConn()), svc.NewSession(nil)
	defer mover.Closed(nil)
	defer pusher.Closed(nil)
	to := farFrom(svc, "from")
	begins(t, mover, "BLMOVE", "from", to, "LEFT", "RIGHT", "0")
	other := svc.DB.Begin(0, []byte(to))
	took := make(chan resp.Value, 1)
	go func() {
		do(pusher, "RPUSH", "from", "x")
		took <- do(pusher, "LPOP", "from")
	}()
	tx := svc.DB.NewTx()
	for pending := false; !pending; runtime.Gosched() {
		if !tx.TryLockKey(0, []byte("from")) { // the pusher may hold it, and wait for the other shard
			break
		}
		pending = tx.Pending([]byte("from"))
		tx.Unlock()
	}
	for range 10 * 200 { // longer than a loop tries
		runtime.Gosched()
	}
	other.Commit()
	if v := <-took; v.Kind != resp.KindNull {
		t.Errorf("the pusher took what its waiter waited for: %v", v)
	}
	gets(t, mover, "$1\r\nx\r\n")
}
