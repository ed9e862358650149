package replication

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
)

// stingy is a connection whose socket accepts a random part of what a loop writes.
type stingy struct {
	reactor.Taken
	mu       sync.Mutex // guards the fields below
	rand     *rand.Rand // nil: it accepts everything
	err      error
	got      []byte
	byLoop   int // bytes
	complete *sync.Cond
}

func newStingy(r *rand.Rand) *stingy {
	c := &stingy{rand: r}
	c.complete = sync.NewCond(&c.mu)
	return c
}

func (c *stingy) TryWrite(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(b)
	if c.rand != nil {
		n = min(n, c.rand.IntN(2*n+1))
	}
	c.byLoop += n
	return c.take(b[:n])
}

func (c *stingy) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.take(b)
}

func (c *stingy) take(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	c.got = append(c.got, b...)
	c.complete.Broadcast()
	return len(b), nil
}

// await waits until n bytes have arrived, and returns them.
func (c *stingy) await(n int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.got) < n {
		c.complete.Wait()
	}
	return c.got
}

// pushTo returns a replica on nc whose goroutine sends the stream until the test ends.
func pushTo(t *testing.T, nc *stingy) (f *Replica, over chan error) {
	t.Helper()
	r, _ := newNode(t)
	log := r.db.Log()
	log.Keep(1 << 20)
	f = &Replica{m: &r.master, nc: nc, announced: Announced{ebb: true}, stamps: make(chan dueStamp, mostStamps)}
	f.ctx, f.stop = context.WithCancel(t.Context())
	f.reader, _ = log.ReaderAt(log.End(), oplog.ForReplica)
	f.step.Store(int32(followOnline))
	r.master.followers = []*Replica{f}
	over = make(chan error, 1)
	go func() { over <- f.stream() }()
	t.Cleanup(func() {
		r.master.remove(f)
		f.stop()
		f.reader.Close()
		if all := r.master.pushedTo(); len(all) > 0 {
			t.Errorf("loops push to %d replicas that have left", len(all))
		}
	})
	for !log.BeginPush() { // the goroutine has not begun
		f.reader.Nudge()
	}
	log.EndPush()
	for len(r.master.pushedTo()) == 0 {
		f.reader.Nudge()
	}
	return f, over
}

// batch runs a batch of a loop, which appends the stream's next command n.
func (f *Replica) batch(n int) {
	log := f.m.r.db.Log()
	pushes := log.BeginPush()
	log.AppendControl(fmt.Appendf(nil, "*1\r\n$8\r\nC%07d\r\n", n))
	if pushes {
		log.EndPush()
	}
	f.m.r.Push()
}

func TestALoopSendsWhatItHasAppended(t *testing.T) {
	nc := newStingy(nil)
	f, _ := pushTo(t, nc)
	for n := range 100 {
		f.batch(n)
		f.wmu.Lock() // the goroutine may be sending, as it has just begun
		nc.mu.Lock()
		if got, want := int64(len(nc.got)), f.m.r.db.Log().End(); got != want && n > 0 {
			t.Fatalf("after a batch the replica has %d bytes, want %d", got, want)
		}
		nc.mu.Unlock()
		f.wmu.Unlock()
	}
	if nc.byLoop == 0 {
		t.Error("the loop has sent nothing")
	}
	if sent, end := f.sent.Load(), f.m.r.db.Log().End(); sent != end || f.m.r.sent.Load() != end {
		t.Errorf("sent %d, %d bytes, want %d", sent, f.m.r.sent.Load(), end)
	}
}

// Several loops push, the socket accepts parts, and stamps are due meanwhile: the bytes arrive in order, and each stamp
// between two commands.
func TestLoopsAndTheGoroutineSendOneStream(t *testing.T) {
	nc := newStingy(rand.New(rand.NewPCG(1, 2)))
	f, _ := pushTo(t, nc)
	const loops, batches, each = 3, 400, 8
	var all sync.WaitGroup
	for i := range loops {
		all.Go(func() {
			for n := range batches {
				f.batch(i*batches + n)
				if n%each == 0 && i == 0 {
					f.m.mu.Lock()
					f.addStamp([]byte("*1\r\n$5\r\nSTAMP\r\n"))
					f.m.mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	log := f.m.r.db.Log()
	want, err := log.ReaderAt(0, oplog.ForReplica)
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	var stream []byte
	for b := want.Next(); b != nil; b = want.Next() {
		stream = append(stream, b...)
	}
	got, stamps := nc.await(len(stream)), 0
	for f.sent.Load() != log.End() {
		got = nc.await(len(got)) // the goroutine sends the last part
	}
	nc.mu.Lock()
	got = slices.Clone(nc.got)
	nc.mu.Unlock()
	for len(stream) > 0 && len(got) > 0 {
		if rest, ok := bytes.CutPrefix(got, []byte("*1\r\n$5\r\nSTAMP\r\n")); ok {
			got = rest
			stamps++
			continue
		}
		n := bytes.Index(stream[1:], []byte("*")) + 1
		if n == 0 {
			n = len(stream)
		}
		if !bytes.HasPrefix(got, stream[:n]) {
			t.Fatalf("%.60q arrives, want %.60q", got, stream[:n])
		}
		got, stream = got[n:], stream[n:]
	}
	if len(stream) > 0 || stamps == 0 || nc.byLoop == 0 {
		t.Errorf("%d bytes are missing; %d stamps, %d bytes from loops", len(stream), stamps, nc.byLoop)
	}
}

// The goroutine ends with the error of a connection to which only loops write.
func TestAnErrorOfAPushEndsTheReplica(t *testing.T) {
	nc := newStingy(nil)
	f, over := pushTo(t, nc)
	f.batch(1)
	nc.mu.Lock()
	nc.err = net.ErrClosed
	nc.mu.Unlock()
	f.batch(2)
	if err := <-over; err != net.ErrClosed {
		t.Errorf("it ends with %v", err)
	}
}

// attending is a connection that a loop reads.
type attending struct {
	reactor.Taken
	ended bool
	take  func([]byte) bool
	end   func(error)
}

func (c *attending) Attend(take func([]byte) bool, end func(error)) bool {
	c.take, c.end = take, end
	return !c.ended
}

func TestALoopReadsAcknowledgements(t *testing.T) {
	for _, ended := range []bool{false, true} {
		r, _ := newNode(t)
		f := &Replica{m: &r.master, acknowledged: make(chan struct{}, 1)}
		f.ctx, f.stop = context.WithCancel(t.Context())
		nc, listening := &attending{ended: ended}, sync.WaitGroup{}
		f.listen(nc, []byte("*3\r\n$8\r\nREPLCONF\r\n$3\r\nACK\r\n$1\r\n5\r\n*3\r\n$8\r\nREPL"), &listening)
		if got := f.acked.Load(); got != 5 {
			t.Errorf("acknowledged %d, want 5", got)
		}
		if !ended {
			if !nc.take([]byte("CONF\r\n$3\r\nACK\r\n$2\r\n17\r\n*3\r\n$8")) || f.acked.Load() != 17 {
				t.Errorf("acknowledged %d, want 17", f.acked.Load())
			}
			nc.end(net.ErrClosed)
		}
		listening.Wait()
		if f.ctx.Err() == nil || f.why.Load() != nil {
			t.Error("the replica goes on without its connection, or names an error")
		}
	}
}
