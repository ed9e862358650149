package reactor

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ebbdb/ebb/internal/testing/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// line answers each line with itself, and counts.
type line struct {
	conn   Conn
	want   int
	served chan int // bytes given to Serve
	pushes atomic.Int64
	closed chan error
}

func (s *line) Serve(in, out []byte) (int, []byte, Verdict) {
	n := bytes.LastIndexByte(in, '\n') + 1
	select {
	case s.served <- len(in):
	default:
	}
	return n, append(out, in[:n]...), Continue
}
func (s *line) Want() int { return s.want }
func (s *line) TakePushes(out []byte) []byte {
	for range s.pushes.Swap(0) {
		out = append(out, 'p')
	}
	return out
}
func (s *line) Closed(err error) { s.closed <- err }

// listening starts a reactor with one listener and returns its address.
func listening(t *testing.T, cfg Config) (*Reactor, string, <-chan *line) {
	t.Helper()
	sessions := make(chan *line, 1000)
	cfg.NewSession = func(c Conn) Session {
		s := &line{conn: c, served: make(chan int, 10000), closed: make(chan error, 1)}
		sessions <- s
		return s
	}
	r, addr := started(t, cfg)
	return r, addr, sessions
}

// started is listening for other sessions.
func started(t *testing.T, cfg Config) (*Reactor, string) {
	t.Helper()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.Listen(fd, 128)
	}
	if err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddListener(fd, "tcp"); err != nil {
		t.Fatal(err)
	}
	return r, endpointOf(sa).String()
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func echo(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Fatalf("got %q, %v; want %q", got, err, text)
	}
}

// warnings is a log handler that counts.
type warnings struct {
	slog.Handler
	seen chan string
}

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	select {
	case w.seen <- r.Message:
	default:
	}
	return nil
}

func TestRunningOutOfDescriptorsNeitherSpinsNorLosesClients(t *testing.T) {
	w := warnings{slog.NewTextHandler(io.Discard, nil), make(chan string, 1000)}
	r, addr, _ := listening(t, Config{Loops: 1, Logger: slog.New(w)})
	echo(t, dial(t, addr), "before\n")

	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	low := old
	low.Cur = 200
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &old) }()
	var fill []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		fill = append(fill, f)
	}
	_ = fill[0].Close()
	c := dial(t, addr) // takes the last descriptor; accept gets none
	for range 2 {
		if got := <-w.seen; !strings.Contains(got, "open files") {
			t.Errorf("logged %q", got)
		}
	}
	for _, f := range fill[1:] {
		_ = f.Close()
	}
	echo(t, c, "after\n")
	r.Close()
	if n := r.loops[0].batches; n > 100 {
		t.Errorf("the loop ran %d batches: it spins", n)
	}
}

func TestADeclaredRequestCostsNothingUntilItArrives(t *testing.T) {
	p := &pool{}
	l := &loop{rbuf: make([]byte, readSize), pool: *p}
	c := &conn{loop: l, session: &line{want: 512 << 20}}
	arrived := 0
	in := l.rbuf[:100]
	for arrived < 3<<20 {
		c.keep(in, 0)
		if got := c.w - c.r; got != len(in) {
			t.Fatalf("kept %d bytes of %d", got, len(in))
		}
		if limit := max(4*len(in), 1<<minClass); len(c.in) > limit {
			t.Fatalf("%d bytes arrived, and the buffer is %d", len(in), len(c.in))
		}
		buf, kept := c.readSpace()
		if len(buf) <= kept {
			t.Fatalf("no room behind %d bytes", kept)
		}
		arrived = min(len(buf), kept+1000)
		in = buf[:arrived]
	}
	c.keep(in, len(in))
	if c.in != nil {
		t.Error("an idle connection keeps its buffer")
	}
}

func TestUnconsumedInputSurvivesEveryPath(t *testing.T) {
	l := &loop{rbuf: make([]byte, readSize)}
	s := &line{}
	c := &conn{loop: l, session: s}
	next, first := byte(0), byte(0) // the stream is 0, 1, 2, ...
	in := []byte(nil)
	for step := range 3000 {
		buf, kept := c.readSpace()
		n := min(len(buf)-kept, step*step%70001)
		for i := range n {
			buf[kept+i] = next
			next++
		}
		in = buf[:kept+n]
		for i, b := range in {
			if b != first+byte(i) {
				t.Fatalf("step %d: byte %d of %d is wrong", step, i, len(in))
			}
		}
		consumed := len(in) * (step % 4) / 4
		if step%500 == 499 {
			consumed = len(in)
		}
		if len(in) > 1<<20 {
			consumed = len(in) - 5
		}
		s.want = (len(in) - consumed) * (step % 3)
		first += byte(consumed)
		c.keep(in, consumed)
		if step%5 == 0 && c.in != nil { // resumed without a read
			consumed = min(3, c.w-c.r)
			first += byte(consumed)
			c.keep(c.in[c.r:c.w], consumed)
		}
	}
}

func TestManyWakesAreFew(t *testing.T) {
	r, addr, sessions := listening(t, Config{Loops: 2})
	c := dial(t, addr)
	s := <-sessions
	var wg sync.WaitGroup
	const producers, each = 8, 5000
	for range producers {
		wg.Go(func() {
			for range each {
				s.pushes.Add(1)
				s.conn.Wake()
			}
		})
	}
	if n, err := io.CopyN(io.Discard, c, producers*each); err != nil {
		t.Fatalf("%d of %d pushes came: %v", n, producers*each, err)
	}
	wg.Wait()
	_ = r
}

func TestConnectionsAreDealtEvenly(t *testing.T) {
	r, addr, sessions := listening(t, Config{Loops: 4})
	var conns []net.Conn
	loops := make([]int, 4)
	var all []*line
	for range 40 {
		conns = append(conns, dial(t, addr))
		s := <-sessions
		loops[s.conn.Loop()]++
		all = append(all, s)
	}
	for i, n := range loops {
		if n != 10 {
			t.Errorf("loop %d has %d connections", i, n)
		}
	}
	for i, s := range all {
		if s.conn.Loop() == 2 {
			s.conn.Kill(io.EOF)
			<-s.closed
			_ = conns[i].Close()
		}
	}
	for range 10 {
		dial(t, addr)
		if s := <-sessions; s.conn.Loop() != 2 {
			t.Errorf("dealt to loop %d while loop 2 has room", s.conn.Loop())
		}
	}
	if n := r.cfg.Gate.Count(); n != 40 {
		t.Errorf("the gate counts %d", n)
	}
}

func TestAClosedReactorTurnsAwayWhatComesLate(t *testing.T) {
	r, addr, sessions := listening(t, Config{Loops: 1})
	dial(t, addr)
	s := <-sessions
	r.Close()
	if err := <-s.closed; err != ErrShutdown {
		t.Errorf("closed with %v", err)
	}
	s.conn.Wake()
	s.conn.Kill(nil)
	r.Nudge(0)
	r.Close()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.AddListener(fd, "tcp"); err != ErrShutdown {
		t.Errorf("AddListener returned %v", err)
	}
}

func TestASleepingLoopWakesForItsDeadlineAndNotBefore(t *testing.T) {
	for _, nanos := range []bool{true, false} {
		p, err := newPoller()
		if err != nil {
			t.Fatal(err)
		}
		if !p.nanos && nanos {
			p.close()
			continue
		}
		p.nanos = nanos
		for _, d := range []time.Duration{1, time.Microsecond, 999 * time.Microsecond, 1500 * time.Microsecond} {
			var before, after unix.Timespec
			_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &before)
			if n := p.wait(d); n != 0 {
				t.Errorf("%d events", n)
			}
			_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &after)
			if slept := time.Duration(after.Nano() - before.Nano()); slept < d {
				t.Errorf("slept %v, asked for %v", slept, d)
			}
		}
		p.close()
	}
}

func TestAnIdleLoopSleeps(t *testing.T) {
	called := make(chan struct{}, 1000)
	r, _, _ := listening(t, Config{Loops: 1, Idle: func(int) time.Duration {
		called <- struct{}{}
		return -1
	}})
	<-called
	for range 3 {
		r.Nudge(0)
		<-called
	}
	runtime.Gosched()
	r.Close()
	if n := r.loops[0].batches; n > 10 {
		t.Errorf("%d batches without a reason", n)
	}
}

func TestTheGateCountsAndRefuses(t *testing.T) {
	var g Gate
	g.SetMax(1)
	if !g.Enter() || g.Enter() || g.Count() != 1 {
		t.Error("the gate does not hold one")
	}
	g.SetMax(0)
	if !g.Enter() || g.Count() != 2 {
		t.Error("a gate without a maximum refuses")
	}
	g.Leave()
	g.Leave()
	if g.Count() != 0 {
		t.Error("the connections that left are counted")
	}
}

func TestBuffersComeBackWithinTheBudget(t *testing.T) {
	var p pool
	for _, n := range []int{1, 512, 513, 100000, 1 << 20, 1<<20 + 1} {
		b := p.get(n)
		if len(b) < n {
			t.Fatalf("asked for %d, got %d", n, len(b))
		}
		p.put(b[:1])
	}
	if b := p.get(600); len(b) != 1024 {
		t.Errorf("got %d bytes", len(b))
	}
	for range 10 {
		p.put(make([]byte, 1<<20))
	}
	if p.kept > poolBudget {
		t.Errorf("%d bytes are kept", p.kept)
	}
	p.put(nil)
	p.trim()
	if p.kept != 0 {
		t.Errorf("%d bytes are kept after trim", p.kept)
	}
}

// parker answers a line when it was woken.
type parker struct {
	line
	waits bool
	round *[]*parker // those of its loop that wait
}

func (s *parker) Serve(in, out []byte) (int, []byte, Verdict) {
	if s.waits {
		s.waits = false
		return 0, append(out, "done\n"...), Continue
	}
	n := bytes.LastIndexByte(in, '\n') + 1
	if n == 0 {
		return 0, out, Continue
	}
	s.waits = true
	*s.round = append(*s.round, s)
	return n, out, Park
}

func TestAWaiterForTheEndOfABatchIsServedAtIt(t *testing.T) {
	var round, settled []*parker // the loop's
	_, addr := started(t, Config{
		Loops: 1,
		NewSession: func(c Conn) Session {
			return &parker{line: line{conn: c, closed: make(chan error, 1)}, round: &round}
		},
		Settle: func(int) (did bool) {
			if len(round) == 0 {
				return false
			}
			settled, round = append(settled[:0], round...), round[:0]
			for _, s := range settled {
				s.conn.Wake()
			}
			return true
		},
		Idle: func(int) time.Duration {
			for _, s := range settled {
				if s.waits {
					t.Error("a session that was woken at the end of the batch was not served in it")
				}
			}
			return -1
		},
	})
	for range 3 {
		c := dial(t, addr)
		for range 20 {
			if _, err := io.WriteString(c, "do it\n"); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, 5)
			if _, err := io.ReadFull(c, got); err != nil || string(got) != "done\n" {
				t.Fatalf("%q, %v", got, err)
			}
		}
	}
}
