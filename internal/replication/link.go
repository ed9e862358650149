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

	"github.com/ebbdb/ebb/internal/cleantext"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/wire"
)

// A replica's link to its master.
//
//	run ─▶ attempt ─▶ dial ─▶ handshake ─▶ PSYNC ─┬─ +FULLRESYNC ─▶ load ─▶┐
//	 ▲                                            └─ +CONTINUE ────────────┴▶ stream
//	 └───── a second later ◀──── any error ◀────────────────────────────────────┘
//
// One goroutine runs all of this. For each connection a second one (tend) acknowledges each second, and closes a
// connection that is silent for repl-timeout. In a group the replica also acknowledges at once, see Node.AckAtOnce.

// linkStep is the present step of a link.
type linkStep int32

const (
	linkConnect    linkStep = iota // waits before it dials
	linkConnecting                 // dials
	linkHandshake                  // authenticates and announces itself
	linkSync                       // receives all data
	linkConnected                  // receives the stream
)

// linkRoles are the words of ROLE for a linkStep.
var linkRoles = [...]string{"connect", "connecting", "handshake", "sync", "connected"}

// link follows one master. Its goroutine ends with stop, or with the Node.
type link struct {
	r        *Node
	host     string
	port     int
	handOver bool // PSYNC FAILOVER asks the other server to become the master
	started  bool // written with all shards held
	ctx      context.Context
	stop     context.CancelFunc
	gone     chan struct{} // closed when its goroutine has ended

	at           atomic.Int32 // linkStep
	lastReceived atomic.Int64 // us; time at which the master last sent something
	notReading   atomic.Bool  // set for instance during a load: the liveness check must not count the silence
	down         atomic.Int64 // us; since then there is no stream
	expected     atomic.Int64 // bytes of a full synchronisation; -1: unknown
	received     atomic.Int64
	async        atomic.Bool // a full synchronisation is loaded while clients are served from the old data
	conn         atomic.Pointer[masterConn]

	// Only the link's goroutine uses the fields below.
	lastError string        // the text of the last logged error
	retried   int64         // us; time at which it last dialled at once after a loss of the stream
	failures  int           // failed full synchronisations in a row
	dropped   bool          // the present full synchronisation has dropped the old data
	denied    int           // attempts in a row that the master has refused
	hurry     chan struct{} // capacity 1; makes a link that was refused dial at once

	wait        time.Duration // before the next attempt
	refusedWait time.Duration // the wait after the last refused command
	refusedAt   int64         // us; 0: no command was refused
}

// retryAfter is the pause of a link before it dials again, as in Redis. A full
// synchronisation costs the master a snapshot of all data, so each failed one doubles the
// wait, up to retryAfter << retryDoubles.
const (
	retryAfter   = time.Second
	retryDoubles = 5
)

func newLink(r *Node, host string, port int) *link {
	l := &link{r: r, host: host, port: port, gone: make(chan struct{}), hurry: make(chan struct{}, 1)}
	l.ctx, l.stop = context.WithCancel(r.ctx)
	l.down.Store(r.db.Steady().Micros())
	return l
}

func (l *link) step() linkStep { return linkStep(l.at.Load()) }

// set stores the step of the link, and sets the gates, which depend on it.
func (l *link) set(s linkStep) {
	was := linkStep(l.at.Swap(int32(s)))
	if was == linkConnected && s != linkConnected {
		l.down.Store(l.r.db.Steady().Micros())
	}
	if (was == linkConnected) != (s == linkConnected) && l.current() {
		l.r.SetGates()
	}
}

// current reports whether the Node still uses the link. A true result stays true while the
// caller holds a shard.
func (l *link) current() bool { return l.r.follows.Load() == l }

// run connects again and again until the link is stopped.
func (l *link) run() {
	defer close(l.gone)
	log := l.r.log
	log.Info("this server replicates a master", "host", shownText(l.host), "port", l.port)
	l.note(&l.r.linkError, nil)
	for l.ctx.Err() == nil {
		err := l.attempt()
		lost := l.step() == linkConnected // such a link dials at once
		l.set(linkConnect)
		if l.ctx.Err() != nil {
			break
		}
		var refused *handOverError
		if errors.As(err, &refused) {
			l.r.notTaken(l, refused)
			break
		}
		l.note(&l.r.linkError, err)
		l.noteDenial(err)
		if text := err.Error(); text != l.lastError {
			log.Warn("the link to the master is down; the replica connects again", "master", shownText(l.addr()),
				"error", cleantext.Line(text, 4*maxPeerText))
			l.lastError = text
		}
		if refused := l.noteRefusal(err); refused || !lost || !l.atOnce() {
			l.pause(l.retryIn())
		}
	}
}

// retryInGroup is the pause before a link to the master of a group dials again. It is short because clients wait for
// the member, and a master that was just promoted refuses links until it is ready.
const retryInGroup = 50 * time.Millisecond

// deniedDoubles limits the doublings of the pause (to 3.2 s) while the master refuses the member's greeting. The
// reason for a refusal ends with a new state of the group, and then the link dials at once.
const deniedDoubles = 6

// noteDenial counts refusals in a row.
func (l *link) noteDenial(err error) {
	var denied *deniedError
	if l.denied++; !errors.As(err, &denied) && !errors.Is(err, errNotOfGroup) {
		l.denied = 0
	}
}

// retryIn returns the pause before the link dials again.
func (l *link) retryIn() time.Duration {
	if l.r.group != nil && l.failures == 0 && l.wait <= retryAfter {
		return retryInGroup << min(l.denied, deniedDoubles)
	}
	return max(l.wait, retryAfter<<min(max(l.failures-1, 0), retryDoubles))
}

// atOnce reports whether a link that has lost the stream may dial without a pause, which it may once in retryAfter. A
// master that accepts connections and closes them would otherwise get hundreds a second.
func (l *link) atOnce() bool {
	now := l.r.db.Steady().Micros()
	if l.retried != 0 && now-l.retried < retryAfter.Microseconds() {
		return false
	}
	l.retried = now
	return true
}

func (l *link) addr() string { return net.JoinHostPort(l.host, strconv.Itoa(l.port)) }

// After a command was refused the next link asks for a full synchronisation, which costs
// the master a snapshot. The link waits retryAfter before it dials. If the last refusal was
// less than calm ago, it waits twice as long as the last time, up to refusedMost.
const (
	refusedMost = 64 * time.Second
	calm        = 10 * 60 * 1e6 // us
)

// noteRefusal reports whether err is the refusal of a command, and sets the pause before the next attempt.
func (l *link) noteRefusal(err error) bool {
	var refused *refusedError
	if !errors.As(err, &refused) {
		l.wait = retryAfter
		return false
	}
	now := l.r.db.Steady().Micros()
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
	hurry := l.hurry
	if l.denied == 0 {
		hurry = nil
	}
	select {
	case <-t.C:
	case <-hurry:
		l.denied = 0
	case <-l.ctx.Done():
	}
}

// attempt makes one connection and returns when it has ended.
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
		if g := l.r.group; g != nil {
			g.Closed(m.number)
		}
	}()
	if err = l.converse(m); err != nil {
		if why := m.why.Load(); why != nil {
			return *why
		}
	}
	return err
}

// converse does everything on a connection: handshake, PSYNC, load, stream.
func (l *link) converse(m *masterConn) error {
	l.set(linkHandshake)
	if err := l.handshake(m); err != nil {
		return err
	}
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
			l.failures++
			l.failed(err)
			return err
		}
		l.failures = 0
		l.failed(nil)
		if g := l.r.group; g != nil {
			g.Loaded(m.number)
		}
	}
	l.lastError = ""
	l.note(&l.r.linkError, nil)
	l.r.log.Info("the link to the master is up", "master", shownText(l.addr()), "full", full != nil, "offset", l.r.db.Log().End())
	f := newFollower(l, m)
	defer f.close()
	l.set(linkConnected)
	l.acknowledge(m)
	return f.runSafely()
}

// failed stores the error of the last full synchronisation for INFO; nil: it has succeeded.
func (l *link) failed(err error) { l.note(&l.r.syncError, err) }

// note stores an error for INFO; nil: no error.
func (l *link) note(in *atomic.Pointer[string], err error) {
	text := ""
	if err != nil {
		text = cleantext.Line(err.Error(), 4*maxPeerText)
	}
	in.Store(&text)
}

// tend acknowledges once a second, and closes a silent connection, until over is closed.
func (l *link) tend(m *masterConn, over <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-m.wakeAck:
			if l.step() == linkConnected {
				l.acknowledge(m)
			}
			continue
		case <-tick.C:
		}
		switch l.step() {
		case linkConnected:
			l.acknowledge(m)
		case linkSync:
			_ = m.send([]byte("\n")) // tells the master that this replica is alive and loads
		}
		if l.notReading.Load() {
			m.noteReceived()
		}
		silent := l.r.db.Steady().Micros() - l.lastReceived.Load()
		if limit := l.r.config.Int("repl-timeout"); silent > limit*1e6 {
			m.Kill(fmt.Errorf("the master sent nothing for %d seconds (repl-timeout)", limit))
		}
	}
}

// acknowledge sends the master the offset of this replica, and the offset up to which its files hold the stream.
func (l *link) acknowledge(m *masterConn) {
	log := l.r.db.Log()
	end, synced := log.End(), log.Synced()
	if !l.current() {
		return // after a promotion the offsets belong to another stream
	}
	var a, f [20]byte
	args := [][]byte{[]byte("REPLCONF"), []byte("ACK"), strconv.AppendInt(a[:0], end, 10)}
	if k := l.r.host.Keeper(); k != nil && k.AppendOnly() {
		args = append(args, []byte("FACK"), strconv.AppendInt(f[:0], synced, 10))
	}
	if g := l.r.group; g != nil {
		text, ok := g.Acknowledge(m.number)
		if !ok {
			return
		}
		args = append(args, []byte("GROUP"), []byte(text))
		if l.r.master.observed() {
			args = append(args, []byte("OBSERVED"), []byte("1"))
		}
	}
	_ = m.send(wire.AppendCommand(nil, args...)) // the connection's reader sees the error
}

// applied acknowledges a newly applied part of the stream, if AckAtOnce says so. A part is one read of the
// connection: under load reads become large, and so acknowledgements rare.
func (l *link) applied(m *masterConn) {
	switch l.r.AcksAtOnce() {
	case AckApplied:
		l.acknowledge(m)
	case AckSynced:
		if log := l.r.db.Log(); log.OnSynced(log.End(), m.wakeAck) {
			l.acknowledge(m)
		}
	}
}

// masterConn is the connection to a master. CLIENT LIST shows it with flags=M.
type masterConn struct {
	net.Conn
	l       *link
	r       *bufio.Reader
	write   sync.Mutex   // one message at a time
	wakeAck oplog.Signal // makes tend acknowledge
	number  uint64       // the number of the connection, in a group
	why     atomic.Pointer[error]
}

// linkBuffer is the size of a read of a link, in bytes: about 5 ms of a stream with a million
// small commands a second.
const linkBuffer = 256 << 10

func newMasterConn(l *link, conn net.Conn) *masterConn {
	m := &masterConn{Conn: conn, l: l, wakeAck: make(oplog.Signal, 1)}
	m.r = bufio.NewReaderSize(receivingReader{m}, linkBuffer)
	m.noteReceived()
	return m
}

func (m *masterConn) noteReceived() { m.l.lastReceived.Store(m.l.r.db.Steady().Micros()) }

// receivingReader records the time at which the master last sent something.
type receivingReader struct{ m *masterConn }

func (r receivingReader) Read(b []byte) (int, error) {
	n, err := r.m.Conn.Read(b)
	if n > 0 {
		r.m.noteReceived()
		r.m.l.r.received.Add(int64(n))
	}
	return n, err
}

// send writes a message. It is safe for concurrent use.
func (m *masterConn) send(b []byte) error {
	m.write.Lock()
	defer m.write.Unlock()
	_, err := m.Conn.Write(b)
	return err
}

// errLinkKilled is the error of a link that Kill(nil) has ended.
var errLinkKilled = errors.New("killed by another client")

// Kill implements reactor.Conn. The link connects again.
func (m *masterConn) Kill(err error) {
	if err == nil {
		err = errLinkKilled
	}
	m.why.CompareAndSwap(nil, &err)
	_ = m.Conn.Close()
}

// The other methods of reactor.Conn.

// Wake does nothing: send writes at once.
func (m *masterConn) Wake() {}

// RemoteAddr returns the master's address.
func (m *masterConn) RemoteAddr() string { return m.Conn.RemoteAddr().String() }

// LocalAddr returns the address of this side.
func (m *masterConn) LocalAddr() string { return m.Conn.LocalAddr().String() }

// Network returns "master".
func (m *masterConn) Network() string { return "master" }

// FD returns -1: the descriptor is not known.
func (m *masterConn) FD() int { return -1 }

// Loop returns -1: no loop serves the connection.
func (m *masterConn) Loop() int { return -1 }

// Buffered returns 0: the buffers are not counted.
func (m *masterConn) Buffered() (input, output int) { return 0, 0 }
