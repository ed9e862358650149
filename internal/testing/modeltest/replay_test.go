package modeltest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

// contentRequests make a container, and change it by one item.
var contentRequests = map[string][2]string{
	"hash":       {"HSET k a 1 b 2", "HSET k a 3"},
	"list":       {"RPUSH k a b c", "LPUSH k c"},
	"order":      {"RPUSH k a b", "LINSERT k BEFORE a b"},
	"set":        {"SADD k a b", "SREM k a"},
	"sorted set": {"ZADD k 1 a 2 b", "ZADD k 1.5 a"},
	"stream":     {"XADD k 1-1 a b", "XADD k 2-1 a c"},
	"group":      {"XADD k 1-1 a b", "XGROUP CREATE k g 0"},
	"field name": {"HSET k a 1", "HSET k b 1"},
	"rule":       {"EXPIRY RULE SET r MATCH * TO s", "EXPIRY RULE SET r MATCH a* TO s"},
	"no rule":    {"EXPIRY RULE SET r MATCH * TO s", "EXPIRY RULE DEL r"},
}

func TestAReplicaNoticesWhatAContainerHolds(t *testing.T) {
	for name, r := range contentRequests {
		t.Run(name, func(t *testing.T) {
			e, err := transcript.NewEngine()
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			replica, err := NewReplica()
			if err != nil {
				t.Fatal(err)
			}
			defer replica.Close()
			if _, err := e.Do(1, strings.Fields(r[0])...); err != nil {
				t.Fatal(err)
			}
			if err := replica.Follow(e.DB); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Do(1, strings.Fields(r[1])...); err != nil {
				t.Fatal(err)
			}
			e.DB.Drain() // the effects are lost
			if err := replica.Follow(e.DB); err == nil {
				t.Fatalf("the effects of %q were lost, and nothing was noticed", r[1])
			}
		})
	}
}

// dying are requests that store something under k that has expired after 10 ms.
var dying = map[string]string{
	"string":            "SET k v PX 10",
	"stream":            "XADD k 1-1 a b|PEXPIRE k 10",
	"field":             "HSETEX k PX 10 FIELDS 1 f v",
	"one of two fields": "HSET k g w|HSETEX k PX 10 FIELDS 1 f v",
	"member":            "SADDEX k PX 10 MEMBERS 1 m",
	"member with score": "ZADD k 1 m|ZPEXPIRE k 10 MEMBERS 1 m",
	"element":           "LPUSHEX k PX 10 ELEMENTS 1 a",
	"lock":              "LOCK.ACQUIRE k o 10",
	"one of two locks":  "LOCK.ACQUIRE k o 10 SHARED|LOCK.ACQUIRE k p 1000 SHARED",
	"semaphore":         "SEM.ACQUIRE k o 3 10",
	"lease of a job":    "DQ.ADD k id payload|DQ.POP k LEASE 10",
	"job":               "DQ.ADD k id payload EXPIRE 10",
	"filter":            "BF.RESERVE k 0.01 10 WINDOW 10 GENERATIONS 2|BF.ADD k a",
}

// What has expired is there in the engine until it is removed, and in the replica until its
// removal comes among the effects, however late that is; a removal that leaves no effect is
// noticed, whatever the clocks say.
func TestAReplicaHasWhatHasExpiredUntilItIsRemoved(t *testing.T) {
	for name, lines := range dying {
		t.Run(name, func(t *testing.T) {
			for _, lose := range []bool{false, true} {
				e, err := transcript.NewEngine()
				must(t, err)
				defer e.Close()
				replica, err := NewReplica()
				must(t, err)
				defer replica.Close()
				e.DB.SetActiveExpiry(false)
				for line := range strings.SplitSeq(lines, "|") {
					v, err := e.Do(1, strings.Fields(line)...)
					must(t, err)
					if v.Kind == resp.KindError {
						t.Fatal(line, v)
					}
				}
				must(t, replica.Follow(e.DB))
				must(t, e.Advance(50*time.Millisecond))
				must(t, replica.Follow(e.DB)) // nothing was removed yet
				e.DB.SetActiveExpiry(true)
				must(t, e.Advance(time.Millisecond))
				if lose && len(e.DB.Drain()) == 0 {
					t.Fatal("nothing was removed")
				}
				if err := replica.Follow(e.DB); lose != (err != nil) {
					t.Errorf("the removal was lost: %v, the comparison says: %v", lose, err)
				}
			}
		})
	}
}

// Follow compares one instant with itself, even while clients write.
func TestABusyEngineIsFollowed(t *testing.T) {
	e, err := transcript.NewEngine()
	must(t, err)
	defer e.Close()
	replica, err := NewReplica()
	must(t, err)
	defer replica.Close()
	bursts, begun := make(chan int), make(chan int)
	var writer sync.WaitGroup
	writer.Go(func() {
		s := e.Service.NewSession(nil)
		defer s.Closed(nil)
		for i := range bursts {
			s.Do([]byte("INCR"), []byte("n"))
			begun <- i
			for range 100 {
				s.Do([]byte("XADD"), []byte("x"), []byte("MAXLEN"), []byte("5"), []byte("*"), []byte("a"), []byte("b"))
				s.Do([]byte("INCR"), []byte("n"))
			}
		}
	})
	defer writer.Wait()
	defer close(bursts)
	for i := range 50 {
		bursts <- i
		<-begun // the writer continues meanwhile
		must(t, replica.Follow(e.DB))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
