package replication

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
)

// ErrNoMasterLink refuses PSYNC and SYNC on a replica that does not receive its
// master's stream.
var ErrNoMasterLink = errors.New("Can't SYNC while not connected with my master")

// PsyncRequest is what a client says with PSYNC.
type PsyncRequest struct {
	Conn     reactor.Conn // the client's connection
	Said     Announced    // what it has said with REPLCONF before
	ID       string       // the name of the stream that it has
	Next     int64        // the first byte that it lacks; the first of a stream has the offset 1
	FailOver bool         // PSYNC FAILOVER: this server is to become the master
}

// Psync makes the client a replica, or says why it cannot be one. tx holds all shards.
// The replica gets nothing before Replica.Join.
func (r *Node) Psync(tx *engine.Tx, q PsyncRequest) (*Replica, error) {
	if q.FailOver {
		if err := r.promotedBy(tx, q.ID); err != nil {
			return nil, err
		}
	}
	f, err := r.newReplica(q.Conn, q.Said)
	if err != nil {
		return nil, err
	}
	m := &r.master
	if f.goOn(q.ID, q.Next) {
		m.partial.Add(1)
	} else if q.ID != "?" {
		m.refused.Add(1)
	}
	return f, nil
}

// Sync is Psync for SYNC: the replica gets a snapshot without an announcement, and
// acknowledges nothing.
func (r *Node) Sync(conn reactor.Conn, said Announced) (*Replica, error) {
	f, err := r.newReplica(conn, said)
	if err == nil {
		f.old = true
	}
	return f, err
}

// newReplica makes a connection a replica, or says why it cannot be one.
func (r *Node) newReplica(conn reactor.Conn, said Announced) (*Replica, error) {
	if _, ok := conn.(reactor.Hijacker); !ok {
		return nil, errors.New("a replica needs a connection")
	}
	if !r.linked() {
		return nil, ErrNoMasterLink
	}
	f := &Replica{m: &r.master, conn: conn, said: said, ready: make(chan struct{}), heard: make(chan struct{}, 1)}
	f.plain.Knows = f.said.knows
	f.ctx, f.stop = context.WithCancel(r.ctx)
	f.took()
	return f, nil
}

// Join puts the replica among those that follow. The session then has Run take its
// connection out of the transport.
func (f *Replica) Join() {
	host, port := f.place()
	f.m.r.log.Info("a replica asks for the stream", "host", host, "port", port, "capa", f.said.describeCapa(), "partial", f.continues != "")
	f.m.add(f)
}

// goOn arranges that the stream goes on from the byte that PSYNC calls next, if it
// is the stream of that name and still there. All shards are locked.
func (f *Replica) goOn(id string, next int64) bool {
	r, log := f.m.r, f.m.r.db.Log()
	if !r.knows(id, next) || !f.m.keeps() {
		return false
	}
	reader, err := log.ReaderAt(next-1, oplog.ForReplica)
	if err != nil {
		return false
	}
	if !f.said.ebb && !beginsCommand(log, next-1) {
		reader.Close()
		return false
	}
	f.reader = reader
	f.sent.Store(next - 1)
	f.acked.Store(next - 1)
	f.continues = "+CONTINUE\r\n"
	if now, _, _ := r.Names(); f.said.psync2 {
		f.continues = "+CONTINUE " + now + "\r\n"
	}
	return true
}

// beginsCommand reports whether a command begins at an offset, as far as one byte
// tells: what overwrites commands has to know where they begin.
func beginsCommand(log *oplog.Log, offset int64) bool {
	r, err := log.ReaderAt(offset, oplog.ForReplica)
	if err != nil {
		return false
	}
	defer r.Close()
	b := r.Next()
	return len(b) == 0 || b[0] == '*' || b[0] == '\n'
}
