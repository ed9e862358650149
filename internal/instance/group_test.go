package instance

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// quorum acts as a group: an offset is committed when enough replicas have acknowledged it. It always has the lease.
type quorum struct {
	log    *oplog.Log
	need   int
	synced bool // the offset of the replicas' files counts
	told   chan struct{}
	acks   atomic.Int64

	mu    sync.Mutex // guards the fields below
	acked map[*replication.Replica]int64
}

func (q *quorum) Lease() bool { return true }

func (q *quorum) Info(func(string, any)) {}

func (q *quorum) Acked(a replication.Ack) {
	q.acks.Add(1)
	offset := a.Applied
	if q.synced {
		offset = a.Synced
	}
	q.mu.Lock() // held until the log has the offset, so that has is not ahead of the log
	q.acked[a.Replica] = offset
	all := []int64{}
	for _, n := range q.acked {
		all = append(all, n)
	}
	if slices.Sort(all); len(all) >= q.need {
		q.log.SetCommitted(a.Term, all[len(all)-q.need])
	}
	q.mu.Unlock()
	select {
	case q.told <- struct{}{}:
	default:
	}
}

func (q *quorum) Left(f *replication.Replica) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.acked, f)
}

// pair starts a master and a replica whose acknowledgement the master needs.
func pair(t *testing.T, when replication.AckTime, options ...string) (master, replica *Instance, q *quorum) {
	t.Helper()
	master, replica = startMaster(t, noPings...), startMaster(t, options...)
	q = &quorum{log: master.db.Log(), need: 1, synced: when == replication.AckSynced, told: make(chan struct{}, 1),
		acked: map[*replication.Replica]int64{}}
	master.svc.Replication().TellAcks(q)
	master.svc.JoinGroup(q)
	replica.svc.Replication().AckAtOnce(when)
	follow(t, dialTCP(t, replica.address()), master.address())
	return master, replica, q
}

func (in *Instance) address() string { return in.Addrs()[0].String() }

// When a write returns, the replica has it. 200 writes take less than a second each, so the acknowledgements are
// immediate.
func TestAWriteOfAGroupReturnsWhenTheReplicaHasIt(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		when    replication.AckTime
		options []string
	}{
		"in memory":    {when: replication.AckApplied},
		"in its files": {when: replication.AckSynced, options: []string{"--dir", t.TempDir(), "--appendonly", "yes", "--appendfsync", "always"}},
	} {
		t.Run(name, func(t *testing.T) {
			master, replica, q := pair(t, x.when, x.options...)
			c, r := connect(t, master.address()), connect(t, replica.address())
			for n := range 200 {
				v := strconv.Itoa(n)
				c.must("SET", "k", v)
				if got := r.must("GET", "k"); got.Str != v {
					t.Fatalf("after SET k %s the replica has %q", v, got.Str)
				}
				if log := replica.db.Log(); x.when == replication.AckSynced && log.Synced() < q.log.Committed() {
					t.Fatalf("committed %d, and the replica's files hold %d", q.log.Committed(), log.Synced())
				}
			}
		})
	}
}

// reply is the next reply on a connection.
type reply struct {
	resp.Value
	err error
}

// soon reads the next reply in a goroutine.
func (c client) soon() <-chan reply {
	got := make(chan reply, 1)
	go func() {
		v, err := wire.ReadValue(c.r)
		got <- reply{v, err}
	}()
	return got
}

func TestAReplyThatNoReplicaHasAcknowledgedStays(t *testing.T) {
	t.Parallel()
	master, replica, q := pair(t, replication.AckApplied)
	writer, reader, admin := connect(t, master.address()), connect(t, master.address()), connect(t, replica.address())
	writer.must("SET", "k", "old")
	admin.must("CLIENT", "PAUSE", "600000", "WRITE") // the replica applies nothing
	before := q.log.End()
	writer.send("SET", "k", "new")
	wrote := writer.soon()
	tier.Eventually(t, "the write is in the stream", func() bool { return q.log.End() > before })
	reader.send("GET", "k")
	read := reader.soon()
	other := connect(t, master.address())
	for range 20 { // the master still serves others, and sends the stream
		other.must("PING")
	}
	if got := admin.must("GET", "k"); got.Str != "old" {
		t.Fatalf("the paused replica has %q", got.Str)
	}
	select {
	case v := <-wrote:
		t.Fatalf("the reply to the write leaves: %v", v)
	case v := <-read:
		t.Fatalf("a reply that tells of the write leaves: %v", v)
	default:
	}
	admin.must("CLIENT", "UNPAUSE")
	if v := <-wrote; v.err != nil || v.Str != "OK" {
		t.Errorf("the write: %v", v)
	}
	if v := <-read; v.err != nil || v.Str != "new" {
		t.Errorf("the read: %v", v)
	}
}

func TestADeposedMasterTellsOfNothing(t *testing.T) {
	t.Parallel()
	master, replica, q := pair(t, replication.AckApplied)
	writer, admin, ops := connect(t, master.address()), connect(t, replica.address()), connect(t, master.address())
	writer.must("SET", "k", "old")
	admin.must("CLIENT", "PAUSE", "600000", "WRITE")
	before := q.log.End()
	writer.send("SET", "k", "lost")
	wrote := writer.soon()
	tier.Eventually(t, "the write is in the stream", func() bool { return q.log.End() > before })
	admin.must("REPLICAOF", "NO", "ONE")
	admin.must("CLIENT", "UNPAUSE")
	host, port, _ := net.SplitHostPort(replica.address())
	ops.send("REPLICAOF", host, port)
	if v := <-wrote; v.err != nil || v.Str != "UNSYNCED what came of the last commands is not certain" {
		t.Errorf("the write that the next master does not have: %v", v)
	}
	if v := <-writer.soon(); !errors.Is(v.err, io.EOF) {
		t.Errorf("the waiting client's connection: %v", v)
	}
	if got := admin.must("GET", "k"); got.Str != "old" {
		t.Errorf("the next master has %q", got.Str)
	}
}

// has returns the number of replicas that count, and whether one of them has acknowledged an offset.
func (q *quorum) has(offset int64) (replicas int, acknowledged bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, n := range q.acked {
		acknowledged = acknowledged || n >= offset
	}
	return len(q.acked), acknowledged
}

func TestAnAcknowledgementBelongsToTheTermOfItsConnection(t *testing.T) {
	t.Parallel()
	master, _, q := pair(t, replication.AckApplied)
	c := connect(t, master.address())
	c.must("SET", "k", "v")
	tx := master.db.BeginAll(0)
	q.log.Depose()
	tx.Commit()
	before := q.log.End()
	c.send("SET", "k", "w")
	tier.Eventually(t, "the write is acknowledged", func() bool {
		_, ok := q.has(before + 1)
		return ok
	})
	if got := q.log.Committed(); got != 0 {
		t.Errorf("a replica that came in the term before commits %d in this one", got)
	}
}

func TestAReplicaThatHasLeftCountsNoLonger(t *testing.T) {
	t.Parallel()
	master, replica, q := pair(t, replication.AckApplied)
	connect(t, master.address()).must("SET", "k", "v")
	connect(t, replica.address()).must("REPLICAOF", "NO", "ONE")
	tier.Eventually(t, "the replica has left", func() bool {
		n, _ := q.has(0)
		return n == 0
	})
}

// Outside of a group a replica acknowledges once a second.
func TestAReplicaAcknowledgesAtOnceOnlyIfItIsToldSo(t *testing.T) {
	t.Parallel()
	master, replica, q := pair(t, replication.AckApplied)
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	acknowledged := func(what string) {
		t.Helper()
		for q.log.Committed() < q.log.End() {
			select {
			case <-q.told:
			case <-ctx.Done():
				t.Fatalf("%s: committed %d of %d", what, q.log.Committed(), q.log.End())
			}
		}
	}
	c := connect(t, master.address())
	for range 200 {
		c.must("INCR", "n")
		acknowledged("at once")
	}
	replica.svc.Replication().AckAtOnce(replication.AckLater)
	c.send("INCR", "n")
	got := c.soon()
	if v := <-got; v.err != nil || v.Kind != resp.KindInt {
		t.Errorf("%v", v)
	}
	acknowledged("once a second")
	q.log.SetGroup(false) // so that writes do not wait for a replica
	before := q.acks.Load()
	for range 200 {
		c.must("INCR", "n")
	}
	if n := q.acks.Load() - before; n > 50 { // one a second would be fine: a write takes less than 5 ms
		t.Errorf("%d acknowledgements of 200 writes", n)
	}
}
