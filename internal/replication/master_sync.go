package replication

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/rdb"
)

// A full synchronisation is a snapshot and the offset at which the stream continues. All
// replicas that wait and take the same form share one snapshot. It goes straight to the
// sockets ($EOF:mark, and the mark again at the end), or to a file first ($length): with
// repl-diskless-sync no, and for replicas that do not understand the mark. A replica that
// arrives while the server writes the file gets the file too, if the stream after the
// snapshot's cut is still in memory.

// enqueue adds the replica to those that wait for a snapshot.
func (m *master) enqueue(f *Replica) {
	if m.join(f) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.syncs = append(m.syncs, f)
	notify(m.joined)
	if !m.syncing && !m.closed {
		m.syncing = true
		m.r.background.Go(m.syncAll)
	}
}

// join adds the replica to the snapshot that is being written to a file, if that has the replica's form and the
// stream after its cut is in memory.
func (m *master) join(f *Replica) bool {
	m.mu.Lock()
	x, log := m.file, m.r.db.Log()
	if x == nil || x.form != m.formOf(f) {
		m.mu.Unlock()
		return false
	}
	reader, err := log.ReaderAt(x.offset, oplog.ForReplica)
	if err != nil {
		m.mu.Unlock()
		return false
	}
	if f.reader = reader; f.announced.rdbOnly {
		reader.Close()
		f.reader = nil
	}
	f.sent.Store(x.offset)
	f.set(followFile)
	f.wmu.Lock() // the file must come after the announcement
	defer f.wmu.Unlock()
	x.group = append(x.group, f)
	m.mu.Unlock()
	m.full.Add(1)
	if err := f.put(x.announcement(f)); err != nil {
		f.drop(err.Error())
	}
	return true
}

// offer makes a job available to join; nil makes none available.
func (m *master) offer(x *fullSyncJob) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.file = x
}

// syncAll makes snapshots until no replica waits for one.
func (m *master) syncAll() {
	for {
		m.awaitMore()
		group, more := m.nextGroup()
		if !more {
			return
		}
		if len(group) == 0 {
			continue
		}
		x := &fullSyncJob{m: m, form: m.formOf(group[0]), group: group, began: m.r.db.Steady().Micros()}
		if err := m.synchronise(x); err != nil {
			m.r.log.Warn("a full synchronisation failed", "replicas", len(x.group), "error", err)
			for _, f := range x.group {
				f.drop("the full synchronisation failed: " + err.Error())
			}
		}
	}
}

// awaitMore waits for more replicas, for repl-diskless-sync-delay or until there are repl-diskless-sync-max-replicas.
func (m *master) awaitMore() {
	c := m.r.config
	delay, most := time.Duration(c.Int("repl-diskless-sync-delay"))*time.Second, int(c.Int("repl-diskless-sync-max-replicas"))
	if !c.Bool("repl-diskless-sync") || delay == 0 || m.r.group != nil { // a member does not count until it has the data
		return
	}
	t := time.NewTimer(delay)
	defer t.Stop()
	for {
		m.mu.Lock()
		n := len(m.syncs)
		m.mu.Unlock()
		if n == 0 || most > 0 && n >= most {
			return
		}
		select {
		case <-m.joined:
		case <-t.C:
			return
		case <-m.r.ctx.Done():
			return
		}
	}
}

// syncForm is the form of a snapshot. Replicas can share a snapshot if their forms are
// equal.
type syncForm struct {
	ebb, direct, nothing bool
	fields               rdb.FieldForm // the format of deadlines of hash fields; not for ebb
}

func (m *master) formOf(f *Replica) syncForm {
	form := syncForm{ebb: f.announced.ebb, direct: f.announced.eof && m.r.config.Bool("repl-diskless-sync"), nothing: f.announced.data}
	switch {
	case form.ebb:
	case f.announced.knows == oplog.Redis8:
		form.fields = rdb.RedisFields
	case f.announced.knows == oplog.Valkey9:
		form.fields = rdb.ValkeyFields
	}
	return form
}

// nextGroup takes the first replica out of the queue, and all that can share a snapshot
// with it. more is false if the queue is empty or the server ends.
func (m *master) nextGroup() (group []*Replica, more bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.syncs) == 0 || m.r.ctx.Err() != nil {
		m.syncing = false
		return nil, false
	}
	form := m.formOf(m.syncs[0])
	left := m.syncs[:0]
	for _, f := range m.syncs {
		if m.formOf(f) == form {
			group = append(group, f)
		} else {
			left = append(left, f)
		}
	}
	clear(m.syncs[len(left):])
	m.syncs = left
	return group, true
}

// synchronise makes a snapshot for a group of replicas, and sends it or starts to send it.
func (m *master) synchronise(x *fullSyncJob) error {
	ctx := m.r.ctx
	done, err := m.r.host.Keeper().Turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	m.r.log.Info("a full synchronisation begins", "replicas", len(x.group), "diskless", x.form.direct, "plain", !x.form.ebb)
	m.full.Add(int64(len(x.group)))
	if x.form.direct {
		return x.direct(ctx)
	}
	return x.throughFile(ctx)
}

// fullSyncJob is one snapshot on its way to replicas.
type fullSyncJob struct {
	m     *master
	form  syncForm
	group []*Replica // guarded by m.mu while others may join
	began int64      // us

	now       int64 // us; time of the cut
	id        string
	offset    int64
	db        int
	functions [][]byte
}

// cut records the state at the instant of the snapshot: the offset at which the stream
// continues, its name, and the functions. All shards are locked.
func (x *fullSyncJob) cut(tx *engine.Tx) {
	r := x.m.r
	log := r.db.Log()
	x.m.keepBacklog(tx)
	x.now, x.functions = tx.Now(), r.host.Functions()
	x.id, _, _ = r.Names()
	x.offset, x.db = log.Cut()
	if !r.IsReplica() {
		log.Unselect()
	}
	for _, f := range x.group {
		f.attach(log, x.offset)
	}
}

// preamble writes the part of the file before the keys.
func (x *fullSyncJob) preamble(w *rdb.Writer, version int) error {
	used, _ := x.m.r.db.HeldMemory()
	w.Header(version)
	w.Aux("redis-ver", x.m.r.version)
	w.Aux("redis-bits", strconv.Itoa(strconv.IntSize))
	w.Aux("ctime", strconv.FormatInt(x.now/1e6, 10))
	w.Aux("used-mem", strconv.Itoa(used))
	if x.db >= 0 {
		w.Aux("repl-stream-db", strconv.Itoa(x.db))
	}
	w.Aux("repl-id", x.id)
	w.Aux("repl-offset", strconv.FormatInt(x.offset, 10))
	w.Aux("aof-base", "0")
	for _, code := range x.functions {
		w.Function(code)
	}
	return w.Err()
}

// snapshot writes the snapshot. It calls begin after the cut and before the first byte.
func (x *fullSyncJob) snapshot(ctx context.Context, out io.Writer, patch io.WriterAt, begin func() error) error {
	r := x.m.r
	c := r.config
	w := rdb.NewWriter(out, rdb.WriterOptions{Checksum: c.Bool("rdbchecksum"), Compress: c.Bool("rdbcompression"), Patch: patch})
	o := engine.SnapshotOptions{AtCut: x.cut, Plain: !x.form.ebb, Fields: x.form.fields, NoCompress: !c.Bool("rdbcompression"),
		Preamble: func(w *rdb.Writer, version int) error {
			if err := begin(); err != nil {
				return err
			}
			return x.preamble(w, version)
		}}
	if hard := c.OutputLimit(config.Replica).Hard; x.form.direct && hard > 0 {
		o.Buffer, o.Abandon = hard, true // a slow replica must not make writers wait
	}
	if x.form.nothing {
		tx := r.db.BeginAll(0)
		x.cut(tx)
		tx.Commit()
		if err := o.Preamble(w, rdb.PlainVersion); err != nil {
			return err
		}
	} else if err := r.db.Snapshot(ctx, w, o); err != nil {
		return err
	}
	if err := x.awaitSync(ctx); err != nil {
		return err
	}
	return w.End()
}

// awaitSync waits, under appendfsync always, until this server's files hold the effects in
// the snapshot: a replica must not have data that its master could lose.
func (x *fullSyncJob) awaitSync(ctx context.Context) error {
	log, w := x.m.r.db.Log(), make(oplog.Signal, 1)
	for log.Always() && !log.OnSynced(x.offset, w) && log.Always() {
		if err := log.Failure(); err != nil {
			return err
		}
		select {
		case <-w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// announce tells a replica the offset at which the stream continues after the snapshot.
func (x *fullSyncJob) announce(f *Replica) error {
	return f.write(x.announcement(f))
}

func (x *fullSyncJob) announcement(f *Replica) []byte {
	if f.old {
		return nil
	}
	return fmt.Appendf(nil, "+FULLRESYNC %s %d\r\n", x.id, x.offset)
}

// over logs that the snapshot was sent.
func (x *fullSyncJob) over() {
	r := x.m.r
	r.log.Info("a full synchronisation was sent", "replicas", len(x.group), "ms", (r.db.Steady().Micros()-x.began)/1000)
}

// direct sends the snapshot to the sockets.
func (x *fullSyncJob) direct(ctx context.Context) error {
	var mark [20]byte
	_, _ = rand.Read(mark[:])
	end := []byte(hex.EncodeToString(mark[:]))
	out := &fanOut{to: x.group}
	err := x.snapshot(ctx, out, nil, func() error {
		for _, f := range x.group {
			if err := x.announce(f); err != nil {
				f.drop(err.Error())
			}
			f.set(followReceive)
		}
		_, err := out.Write(append([]byte("$EOF:"), append(end, '\r', '\n')...))
		return err
	})
	if err == nil {
		_, err = out.Write(end)
	}
	if err != nil {
		return err
	}
	for _, f := range out.to {
		x.sent(f, followLoads)
	}
	x.over()
	return nil
}

// sent lets the replica's own goroutine continue, because the replica has the snapshot.
func (x *fullSyncJob) sent(f *Replica, next followStep) {
	f.took()
	f.set(next)
	close(f.ready)
}

// fanOut writes to several replicas, and drops those whose connection fails. Write returns an error when no replica
// is left.
type fanOut struct{ to []*Replica }

var errAllGone = errors.New("all replicas that waited for the snapshot have disconnected")

func (o *fanOut) Write(b []byte) (int, error) {
	left := o.to[:0:0]
	for _, f := range o.to {
		if err := f.ctx.Err(); err == nil {
			if _, err = (syncPipe{f}).Write(b); err == nil {
				left = append(left, f)
				continue
			}
			f.drop(err.Error())
		}
	}
	if o.to = left; len(left) == 0 {
		return 0, errAllGone
	}
	return len(b), nil
}

// throughFile writes the snapshot to a file, and starts to send the file to each replica.
func (x *fullSyncJob) throughFile(ctx context.Context) error {
	dir := x.m.r.config.String("dir")
	if !x.m.r.config.Durable() {
		dir = "" // the system's directory for temporary files
	}
	file, err := os.CreateTemp(dir, durable.TempSync)
	if err != nil {
		return err
	}
	if err = x.fillFile(ctx, file); err != nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
		return err
	}
	x.m.r.background.Go(func() { x.sendFiles(file) }) // a slow replica does not delay the next snapshot
	return nil
}

// fillFile writes the snapshot to a file.
func (x *fullSyncJob) fillFile(ctx context.Context, file *os.File) error {
	defer x.m.offer(nil)
	return x.snapshot(ctx, file, file, func() error {
		for _, f := range x.group {
			if err := x.announce(f); err != nil {
				f.drop(err.Error())
			}
			f.set(followFile)
		}
		x.m.offer(x)
		return nil
	})
}

// sendFiles sends the file to each replica, and removes it.
func (x *fullSyncJob) sendFiles(file *os.File) {
	defer os.Remove(file.Name())
	defer file.Close()
	size, _ := file.Seek(0, io.SeekEnd)
	var sending sync.WaitGroup
	for _, f := range x.group {
		sending.Go(func() {
			if err := f.sendFile(io.NewSectionReader(file, 0, size), size); err != nil {
				f.drop(err.Error())
				return
			}
			x.sent(f, followReceive)
		})
	}
	sending.Wait()
	x.over()
}

// sendFile sends a snapshot whose length is known.
func (f *Replica) sendFile(r io.Reader, size int64) error {
	f.set(followReceive)
	if err := f.write(fmt.Appendf(nil, "$%d\r\n", size)); err != nil {
		return err
	}
	_, err := io.Copy(syncPipe{f}, r)
	return err
}

// syncPipe writes a snapshot to a replica in pieces, and records the start of each: Replica.bound drops a replica
// that receives nothing for repl-timeout.
type syncPipe struct{ f *Replica }

// syncPiece is the size of a piece: one second of a slow connection with 8 Mbit/s.
const syncPiece = 1 << 20

func (p syncPipe) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		piece := b[n:min(n+syncPiece, len(b))]
		p.f.writing.Store(p.f.m.r.db.Steady().Micros())
		if err = p.f.write(piece); err == nil {
			n += len(piece)
		}
	}
	p.f.writing.Store(0)
	return n, err
}
