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

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/rdb"
)

// A full synchronisation: a snapshot, and where the stream goes on behind it. All
// who wait and take the same form share one. It goes straight to the sockets
// ($EOF:mark, the mark again at the end), or, with repl-diskless-sync no and for
// those that cannot do that, to a file first ($length). Who comes while a file is being
// written gets it too, if the stream is still there from its cut on.

// enqueue has the replica get a snapshot.
func (m *masterSide) enqueue(f *Replica) {
	if m.join(f) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.syncs = append(m.syncs, f)
	notify(m.joined)
	if !m.syncing && !m.closed {
		m.syncing = true
		m.r.beside.Go(m.syncAll)
	}
}

// join has the replica get the file that is being written, if it can.
func (m *masterSide) join(f *Replica) bool {
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
	if f.reader = reader; f.said.rdbOnly {
		reader.Close()
		f.reader = nil
	}
	f.sent.Store(x.offset)
	f.set(followFile)
	f.wmu.Lock() // the file comes behind the greeting
	defer f.wmu.Unlock()
	x.group = append(x.group, f)
	m.mu.Unlock()
	m.full.Add(1)
	if _, err := f.nc.Write(x.greeting(f)); err != nil {
		f.drop(err.Error())
	}
	return true
}

// offer lets others join a job; nil: none any more.
func (m *masterSide) offer(x *fullSyncJob) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.file = x
}

// syncAll makes snapshots until nobody waits for one.
func (m *masterSide) syncAll() {
	for {
		m.gather()
		group, more := m.nextGroup()
		if !more {
			return
		}
		if len(group) == 0 {
			continue
		}
		x := &fullSyncJob{m: m, form: m.formOf(group[0]), group: group, began: m.r.db.Clock().Micros()}
		if err := m.synchronise(x); err != nil {
			m.r.log.Warn("a full synchronisation has failed", "replicas", len(x.group), "error", err)
			for _, f := range x.group {
				f.drop("its full synchronisation has failed: " + err.Error())
			}
		}
	}
}

// gather waits repl-diskless-sync-delay for more replicas, or until there are
// repl-diskless-sync-max-replicas.
func (m *masterSide) gather() {
	c := m.r.config
	delay, most := time.Duration(c.Int("repl-diskless-sync-delay"))*time.Second, int(c.Int("repl-diskless-sync-max-replicas"))
	if !c.Bool("repl-diskless-sync") || delay == 0 {
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

// syncForm is what replicas that share a snapshot have in common.
type syncForm struct {
	ebb, direct, nothing bool
	fields               rdb.FieldForm // of those that are no ebb
}

func (m *masterSide) formOf(f *Replica) syncForm {
	form := syncForm{ebb: f.said.ebb, direct: f.said.eof && m.r.config.Bool("repl-diskless-sync"), nothing: f.said.data}
	switch {
	case form.ebb:
	case f.said.knows == oplog.Redis8:
		form.fields = rdb.RedisFields
	case f.said.knows == oplog.Valkey9:
		form.fields = rdb.ValkeyFields
	}
	return form
}

// nextGroup takes those out of the queue who are to share a snapshot with the
// first. Without any, and at the end of the service, there is no more to do.
func (m *masterSide) nextGroup() (group []*Replica, more bool) {
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

// synchronise makes a snapshot for a group, and sends it or has it sent.
func (m *masterSide) synchronise(x *fullSyncJob) error {
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
	m     *masterSide
	form  syncForm
	group []*Replica // guarded by m.mu while others may join
	began int64      // us

	now       int64 // us, of the cut
	id        string
	offset    int64
	db        int
	functions [][]byte
}

// cut takes what belongs to the instant: where the stream goes on. All shards are
// locked.
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

// preamble writes what comes before the keys.
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

// snapshot writes the snapshot. begin is called behind the cut, before the first
// byte.
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
		o.Buffer, o.Abandon = hard, true // a slow replica must not make everybody wait
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

// awaitSync waits, under appendfsync always, until what the snapshot holds is
// synced here: before that it is nobody's.
func (x *fullSyncJob) awaitSync(ctx context.Context) error {
	log, w := x.m.r.db.Log(), make(oplog.Signal, 1)
	for !log.OnSettled(x.offset, w) {
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

// greet tells a replica where the stream goes on behind the snapshot.
func (x *fullSyncJob) greet(f *Replica) error {
	return f.write(x.greeting(f))
}

func (x *fullSyncJob) greeting(f *Replica) []byte {
	if f.old {
		return nil
	}
	return fmt.Appendf(nil, "+FULLRESYNC %s %d\r\n", x.id, x.offset)
}

// over notes that the snapshot has been sent.
func (x *fullSyncJob) over() {
	r := x.m.r
	r.log.Info("a full synchronisation was sent", "replicas", len(x.group), "ms", (r.db.Clock().Micros()-x.began)/1000)
}

// direct sends the snapshot to the sockets.
func (x *fullSyncJob) direct(ctx context.Context) error {
	var mark [20]byte
	_, _ = rand.Read(mark[:])
	end := []byte(hex.EncodeToString(mark[:]))
	out := &fanOut{to: x.group}
	err := x.snapshot(ctx, out, nil, func() error {
		for _, f := range x.group {
			if err := x.greet(f); err != nil {
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

// sent has the replica's own goroutine go on.
func (x *fullSyncJob) sent(f *Replica, next followStep) {
	f.took()
	f.set(next)
	close(f.ready)
}

// fanOut writes to several replicas, and forgets those that are gone.
type fanOut struct{ to []*Replica }

var errAllGone = errors.New("the replicas are gone")

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

// throughFile writes the snapshot to a file and sends that to each.
func (x *fullSyncJob) throughFile(ctx context.Context) error {
	dir := x.m.r.config.String("dir")
	if !x.m.r.config.Durable() {
		dir = "" // where the system has its temporary files
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
	x.m.r.beside.Go(func() { x.sendFiles(file) }) // who reads slowly holds up nobody else
	return nil
}

// fillFile writes the snapshot to a file.
func (x *fullSyncJob) fillFile(ctx context.Context, file *os.File) error {
	defer x.m.offer(nil)
	return x.snapshot(ctx, file, file, func() error {
		for _, f := range x.group {
			if err := x.greet(f); err != nil {
				f.drop(err.Error())
			}
			f.set(followFile)
		}
		x.m.offer(x)
		return nil
	})
}

// sendFiles sends the file to each, and removes it.
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

// sendFile sends a snapshot of known length.
func (f *Replica) sendFile(r io.Reader, size int64) error {
	f.set(followReceive)
	if err := f.write(fmt.Appendf(nil, "$%d\r\n", size)); err != nil {
		return err
	}
	_, err := io.Copy(syncPipe{f}, r)
	return err
}

// syncPipe writes a snapshot to a replica, in pieces after each of which it is known
// that the replica takes them: one that stops is given up after repl-timeout.
type syncPipe struct{ f *Replica }

// syncPiece takes a second at a slow 8 Mbit/s.
const syncPiece = 1 << 20

func (p syncPipe) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		piece := b[n:min(n+syncPiece, len(b))]
		p.f.writing.Store(p.f.m.r.db.Clock().Micros())
		if err = p.f.write(piece); err == nil {
			n += len(piece)
		}
	}
	p.f.writing.Store(0)
	return n, err
}
