package replication

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/reactor"
)

// ErrNoMasterLink is the error of Psync and Sync on a replica that does not receive its
// master's stream. The text is Redis's.
var ErrNoMasterLink = errors.New("Can't SYNC while not connected with my master")

// PsyncRequest holds the arguments of PSYNC and the client that sends it.
type PsyncRequest struct {
	Conn      reactor.Conn // the client's connection
	Announced Announced    // the options that the client has sent with REPLCONF before
	ID        string       // the name of the stream that the client has
	Next      int64        // the first byte that it lacks; the first byte of a stream has the offset 1
	FailOver  bool         // PSYNC FAILOVER: this server becomes the master
}

// Psync makes a client a replica. tx holds all shards. The replica receives no data before Replica.Join and
// Replica.Run. Psync fails with ErrNoMasterLink, if the client's connection cannot leave its transport, or if PSYNC
// FAILOVER does not fit this server.
func (r *Node) Psync(tx *engine.Tx, q PsyncRequest) (*Replica, error) {
	if q.FailOver && r.group != nil {
		return nil, errors.New("PSYNC FAILOVER is not allowed: the group decides which server is the master")
	}
	if q.FailOver {
		if err := r.promotedBy(tx, q.ID); err != nil {
			return nil, err
		}
	}
	f, err := r.newReplica(q.Conn, q.Announced)
	if err != nil {
		return nil, err
	}
	if r.group != nil && q.Announced.group != "" {
		if err := r.group.Greeted(f, q.Announced.group); err != nil {
			f.stop()
			return nil, err
		}
		f.stamps = make(chan dueStamp, mostStamps)
	}
	m := &r.master
	if f.goOn(q.ID, q.Next) {
		m.partial.Add(1)
	} else if q.ID != "?" {
		m.refused.Add(1)
	}
	return f, nil
}

// Sync makes a client a replica that has sent SYNC. It receives a snapshot without
// +FULLRESYNC before it, and sends no acknowledgements.
func (r *Node) Sync(conn reactor.Conn, announced Announced) (*Replica, error) {
	f, err := r.newReplica(conn, announced)
	if err == nil {
		f.old = true
	}
	return f, err
}

// newReplica returns a replica on a connection.
func (r *Node) newReplica(conn reactor.Conn, announced Announced) (*Replica, error) {
	if _, ok := conn.(reactor.Hijacker); !ok {
		return nil, errors.New("the client cannot become a replica: its connection cannot leave its transport")
	}
	if !r.linked() {
		return nil, ErrNoMasterLink
	}
	f := &Replica{m: &r.master, conn: conn, announced: announced, ready: make(chan struct{}), acknowledged: make(chan struct{}, 1)}
	f.term = r.db.Log().Holds().Term()
	f.plain.Knows = f.announced.knows
	f.ctx, f.stop = context.WithCancel(r.ctx)
	f.took()
	return f, nil
}

// Join adds the replica to the server's replicas. The session then hands the connection
// over to Run.
func (f *Replica) Join() {
	host, port := f.place()
	f.m.r.log.Info("a replica requests the stream", "host", shownText(host), "port", port, "capa", f.announced.describeCapa(),
		"partial", f.continues != "")
	f.m.add(f)
}

// goOn lets the replica continue at the byte that PSYNC calls next, if the stream has that
// name and the bytes are still in memory. All shards are locked.
func (f *Replica) goOn(id string, next int64) bool {
	r, log := f.m.r, f.m.r.db.Log()
	if !r.knows(id, next) || !f.m.keeps() {
		return false
	}
	reader, err := log.ReaderAt(next-1, oplog.ForReplica)
	if err != nil {
		return false
	}
	if !f.announced.ebb && !beginsCommand(log, next-1) {
		reader.Close()
		return false
	}
	f.reader = reader
	f.sent.Store(next - 1)
	f.acked.Store(next - 1)
	f.continues = "+CONTINUE\r\n"
	if now, _, _ := r.Names(); f.announced.psync2 {
		f.continues = "+CONTINUE " + now + "\r\n"
	}
	return true
}

// beginsCommand reports whether the byte at an offset can begin a command. oplog.Plain
// must start at the beginning of a command.
func beginsCommand(log *oplog.Log, offset int64) bool {
	r, err := log.ReaderAt(offset, oplog.ForReplica)
	if err != nil {
		return false
	}
	defer r.Close()
	b := r.Next()
	return len(b) == 0 || b[0] == '*' || b[0] == '\n'
}
