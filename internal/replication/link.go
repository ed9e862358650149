package replication

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/resp"
)

// A replica's link to its master.
//
//	run ─▶ attempt ─▶ dial ─▶ greet ─▶ PSYNC ─┬─ +FULLRESYNC ─▶ load ─▶┐
//	 ▲                                        └─ +CONTINUE ────────────┴▶ stream
//	 └───── a second later ◀──── whatever goes wrong ◀──────────────────────┘
//
// One goroutine does all that, and a second one per connection keeps it alive
// (tend): it acknowledges each second, and ends a connection that is silent for
// repl-timeout.

// linkStep is how far a link has come.
type linkStep int32

const (
	linkConnect    linkStep = iota // waits before it dials
	linkConnecting                 // dials
	linkHandshake                  // says who it is
	linkSync                       // receives all data
	linkConnected                  // receives the stream
)

// roles are the words of ROLE.
var linkRoles = [...]string{"connect", "connecting", "handshake", "sync", "connected"}

// link follows one master. Its goroutine ends with stop, or with the service.
type link struct {
	r        *Node
	host     string
	port     int
	handOver bool // PSYNC asks the master to become one: FAILOVER
	started  bool // guarded by all shards
	ctx      context.Context
	stop     context.CancelFunc
	gone     chan struct{} // closed when its goroutine has ended

	at       atomic.Int32 // linkStep
	heard    atomic.Int64 // us: when the master last sent something
	deaf     atomic.Bool  // nothing is read meanwhile: all data has arrived, and is being loaded
	down     atomic.Int64 // us since when there is no stream
	expected atomic.Int64 // bytes of a full synchronisation, -1: the master does not say
	received atomic.Int64
	beside   atomic.Bool // a full synchronisation is loaded beside the data, which is served
	conn     atomic.Pointer[masterConn]

	// Of its goroutine.
	said    string // the error that was logged last
	retried int64  // us: when it last dialled at once, after it had lost the stream
	bad     int    // full synchronisations in a row that have failed
	dropped bool   // the full synchronisation that has failed had dropped the data before

	wait        time.Duration // of pause
	refusedWait time.Duration // after the last command that was refused
	refusedAt   int64         // us; 0: none was
}

// retryAfter is how long a link waits before it dials again, as Redis does. A full
// synchronisation costs the master a snapshot of all data: each that fails doubles the
// time before the next, up to retryAfter << retryDoubles.
const (
	retryAfter   = time.Second
	retryDoubles = 5
)

func newLink(r *Node, host string, port int) *link {
	l := &link{r: r, host: host, port: port, gone: make(chan struct{})}
	l.ctx, l.stop = context.WithCancel(r.ctx)
	l.down.Store(r.db.Clock().Micros())
	return l
}

func (l *link) step() linkStep { return linkStep(l.at.Load()) }

// set notes how far the link has come, which decides what stale data is served.
func (l *link) set(s linkStep) {
	was := linkStep(l.at.Swap(int32(s)))
	if was == linkConnected && s != linkConnected {
		l.down.Store(l.r.db.Clock().Micros())
	}
	if (was == linkConnected) != (s == linkConnected) && l.current() {
		l.r.SetGates()
	}
}

// current reports whether the link is still the service's. With a shard locked the
// answer stays true until it is let go of.
func (l *link) current() bool { return l.r.follows.Load() == l }

// run keeps the link up until it is stopped.
func (l *link) run() {
	defer close(l.gone)
	log := l.r.log
	log.Info("replicates a master", "host", l.host, "port", l.port)
	for l.ctx.Err() == nil {
		err := l.attempt()
		lost := l.step() == linkConnected // then it is tried again at once
		l.set(linkConnect)
		if l.ctx.Err() != nil {
			break
		}
		var refused *handOverError
		if errors.As(err, &refused) {
			l.r.notTaken(l, refused)
			break
		}
		if text := err.Error(); text != l.said {
			log.Warn("the link to the master is down; it is tried again", "master", l.addr(), "error", text)
			l.said = text
		}
		if refused := l.noteRefusal(err); refused || !lost || !l.atOnce() {
			l.pause(max(l.wait, retryAfter<<min(max(l.bad-1, 0), retryDoubles)))
		}
	}
}

// atOnce reports whether a link that has lost the stream may dial without a pause: once
// in retryAfter. A master that takes the link and drops it again is not asked all the
// time.
func (l *link) atOnce() bool {
	now := l.r.db.Clock().Micros()
	if l.retried != 0 && now-l.retried < retryAfter.Microseconds() {
		return false
	}
	l.retried = now
	return true
}

func (l *link) addr() string { return net.JoinHostPort(l.host, strconv.Itoa(l.port)) }

// A link that ends because a command was refused is followed by a full synchronisation,
// which costs the master a snapshot. It comes after a second; again within calm, after
// twice as long as before, up to refusedMost.
const (
	refusedMost = 64 * time.Second
	calm        = 10 * 60 * 1e6 // us
)

// noteRefusal reports whether a link ended with a command that was refused, and sets for
// how long it pauses then.
func (l *link) noteRefusal(err error) bool {
	var refused *refusedError
	if !errors.As(err, &refused) {
		l.wait = retryAfter
		return false
	}
	now := l.r.db.Clock().Micros()
	if now-l.refusedAt > calm || l.refusedAt == 0 {
		l.refusedWait = 0
	}
	l.refusedAt = now
	l.refusedWait = min(max(2*l.refusedWait, retryAfter), refusedMost)
	l.wait = l.refusedWait
	return true
}

// pause waits before the next attempt.
func (l *link) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ctx.Done():
	}
}

// attempt is one connection, from its beginning to its end.
func (l *link) attempt() error {
	l.set(linkConnecting)
	conn, err := l.dial()
	if err != nil {
		return err
	}
	m := newMasterConn(l, conn)
	l.conn.Store(m)
	defer context.AfterFunc(l.ctx, func() { _ = conn.Close() })()
	var tending sync.WaitGroup
	over := make(chan struct{})
	tending.Go(func() { l.tend(m, over) })
	defer func() {
		l.conn.Store(nil)
		_ = conn.Close()
		close(over)
		tending.Wait()
	}()
	if err = l.converse(m); err != nil {
		if why := m.why.Load(); why != nil {
			return *why
		}
	}
	return err
}

// converse is what is said on a connection.
func (l *link) converse(m *masterConn) error {
	l.set(linkHandshake)
	if err := l.greet(m); err != nil {
		return err
	}
	full, err := l.psync(m)
	if err != nil {
		return err
	}
	if full != nil {
		l.set(linkSync)
		l.dropped = false
		if err := l.load(m, full); err != nil {
			err = fmt.Errorf("full synchronisation: %w", err)
			l.bad++
			l.failed(err)
			return err
		}
		l.bad = 0
		l.failed(nil)
	}
	l.said = ""
	l.r.log.Info("the link to the master is up", "master", l.addr(), "full", full != nil, "offset", l.r.db.Log().End())
	f := newFollower(l, m)
	defer f.close()
	l.set(linkConnected)
	l.acknowledge(m)
	return f.runSafely()
}

// failed notes for INFO why the last full synchronisation failed; nil: it did not.
func (l *link) failed(err error) {
	text := ""
	if err != nil {
		text = plainText(err.Error(), 4*maxPeerText)
	}
	l.r.syncError.Store(&text)
}

// tend looks after a connection each second, until it is over.
func (l *link) tend(m *masterConn, over <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		switch l.step() {
		case linkConnected:
			l.acknowledge(m)
		case linkSync:
			_ = m.send([]byte("\n")) // it is alive, and loads
		}
		if l.deaf.Load() {
			m.noteHeard()
		}
		silent := l.r.db.Clock().Micros() - l.heard.Load()
		if limit := l.r.config.Int("repl-timeout"); silent > limit*1e6 {
			m.Kill(fmt.Errorf("nothing was heard for %d seconds (repl-timeout)", limit))
		}
	}
}

// acknowledge tells the master how far this replica has come, and how far its
// files have.
func (l *link) acknowledge(m *masterConn) {
	log := l.r.db.Log()
	end, synced := log.End(), log.Synced()
	if !l.current() {
		return // a promotion may come before what was read: it would be another stream's
	}
	var a, f [20]byte
	args := [][]byte{[]byte("REPLCONF"), []byte("ACK"), strconv.AppendInt(a[:0], end, 10)}
	if k := l.r.host.Keeper(); k != nil && k.AppendOnly() {
		args = append(args, []byte("FACK"), strconv.AppendInt(f[:0], synced, 10))
	}
	_ = m.send(resp.AppendCommand(nil, args...)) // who reads will see that it failed
}

// masterConn is the connection to a master, which CLIENT LIST shows as a client's.
type masterConn struct {
	net.Conn
	l     *link
	r     *bufio.Reader
	write sync.Mutex // one message at a time
	why   atomic.Pointer[error]
}

// linkBuffer is what is read from a master at once: at a million small commands a
// second some 5 ms of them.
const linkBuffer = 256 << 10

func newMasterConn(l *link, conn net.Conn) *masterConn {
	m := &masterConn{Conn: conn, l: l}
	m.r = bufio.NewReaderSize(heardReader{m}, linkBuffer)
	m.noteHeard()
	return m
}

func (m *masterConn) noteHeard() { m.l.heard.Store(m.l.r.db.Clock().Micros()) }

// heardReader notes when something was received.
type heardReader struct{ m *masterConn }

func (h heardReader) Read(b []byte) (int, error) {
	n, err := h.m.Conn.Read(b)
	if n > 0 {
		h.m.noteHeard()
		h.m.l.r.received.Add(int64(n))
	}
	return n, err
}

// send writes a message; any goroutine may.
func (m *masterConn) send(b []byte) error {
	m.write.Lock()
	defer m.write.Unlock()
	_, err := m.Conn.Write(b)
	return err
}

// errLinkKilled is what CLIENT KILL says where the killer says nothing.
var errLinkKilled = errors.New("killed by another client")

// Kill implements reactor.Conn: the link connects anew.
func (m *masterConn) Kill(err error) {
	if err == nil {
		err = errLinkKilled
	}
	m.why.CompareAndSwap(nil, &err)
	_ = m.Conn.Close()
}

// The rest of reactor.Conn.

// Wake does nothing: what a master is sent is sent at once.
func (m *masterConn) Wake() {}

// RemoteAddr is the master's address.
func (m *masterConn) RemoteAddr() string { return m.Conn.RemoteAddr().String() }

// LocalAddr is this side's.
func (m *masterConn) LocalAddr() string { return m.Conn.LocalAddr().String() }

// Network is not that of a client.
func (m *masterConn) Network() string { return "master" }

// FD is not known.
func (m *masterConn) FD() int { return -1 }

// Loop says that no loop serves the connection.
func (m *masterConn) Loop() int { return -1 }

// Buffered is nothing worth counting.
func (m *masterConn) Buffered() (input, output int) { return 0, 0 }
