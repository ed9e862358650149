package instance

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"

	"github.com/ebbdb/ebb/internal/testing/draw"
)

var (
	scriptTime = flag.Duration("scripts.time", 0, "how long the stress test of scripts runs; 0: a fixed number of rounds")
	scriptSeed = flag.Uint64("scripts.seed", 0, "of its random numbers; 0: see package draw")
)

// Clients send pipelines of commands, transactions, blocking commands and scripts, some of which loop until they are
// killed. Meanwhile scripts are flushed, functions loaded, clients killed, and memory runs out, on two network loops.
// Every request gets its reply in order, the engine stays consistent, a replica of its effects has the same keyspace,
// and a server that is shut down meanwhile leaves no goroutine behind.
func TestScriptsBesideEverythingElse(t *testing.T) {
	seed := draw.Seed(t, *scriptSeed)
	s := newScriptStress(t)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range uint64(10) {
		clients.Go(func() { s.client(stop, rand.New(rand.NewPCG(seed, i))) })
	}
	clients.Go(func() { s.administrator(stop, rand.New(rand.NewPCG(seed, 1000))) })
	clients.Go(func() { s.subscriber(stop) })
	clients.Go(func() {
		for s.running(stop) {
			if err := s.replica.Run(s.db); err != nil {
				t.Error(err)
				return
			}
		}
	})
	if *scriptTime != 0 {
		<-time.After(*scriptTime)
	} else {
		s.await(s.enough, fmt.Sprintf("%d replies", s.want))
	}
	s.await(s.met, "BUSY")
	close(stop)
	s.down.Store(true)
	// No client kills scripts from here on. Looping scripts must not stop the loops, which end the connections.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.srv.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	// The comparison comes before Close, because Close ends a script that has written, and the effects then lack its
	// writes. Meanwhile this kills scripts that still run.
	compared := make(chan error, 1)
	go func() {
		clients.Wait() // for the replica, which waits for scripts
		compared <- s.replica.Follow(s.db)
	}()
	killer := s.svc.NewSession(nil)
	for done := false; !done; runtime.Gosched() {
		killer.Do([]byte("SCRIPT"), []byte("KILL"))
		killer.Do([]byte("FUNCTION"), []byte("KILL"))
		select {
		case err := <-compared:
			if done = true; err != nil {
				t.Error(err)
			}
		default:
		}
	}
	killer.Closed(nil)
	s.svc.Close()
	if n := s.db.Waiters(); n != 0 {
		t.Errorf("%d places in lines are taken, and no client waits", n)
	}
	s.db.LimitMemory(0)
	if err := s.db.Check(); err != nil {
		t.Error(err)
	}
	s.replica.Close()
	s.db.Close()
	t.Logf("%d replies, %d scripts killed, %d BUSY, %d connections", s.replies.Load(), s.killed.Load(), s.busy.Load(), s.conns.Load())
}

// scriptStress is the server and the counts of its clients.
type scriptStress struct {
	*stressed
	down atomic.Bool // the server is being shut down: connections may break

	replies, killed, busy, conns atomic.Int64

	want    int64         // number of replies
	enough  chan struct{} // closed after that number of replies
	met     chan struct{} // closed at the first BUSY: a client has met a long script
	metOnce sync.Once
}

func newScriptStress(t *testing.T) *scriptStress {
	s := &scriptStress{met: make(chan struct{}), enough: make(chan struct{}), want: 20_000, stressed: newStressed(t,
		"--busy-reply-threshold", "5", "--script-memory-limit", "8mb", "--notify-keyspace-events", "KEA")}
	if tier.Short() {
		s.want /= 10
	}
	return s
}

// await waits for an event of the clients; the limit allows for the race detector.
func (s *scriptStress) await(came <-chan struct{}, what string) {
	s.t.Helper()
	select {
	case <-came:
	case <-time.After(2 * patience):
		s.t.Errorf("not within %v: %s; the clients have %d replies", 2*patience, what, s.replies.Load())
	}
}

func (s *scriptStress) running(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return false
	default:
		return true
	}
}

// stressConn is a connection that checks the order of replies.
type stressConn struct {
	s    *scriptStress
	conn net.Conn
	r    *bufio.Reader
	seq  int
	// queueing is set between MULTI and EXEC.
	queueing bool
}

// dial connects. It returns nil if the server has ended.
func (s *scriptStress) dial() *stressConn {
	c, err := net.Dial("unix", s.path)
	if err != nil {
		if !s.down.Load() {
			s.t.Error(err)
		}
		return nil
	}
	s.conns.Add(1)
	return &stressConn{s: s, conn: c, r: bufio.NewReader(c)}
}

// read reads a reply, and skips pushes.
func (c *stressConn) read() (resp.Value, error) {
	for {
		v, err := wire.ReadValue(c.r)
		if err != nil || v.Kind != resp.KindPush {
			return v, err
		}
	}
}

// pipeline sends requests, each followed by an ECHO with its number, and reads the replies. It reports whether the
// connection is still open.
func (c *stressConn) pipeline(requests [][]string) bool {
	var b []byte
	first := c.seq
	for _, r := range requests {
		b = wire.AppendCommand(b, r...)
		b = wire.AppendCommand(b, "ECHO", "seq"+strconv.Itoa(c.seq))
		c.seq++
	}
	sent := make(chan error, 1)
	go func() {
		_, err := c.conn.Write(b)
		sent <- err
	}()
	for i, r := range requests {
		v, err := c.read()
		if err != nil {
			<-sent
			return false
		}
		c.s.count(v)
		switch r[0] {
		case "MULTI":
			c.queueing = c.queueing || v.Str == "OK"
		case "EXEC", "DISCARD", "RESET":
			c.queueing = false
		}
		echo, err := c.read()
		if err != nil {
			<-sent
			return false
		}
		want := "seq" + strconv.Itoa(first+i)
		// Above the memory limit, all commands of a transaction are refused, ECHO too.
		queued := c.queueing && (echo.Str == "QUEUED" || strings.HasPrefix(echo.Str, "OOM "))
		if echo.Str != want && !strings.HasPrefix(echo.Str, "BUSY ") && !queued {
			c.s.t.Errorf("%q was followed by %v, not %s", r, echo, want)
			<-sent
			return false
		}
	}
	return <-sent == nil
}

func (s *scriptStress) count(v resp.Value) {
	if s.replies.Add(1) == s.want {
		close(s.enough)
	}
	switch {
	case strings.HasPrefix(v.Str, "BUSY "):
		s.busy.Add(1)
		s.metOnce.Do(func() { close(s.met) })
	case strings.HasPrefix(v.Str, "ERR Script killed by user"):
		s.killed.Add(1)
	}
	for _, e := range v.Elems { // replies of EXEC
		s.count(e)
	}
}

// client sends pipelines, and now and then disconnects without reading.
func (s *scriptStress) client(stop <-chan struct{}, rng *rand.Rand) {
	var c *stressConn
	defer func() {
		if c != nil {
			_ = c.conn.Close()
		}
	}()
	for s.running(stop) {
		if c == nil {
			if c = s.dial(); c == nil {
				return
			}
		}
		requests := make([][]string, 1+rng.IntN(12))
		for i := range requests {
			requests[i] = s.request(rng)
		}
		if rng.IntN(30) == 0 { // disconnects
			var b []byte
			for _, r := range requests {
				b = wire.AppendCommand(b, r...)
			}
			_, _ = c.conn.Write(b)
			_ = c.conn.Close()
			c = nil
			continue
		}
		if !c.pipeline(requests) {
			_ = c.conn.Close()
			c = nil
		}
	}
}

// stressScripts are the scripts; KEYS[1] is a string, KEYS[2] a list.
var stressScripts = []string{
	"return redis.call('INCR', KEYS[1])",
	"redis.call('LPUSH', KEYS[2], 'a', 'b') redis.call('PUBLISH', 'news', KEYS[1]) return redis.call('LLEN', KEYS[2])",
	"redis.call('RPUSH', KEYS[2], 'x') return redis.call('LPOP', KEYS[2])",
	"local s = 0 for i = 1, 200000 do s = s + i end return s",
	"while true do end",
	"while true do pcall(redis.call, 'GET', KEYS[1]) end",
	"return string.find(string.rep('a', 5000), string.rep('a*', 5000) .. 'b')",
	"local t = {} while true do t[#t + 1] = {} end",
	"redis.call('SET', KEYS[1], 'half') for i = 1, 300000 do end redis.call('SET', KEYS[1], '1') return 'whole'",
	"redis.call('SET', KEYS[1], string.rep('x', 20000)) return redis.call('APPEND', KEYS[1], 'y')",
	"return redis.pcall('LPUSH', KEYS[1], 'wrong type')",
	"redis.call('PEXPIRE', KEYS[2], 1) return {redis.call('PTTL', KEYS[2]), KEYS, {ok = 'fine'}}",
	"error('on purpose')",
	"redis.setresp(3) return redis.call('BLPOP', KEYS[2], 0)",
	"redis.call('DEL', KEYS[1], KEYS[2]) return cjson.encode({1, 2, {a = 'b'}})",
	"return redis.call('KEYS', '*')",
	"#!lua flags=no-writes\nreturn redis.call('STRLEN', KEYS[1])",
	"#!lua flags=allow-oom\nreturn redis.call('RPUSH', KEYS[2], 'oom')",
	"redis.call('SELECT', 1) redis.call('INCRBY', KEYS[1], 3) return redis.call('DBSIZE')",
}

// request returns a random request.
func (s *scriptStress) request(rng *rand.Rand) []string {
	k := func() string { return "k" + strconv.Itoa(rng.IntN(6)) }
	l := func() string { return "l" + strconv.Itoa(rng.IntN(4)) }
	script := func() string { return stressScripts[rng.IntN(len(stressScripts))] }
	switch rng.IntN(24) {
	case 0, 1, 2, 3:
		return []string{"EVAL", script(), "2", k(), l()}
	case 4:
		return []string{"EVAL_RO", script(), "2", k(), l()}
	case 5:
		return []string{"FCALL", "f" + strconv.Itoa(rng.IntN(2)), "2", k(), l()}
	case 6:
		return []string{"EVALSHA", strings.Repeat("f", 40), "0"}
	case 7:
		return []string{"BLPOP", l(), l(), "0.02"}
	case 8:
		return []string{"BLMOVE", l(), l(), "LEFT", "RIGHT", "0.01"}
	case 9:
		return []string{"WATCH", k(), l()}
	case 10, 11:
		return []string{"MULTI"}
	case 12, 13, 14:
		return []string{"EXEC"}
	case 15:
		return []string{[]string{"DISCARD", "UNWATCH", "RESET", "PING"}[rng.IntN(4)]}
	case 16:
		return []string{"HELLO", strconv.Itoa(2 + rng.IntN(2))}
	case 17:
		return []string{"CLIENT", "TRACKING", []string{"ON", "OFF"}[rng.IntN(2)]}
	case 18:
		return []string{"MGET", k(), k(), l()}
	case 19:
		return []string{"SET", k(), strconv.Itoa(rng.IntN(100)), "PX", strconv.Itoa(1 + rng.IntN(50))}
	case 20:
		return []string{"RPUSH", l(), "p", "q"}
	case 21:
		return []string{"SCRIPT", "LOAD", script()}
	}
	return []string{"GET", k()}
}

// administrator kills scripts, flushes them, loads functions, and changes directives.
func (s *scriptStress) administrator(stop <-chan struct{}, rng *rand.Rand) {
	c := s.dial()
	if c == nil {
		return
	}
	defer c.conn.Close()
	ask := func(args ...string) bool {
		if _, err := c.conn.Write(wire.AppendCommand(nil, args...)); err != nil {
			return false
		}
		v, err := c.read()
		s.count(v)
		return err == nil
	}
	pace := time.NewTicker(time.Millisecond) // between two actions, clients find a script that runs for too long
	defer pace.Stop()
	for s.running(stop) {
		ok := ask("SCRIPT", "KILL") && ask("FUNCTION", "KILL") && ask("FUNCTION", "STATS")
		switch rng.IntN(40) {
		case 0:
			ok = ok && ask("SCRIPT", "FLUSH")
		case 1, 2, 3:
			ok = ok && ask("FUNCTION", "LOAD", "REPLACE", fmt.Sprintf(readOnlyLibrary, rng.IntN(2)))
		case 4:
			ok = ok && ask("FUNCTION", "DELETE", "lib1")
		case 5:
			ok = ok && ask("CONFIG", "SET", "busy-reply-threshold", strconv.Itoa(1+rng.IntN(10)))
		case 6:
			ok = ok && ask("CONFIG", "SET", "maxmemory", []string{"0", "0", "60000", "200000"}[rng.IntN(4)])
		case 7:
			ok = ok && ask("CONFIG", "SET", "maxmemory-policy", []string{"noeviction", "allkeys-lru", "volatile-ttl"}[rng.IntN(3)])
		case 8:
			ok = ok && ask("CLIENT", "KILL", "ID", strconv.Itoa(rng.IntN(200)))
		case 9:
			ok = ok && ask("CLIENT", "UNBLOCK", strconv.Itoa(rng.IntN(200)))
		case 10:
			ok = ok && ask("FLUSHALL")
		case 11:
			ok = ok && ask("CLIENT", "PAUSE", strconv.Itoa(rng.IntN(5)), "WRITE")
		case 12:
			ok = ok && ask("INFO", "everything") && ask("CLIENT", "LIST")
		}
		if !ok {
			if !s.down.Load() { // otherwise CLIENT KILL has hit the administrator
				_ = c.conn.Close()
				if c = s.dial(); c == nil {
					return
				}
			}
		}
		<-pace.C
	}
}

// readOnlyLibrary has functions that sometimes loop, without having written.
const readOnlyLibrary = "#!lua name=lib%[1]d\nlocal n = 0\n" +
	"redis.register_function('f%[1]d', function(keys) n = n + 1 if n %% 5 == 0 then while true do redis.call('EXISTS', keys[2]) end end " +
	"redis.call('SET', keys[1], n) return n end)"

// subscriber reads messages and keyspace events until the server ends.
func (s *scriptStress) subscriber(stop <-chan struct{}) {
	for s.running(stop) {
		c := s.dial()
		if c == nil {
			return
		}
		_, _ = c.conn.Write(wire.AppendCommand(nil, "PSUBSCRIBE", "*"))
		for {
			if _, err := wire.ReadValue(c.r); err != nil {
				break
			}
		}
		_ = c.conn.Close()
	}
}
