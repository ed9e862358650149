package replication

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/resp"
)

// followStep is how far a replica has come.
type followStep int32

const (
	followWaits   followStep = iota // for a snapshot to begin
	followFile                      // for a snapshot that goes to a file first
	followReceive                   // receives a snapshot
	followLoads                     // is to acknowledge that it has loaded it
	followOnline                    // receives the stream
	followDone                      // wanted a snapshot, and has it
)

// stateNames are those of INFO.
var stateNames = [...]string{"wait_bgsave", "wait_bgsave", "send_bulk", "send_bulk", "online", "rdb_transmitted"}

// Replica is a replica, as a connection that was taken out of its transport.
type Replica struct {
	m    *masterSide
	conn reactor.Conn // for its address, and to be killed
	said Announced
	ctx  context.Context
	stop context.CancelFunc
	old  bool // it said SYNC, and acknowledges nothing

	continues string        // reply to PSYNC where the stream goes on; "": it needs a snapshot
	ready     chan struct{} // closed when the snapshot is sent
	heard     chan struct{} // cap 1: it has acknowledged something
	step      atomic.Int32  // followStep
	acked     atomic.Int64  // offset that it has
	synced    atomic.Int64  // offset that its files have
	ackAt     atomic.Int64  // us: when it acknowledged last; before, when it last took something
	sent      atomic.Int64  // offset that was written to it
	writing   atomic.Int64  // us since when a piece of its snapshot is being written; 0: none is
	softSince atomic.Int64  // us since when it lags beyond the soft limit; 0: it does not
	why       atomic.Pointer[string]

	left   bool          // guarded by m.mu
	reader *oplog.Reader // set at the cut of its snapshot, with m.mu held, or at once; nil with rdb-only
	plain  oplog.Plain

	wmu sync.Mutex // held while a newline or a message is written
	nc  net.Conn   // nil before the transport has let go of it
}

func (f *Replica) at() followStep { return followStep(f.step.Load()) }

func (f *Replica) set(s followStep) { f.step.Store(int32(s)) }

// place is where others find the replica.
func (f *Replica) place() (host string, port int) {
	if host = f.said.ip; host == "" {
		host, _, _ = net.SplitHostPort(f.conn.RemoteAddr())
	}
	return host, f.said.port
}

// drop ends the replica's connection; it will come back by itself.
func (f *Replica) drop(why string) {
	f.why.CompareAndSwap(nil, &why)
	f.stop()
	f.conn.Kill(errReplica)
}

var errReplica = errors.New("the replica's connection was given up")

// Run sends the replica what it lacks and then the stream, until the connection ends. It is
// what the connection is hijacked for.
func (f *Replica) Run(nc net.Conn, buffered []byte) {
	defer context.AfterFunc(f.ctx, func() { _ = nc.Close() })()
	f.wmu.Lock()
	f.nc = nc
	f.wmu.Unlock()
	var listening sync.WaitGroup
	listening.Go(func() {
		f.listen(nc, buffered)
		f.stop()
	})
	err := f.serve()
	f.stop()
	_ = nc.Close()
	listening.Wait()
	f.Leave(err)
}

// Leave takes the replica out of everything, once. The session calls it when its
// connection has ended, also where Run never began. err is logged.
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
	f.m.r.log.Info("a replica is gone", "host", host, "port", port, "why", why)
}

// attach has the replica read the stream from an offset on, where its snapshot was
// cut. For one that is gone nothing is kept, nor for one that wants no stream.
func (f *Replica) attach(log *oplog.Log, offset int64) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if !f.left && !f.said.rdbOnly {
		f.reader, _ = log.ReaderAt(offset, oplog.ForReplica)
	}
	f.sent.Store(offset)
}

// serve sends the replica what it lacks, and then the stream.
func (f *Replica) serve() error {
	if f.continues != "" {
		if err := f.write([]byte(f.continues)); err != nil {
			return err
		}
		f.set(followOnline)
		f.m.judge()
		return f.stream()
	}
	f.m.enqueue(f)
	select {
	case <-f.ready:
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
	switch {
	case f.said.rdbOnly:
		f.took()
		f.set(followDone)
		<-f.ctx.Done() // it closes the connection
		return nil
	case f.at() == followLoads && !f.old:
		// Behind a snapshot of unknown length nothing may come before the replica has
		// found its end, which it looks for at the end of what it has read.
		select {
		case <-f.heard:
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	}
	f.took()
	f.set(followOnline)
	f.m.judge()
	host, port := f.place()
	f.m.r.log.Info("a replica is online", "host", host, "port", port, "offset", f.reader.Offset())
	return f.stream()
}

// stream sends the stream until something goes wrong.
func (f *Replica) stream() error {
	for {
		b := f.reader.Next()
		if b == nil {
			if err := f.reader.Wait(f.ctx); err != nil {
				return err
			}
			continue
		}
		if !f.said.ebb {
			var err error
			if b, err = f.plain.Next(b); err != nil {
				return err
			}
		}
		if len(b) > 0 {
			if err := f.write(b); err != nil {
				return err
			}
		}
		f.sent.Store(f.reader.Offset())
	}
}

// took notes that the replica has taken, or said, something just now.
func (f *Replica) took() { f.ackAt.Store(f.m.r.db.Clock().Micros()) }

// write writes all of b; others wait.
func (f *Replica) write(b []byte) error {
	f.wmu.Lock()
	defer f.wmu.Unlock()
	_, err := f.nc.Write(b)
	return err
}

// keepAlive writes a newline to a replica that waits for a snapshot: it knows that
// this means nothing but that somebody is there.
func (f *Replica) keepAlive() {
	if s := f.at(); s != followWaits && s != followFile {
		return
	}
	if f.wmu.TryLock() {
		if s := f.at(); f.nc != nil && (s == followWaits || s == followFile) {
			_, _ = f.nc.Write([]byte{'\n'}) // a byte fits in any socket that waits
		}
		f.wmu.Unlock()
	}
}

// listen reads what the replica acknowledges, until the connection ends.
func (f *Replica) listen(nc net.Conn, buffered []byte) {
	var p resp.Parser
	p.Limits.MaxBulk = 1 << 16
	buf := append(make([]byte, 0, 4096), buffered...)
	for {
		for len(buf) > 0 {
			args, n, err := p.Next(buf)
			if err != nil || n == 0 && len(buf) > 1<<16 {
				f.drop("the replica says what is no request")
				return
			}
			if n == 0 {
				break
			}
			f.hear(args)
			buf = buf[:copy(buf, buf[n:])]
		}
		if len(buf) == cap(buf) {
			buf = append(buf, make([]byte, len(buf))...)[:len(buf)]
		}
		n, err := nc.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err != nil && n == 0 {
			if !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				text := err.Error()
				f.why.CompareAndSwap(nil, &text)
			}
			return
		}
	}
}

// hear takes REPLCONF ACK offset [FACK offset], the one thing that replicas say, and
// the empty lines of one that loads, which may count as online already.
func (f *Replica) hear(args [][]byte) {
	if len(args) == 0 {
		f.took()
	}
	if len(args) < 3 || !is(args[0], "REPLCONF") || !is(args[1], "ACK") {
		return
	}
	raise(&f.acked, args[2])
	if len(args) >= 5 && is(args[3], "FACK") {
		raise(&f.synced, args[4])
	}
	f.took()
	notify(f.heard)
	m := f.m
	if m.lack.Load() {
		m.judge()
	}
	m.settleWaits()
	m.r.acked()
}

func raise(to *atomic.Int64, text []byte) {
	if n, ok := resp.ParseInt(text); ok && n > to.Load() {
		to.Store(n)
	}
}

// bound drops a replica that takes and says nothing for too long, or lags too far
// behind. It waits for its snapshot in peace.
func (f *Replica) bound(now int64) {
	limit := f.m.r.config.Int("repl-timeout") * 1e6
	silent := now-f.ackAt.Load() > limit
	switch f.at() {
	case followWaits:
		return
	case followFile:
		silent = false
	case followReceive: // where the snapshot stalls it has nothing to take
		since := f.writing.Load()
		silent = since > 0 && now-since > limit
	case followOnline:
		silent = silent && !f.old // which has nothing to say
	}
	switch {
	case silent:
		f.drop("it was silent for longer than repl-timeout")
	case !f.said.rdbOnly:
		f.boundLag(now)
	}
}

// boundLag drops a replica that lags too far behind: what it lacks is in memory.
func (f *Replica) boundLag(now int64) {
	c := f.m.r.config
	l := c.OutputLimit(config.Replica)
	lag := f.m.r.db.Log().End() - f.sent.Load()
	keep := backlogSize(c) // that much is kept anyway
	switch {
	case l.Hard > 0 && lag > max(l.Hard, keep):
		f.drop("it lags further behind than client-output-buffer-limit allows")
	case l.Soft <= 0 || lag <= max(l.Soft, keep):
		f.softSince.Store(0)
	case f.softSince.CompareAndSwap(0, now):
	case now-f.softSince.Load() > int64(l.Seconds)*1e6:
		f.drop("it lags behind for longer than client-output-buffer-limit allows")
	}
}
