package replication

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/wire"
)

// followStep is the step of a replica's synchronisation.
type followStep int32

const (
	followWaits   followStep = iota // waits for a snapshot to begin
	followFile                      // waits for a snapshot that is written to a file first
	followReceive                   // receives a snapshot
	followLoads                     // loads the snapshot until its first acknowledgement
	followOnline                    // receives the stream
	followDone                      // has received a snapshot and wants no stream
)

// stateNames are the words of INFO for a followStep.
var stateNames = [...]string{"wait_bgsave", "wait_bgsave", "send_bulk", "send_bulk", "online", "rdb_transmitted"}

// Replica is a replica of this server: a connection that was taken out of its transport.
// Its methods are safe for concurrent use.
type Replica struct {
	m         *master
	conn      reactor.Conn // for its address and for Kill
	announced Announced
	ctx       context.Context
	stop      context.CancelFunc
	old       bool // it has sent SYNC, and sends no acknowledgements

	continues    string        // the reply +CONTINUE; "": a snapshot is needed
	ready        chan struct{} // closed when the snapshot is sent
	acknowledged chan struct{} // capacity 1; an acknowledgement has arrived
	stamps       chan dueStamp // stamps for a member of the group; nil for other replicas
	step         atomic.Int32  // followStep
	acked        atomic.Int64  // the offset up to which it has the stream in memory
	synced       atomic.Int64  // the offset up to which its files hold the stream
	ackAt        atomic.Int64  // us; time of the last acknowledgement, and before the first one the time at which it last received data
	sent         atomic.Int64  // the offset up to which the stream was written to it
	writing      atomic.Int64  // us; start of the write of a piece of its snapshot; 0: no such write
	observed     atomic.Bool   // it is a member that has a replica which is not one
	softSince    atomic.Int64  // us; since then it lags beyond the soft limit; 0: it does not
	why          atomic.Pointer[string]

	term   uint64        // the log's term when it became a replica
	left   bool          // guarded by m.mu
	reader *oplog.Reader // set at the cut of its snapshot, with m.mu held, or at once; nil with rdb-only
	plain  oplog.Plain
	input  []byte      // the beginning of a request; only the goroutine or the loop that reads the connection uses it
	parser wire.Parser // the same holds
	more   atomic.Bool // set by push, for the one that holds wmu

	wmu  sync.Mutex    // held while something is written; guards the fields below, and the calls of reader.Next
	nc   net.Conn      // nil before the transport has released the connection
	loop reactor.Taken // nc if loops push the stream to it; else nil
	rest []byte        // the end of a part of the stream that the socket did not accept from a loop
	due  dueStamp      // the stamp to send next
}

func (f *Replica) at() followStep { return followStep(f.step.Load()) }

func (f *Replica) set(s followStep) { f.step.Store(int32(s)) }

// place returns the address at which clients find the replica.
func (f *Replica) place() (host string, port int) {
	if host = f.announced.ip; host == "" {
		host, _, _ = net.SplitHostPort(f.conn.RemoteAddr())
	}
	return host, f.announced.port
}

// drop closes the replica's connection. The replica then connects again.
func (f *Replica) drop(why string) {
	f.why.CompareAndSwap(nil, &why)
	f.stop()
	f.conn.Kill(errReplica)
}

var errReplica = errors.New("the master has closed the replica's connection")

// Run sends the replica the data that it lacks and then the stream, until the connection
// ends. The session gives it to reactor.Hijacker. It closes nc.
func (f *Replica) Run(nc net.Conn, buffered []byte) {
	defer context.AfterFunc(f.ctx, func() { _ = nc.Close() })()
	f.wmu.Lock()
	f.nc = nc
	f.wmu.Unlock()
	var listening sync.WaitGroup
	f.listen(nc, buffered, &listening)
	err := f.serve()
	f.stop()
	_ = nc.Close()
	listening.Wait()
	f.Leave(err)
}

// Leave removes the replica from its master; calls after the first do nothing. Run calls
// it, and the session when its connection has ended, because Run may never have begun.
// err is for the log.
func (f *Replica) Leave(err error) {
	f.stop()
	f.m.mu.Lock()
	left, reader := f.left, f.reader
	f.left = true
	f.m.mu.Unlock()
	if left {
		return
	}
	f.m.remove(f)
	f.m.r.tellLeft(f)
	if reader != nil {
		reader.Close()
	}
	why := ""
	if p := f.why.Load(); p != nil {
		why = *p
	} else if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, net.ErrClosed) {
		why = err.Error()
	}
	host, port := f.place()
	f.m.r.log.Info("a replica has disconnected", "host", shownText(host), "port", port, "why", shownText(why))
}

// attach gives the replica a reader of the stream, from the offset of its snapshot's cut. A replica that has
// disconnected or wants no stream gets no reader, because a reader keeps the stream in memory.
func (f *Replica) attach(log *oplog.Log, offset int64) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if !f.left && !f.announced.rdbOnly {
		f.reader, _ = log.ReaderAt(offset, oplog.ForReplica)
	}
	f.sent.Store(offset)
}

// serve sends the replica the data that it lacks, and then the stream.
func (f *Replica) serve() error {
	if f.continues != "" {
		if err := f.write([]byte(f.continues)); err != nil {
			return err
		}
		f.set(followOnline)
		f.m.setGate()
		return f.stream()
	}
	f.m.enqueue(f)
	select {
	case <-f.ready:
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
	switch {
	case f.announced.rdbOnly:
		f.took()
		f.set(followDone)
		<-f.ctx.Done() // until the replica closes the connection
		return nil
	case f.at() == followLoads && !f.old:
		// After a snapshot of unknown length, the server must send nothing before the replica
		// has found the mark. The replica looks for the mark at the end of the bytes that it
		// has read.
		select {
		case <-f.acknowledged:
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	}
	f.took()
	f.set(followOnline)
	f.m.setGate()
	host, port := f.place()
	f.m.r.log.Info("a replica is online", "host", shownText(host), "port", port, "offset", f.reader.Offset())
	return f.stream()
}

// stream sends the stream, with stamps between transactions, until the connection fails or the replica is dropped.
func (f *Replica) stream() error {
	f.beginPushes()
	for {
		sent, err := f.sendNext()
		if err == nil && !sent {
			err = f.reader.Wait(f.ctx)
		}
		if err != nil {
			return err
		}
	}
}

// sendNext sends the next part of the stream or the next stamp. It reports false if there is nothing to send.
func (f *Replica) sendNext() (sent bool, err error) {
	f.wmu.Lock()
	defer f.wmu.Unlock()
	if b := f.rest; b != nil {
		f.rest = nil
		return true, f.putStream(b)
	}
	if f.due.command == nil {
		f.due = f.nextStamp()
	}
	from, due := f.reader.Offset(), f.due
	if due.command != nil && from >= due.at {
		f.due = dueStamp{}
		return true, f.put(due.command)
	}
	b := f.reader.Next()
	if b == nil {
		return false, nil
	}
	if !f.announced.ebb {
		if b, err = f.plain.Next(b); err != nil {
			return true, err
		}
	}
	if due.command != nil && f.reader.Offset() > due.at {
		n := due.at - from
		f.due = dueStamp{}
		if err := f.put(slices.Concat(b[:n], due.command)); err != nil {
			return true, err
		}
		b = b[n:]
	}
	return true, f.putStream(b)
}

// putStream writes the last part of the stream that the reader has returned, or the end of it. The caller holds wmu.
func (f *Replica) putStream(b []byte) error {
	if len(b) > 0 {
		if err := f.put(b); err != nil {
			return err
		}
	}
	f.sent.Store(f.reader.Offset())
	return nil
}

// dueStamp is a stamp to send when the stream reaches an offset at which no transaction is incomplete.
type dueStamp struct {
	command []byte // nil: no stamp
	at      int64
}

// mostStamps is the number of stamps that may wait until the stream before them is sent. A lease has four; a member
// that lags further behind loses the lease anyway.
const mostStamps = 8

// nextStamp returns the next stamp to send. If the stream has passed the stamp's offset, the stamp goes to the end of
// the stream.
func (f *Replica) nextStamp() dueStamp {
	select {
	case due := <-f.stamps:
		if due.at < f.reader.Offset() {
			due.at = f.m.r.db.Log().End()
		}
		return due
	default:
		return dueStamp{}
	}
}

// addStamp queues a stamp for a member, at the present end of the stream. m.mu is held.
func (f *Replica) addStamp(command []byte) {
	if f.reader == nil || f.at() != followOnline {
		return
	}
	select {
	case f.stamps <- dueStamp{command, f.m.r.db.Log().End()}:
		f.reader.Nudge()
	default: // not a member, or the queue is full
	}
}

// took records that the replica has just received or sent data.
func (f *Replica) took() { f.ackAt.Store(f.m.r.db.Steady().Micros()) }

// write writes all of b, before the stream begins.
func (f *Replica) write(b []byte) error {
	f.wmu.Lock()
	defer f.wmu.Unlock()
	return f.put(b)
}

// put writes all of b. The caller holds wmu.
func (f *Replica) put(b []byte) error {
	n, err := f.nc.Write(b)
	f.m.r.sent.Add(int64(n))
	return err
}

// keepAlive writes a newline to a replica that waits for a snapshot. The newline says
// only that the master is alive.
func (f *Replica) keepAlive() {
	if s := f.at(); s != followWaits && s != followFile {
		return
	}
	if f.wmu.TryLock() {
		if s := f.at(); f.nc != nil && (s == followWaits || s == followFile) {
			_ = f.put([]byte{'\n'}) // the socket of a waiting replica has space for a byte
		}
		f.wmu.Unlock()
	}
}

// maxRequest is the most input, in bytes, that can be the beginning of an acknowledgement.
const maxRequest = 1 << 16

// listen begins to take the replica's acknowledgements, by the loop that has served the connection or else by a
// goroutine. When the connection has ended, the replica is stopped, and listening is done.
func (f *Replica) listen(nc net.Conn, buffered []byte, listening *sync.WaitGroup) {
	f.parser.Limits.MaxBulk = maxRequest
	if !f.take(buffered) {
		return
	}
	t, ok := nc.(reactor.Taken)
	if !ok {
		listening.Go(func() {
			f.read(nc)
			f.stop()
		})
		return
	}
	listening.Add(1)
	end := func(err error) {
		f.notRead(err)
		f.stop()
		listening.Done()
	}
	if !t.Attend(f.take, end) {
		end(nil)
	}
}

// read takes acknowledgements until the connection ends.
func (f *Replica) read(nc net.Conn) {
	buf := make([]byte, 4096)
	for {
		n, err := nc.Read(buf)
		if n > 0 && !f.take(buf[:n]) {
			return
		}
		if err != nil {
			f.notRead(err)
			return
		}
	}
}

// notRead records the error of a read, for the log.
func (f *Replica) notRead(err error) {
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		text := err.Error()
		f.why.CompareAndSwap(nil, &text)
	}
}

// take takes the acknowledgements in the next bytes of the connection. If it reports false, it has dropped the replica.
func (f *Replica) take(b []byte) bool {
	if len(f.input) > 0 {
		f.input = append(f.input, b...)
		b = f.input
	}
	for len(b) > 0 {
		args, n, err := f.parser.Next(b)
		if err != nil || n == 0 && len(b) > maxRequest {
			f.drop("the replica sent bytes that are not a request")
			return false
		}
		if n == 0 {
			break
		}
		if !f.takeAck(args) {
			f.drop("the replica sent a request other than REPLCONF ACK")
			return false
		}
		b = b[n:]
	}
	f.input = append(f.input[:0], b...)
	return true
}

// takeAck handles REPLCONF ACK offset [FACK offset] [GROUP text [OBSERVED 1]], the only request of a replica with
// effect, and the empty lines of a replica that loads a snapshot. It ignores REPLCONF GETACK, which has no reply. It
// reports false for all other requests: their replies would appear in the stream.
func (f *Replica) takeAck(args [][]byte) bool {
	if len(args) == 0 {
		f.took()
		return true
	}
	if len(args) < 3 || !is(args[0], "REPLCONF") || !is(args[1], "ACK") {
		return len(args) > 1 && is(args[0], "REPLCONF") && (is(args[1], "ACK") || is(args[1], "GETACK"))
	}
	raise(&f.acked, args[2])
	text, observed := "", false
	for i := 3; i+1 < len(args); i += 2 {
		switch {
		case is(args[i], "FACK"):
			raise(&f.synced, args[i+1])
		case is(args[i], "GROUP"):
			text = string(args[i+1])
		case is(args[i], "OBSERVED"):
			observed = true
		}
	}
	f.observed.Store(observed)
	f.took()
	notify(f.acknowledged)
	m := f.m
	m.r.tellAcks(f, text)
	if m.gateClosed.Load() {
		m.setGate()
	}
	m.settleWaits()
	m.r.acked()
	return true
}

func raise(to *atomic.Int64, text []byte) {
	if n, ok := numeral.ParseInt(text); ok && n > to.Load() {
		to.Store(n)
	}
}

// bound drops a replica that takes and sends nothing for repl-timeout, or lags too far
// behind. A replica that waits for its snapshot is not dropped.
func (f *Replica) bound(now int64) {
	limit := f.m.r.config.Int("repl-timeout") * 1e6
	silent := now-f.ackAt.Load() > limit
	switch f.at() {
	case followWaits:
		return
	case followFile:
		silent = false
	case followReceive: // a pause of the snapshot's writer is not the replica's fault
		since := f.writing.Load()
		silent = since > 0 && now-since > limit
	case followOnline:
		silent = silent && !f.old // after SYNC a replica sends nothing
	}
	switch {
	case silent:
		f.drop("the replica took and sent nothing for longer than repl-timeout")
	case !f.announced.rdbOnly:
		f.boundLag(now)
	}
}

// boundLag drops a replica that lags too far behind: the stream that it lacks takes up
// memory.
func (f *Replica) boundLag(now int64) {
	c := f.m.r.config
	l := c.OutputLimit(config.Replica)
	lag := f.m.r.db.Log().End() - f.sent.Load()
	keep := backlogSize(c) // the backlog keeps that much anyway
	switch {
	case l.Hard > 0 && lag > max(l.Hard, keep):
		f.drop("the replica lags further behind than the hard limit of client-output-buffer-limit replica")
	case l.Soft <= 0 || lag <= max(l.Soft, keep):
		f.softSince.Store(0)
	case f.softSince.CompareAndSwap(0, now):
	case now-f.softSince.Load() > int64(l.Seconds)*1e6:
		f.drop("the replica lags behind for longer than the soft limit of client-output-buffer-limit replica allows")
	}
}
