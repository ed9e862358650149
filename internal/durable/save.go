package durable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
)

// save is the job of BGSAVE and of save points.
func (k *Keeper) save(ctx context.Context, j *job) error {
	k.mu.Lock()
	a := k.aof.appender
	path, temp := k.rdbPath(), k.temp("temp-%d.rdb")
	err := k.takeLock()
	k.mu.Unlock()
	if err != nil {
		return err
	}
	k.suspendSync(a, true)
	defer k.suspendSync(a, false)
	err = k.writeFile(ctx, temp, j, snapshotKind{origin: true})
	if err == nil {
		err = k.replaceFile(j, temp, path)
	}
	if err != nil {
		_ = k.fs.Remove(temp) // the file may not exist
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// replaceFile renames a job's file to the RDB file, unless Emptied has written newer data there.
func (k *Keeper) replaceFile(j *job, temp, path string) error {
	k.replacing.Lock()
	defer k.replacing.Unlock()
	k.mu.Lock()
	overtaken := j.overtaken
	k.mu.Unlock()
	if overtaken {
		return context.Canceled
	}
	return k.replaceRDB(temp, path)
}

// rdbPath returns the path of the RDB file. k.mu is held.
func (k *Keeper) rdbPath() string { return filepath.Join(k.dir, k.o.Config.String("dbfilename")) }

// temp returns the path of a temporary file, with Redis's name for it. k.mu is held.
func (k *Keeper) temp(format string) string {
	return filepath.Join(k.dir, fmt.Sprintf(format, os.Getpid()))
}

// sweep removes temporary files of an interrupted job, and, if syncs is set, those of
// synchronisations. It ignores errors.
func (k *Keeper) sweep(syncs bool) {
	names, err := k.fs.ReadDir(k.dir)
	if err != nil {
		return
	}
	for _, n := range names {
		if !leftover(n) || !syncs && strings.HasPrefix(n, tempSync) {
			continue
		}
		if err := k.fs.Remove(filepath.Join(k.dir, n)); err == nil {
			k.log.Info("removed what an interrupted save has left", "file", n)
		}
	}
}

// TempSync is the pattern, for os.CreateTemp, of the file names of full synchronisations to or from
// a replica.
const TempSync = tempSync + "*.rdb"

const tempSync = "temp-ebb-sync-"

// leftover reports whether a name is that of a temporary file: temp-PID.rdb,
// temp-flush-PID.rdb, temp-rewriteaof-PID.aof, temp-rewriteaof-bg-PID.aof, or one of TempSync.
func leftover(name string) bool {
	rest, ok := strings.CutPrefix(name, "temp-")
	if !ok {
		return false
	}
	pid, isRDB := strings.CutSuffix(rest, ".rdb")
	if isRDB {
		pid = strings.TrimPrefix(strings.TrimPrefix(pid, "ebb-sync-"), "flush-")
	} else {
		if rest, ok = strings.CutSuffix(rest, ".aof"); !ok {
			return false
		}
		if rest, ok = strings.CutPrefix(rest, "rewriteaof-"); !ok {
			return false
		}
		pid = strings.TrimPrefix(rest, "bg-")
	}
	_, err := strconv.ParseUint(pid, 10, 32)
	return err == nil
}

// snapshotKind is the purpose of a snapshot.
type snapshotKind struct {
	base   bool // a base of append-only files, which leaves out dead keys and items too
	origin bool // the file names the stream
	hurry  bool // a caller waits for it
	atCut  func(*engine.Tx)
}

// writeFile writes a snapshot to a new file, and syncs it.
func (k *Keeper) writeFile(ctx context.Context, path string, j *job, kind snapshotKind) error {
	f, err := k.fs.Create(path)
	if err != nil {
		return err
	}
	every := int64(0)
	if directive := "rdb-save-incremental-fsync"; !kind.base && k.o.Config.Bool(directive) || kind.base &&
		k.o.Config.Bool("aof-rewrite-incremental-fsync") {
		every = syncEvery
	}
	w := io.Writer(&syncing{f: f, every: every})
	err = k.writeSnapshot(ctx, w, &j.progress, kind, &j.dirty)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncEvery is the number of bytes of a snapshot after which the Keeper syncs, so that the system
// does not have to write all of them at the end, while other processes wait for the disk. Redis has
// the same value.
const syncEvery = 4 << 20

// syncing is a writer that syncs its file each time that it has written a number of bytes.
type syncing struct {
	f     disk.File
	every int64 // the number; 0: it never syncs
	n     int64
}

func (s *syncing) Write(b []byte) (int, error) {
	n, err := s.f.Write(b)
	if s.n += int64(n); err == nil && s.every > 0 && s.n >= s.every {
		s.n = 0
		err = s.f.Sync()
	}
	return n, err
}

// writeSnapshot writes an RDB file to w. The caller has the turn. If dirty is not nil,
// writeSnapshot stores the engine's count of changes at the cut there.
func (k *Keeper) writeSnapshot(ctx context.Context, w io.Writer, p *engine.Progress, kind snapshotKind, dirty *int64) error {
	k.mu.Lock()
	broken := k.broken
	k.mu.Unlock()
	if broken {
		return ErrPartial
	}
	c := k.o.Config
	compress := c.Bool("rdbcompression")
	out := rdb.NewWriter(w, rdb.WriterOptions{Checksum: c.Bool("rdbchecksum"), Compress: compress})
	h := head{k: k, kind: kind}
	err := k.o.DB.Snapshot(ctx, out, engine.SnapshotOptions{
		Hurry: kind.hurry,
		AtCut: func(tx *engine.Tx) {
			if dirty != nil {
				*dirty = k.o.DB.Dirty()
			}
			h.cut(tx)
		},
		Preamble:   h.write,
		NoCompress: !compress,
		Progress:   p,
	})
	if err != nil {
		return err
	}
	return out.End()
}

// head is the data of a file before its keys.
type head struct {
	k         *Keeper
	kind      snapshotKind
	now       int64 // us
	origin    Origin
	functions [][]byte
	saveID    string // "": the data is not that of append-only files
}

// cut collects the data of the instant of the cut. All shards are locked.
func (h *head) cut(tx *engine.Tx) {
	o := &h.k.o
	h.now, h.origin = tx.Now(), Origin{DB: -1}
	h.saveID = h.k.newSaveID(h.kind)
	if o.DumpFunctions != nil {
		h.functions = o.DumpFunctions()
	}
	if o.Origin != nil && h.kind.origin {
		h.origin.ID, h.origin.Offset, h.origin.DB = o.Origin()
	}
	if h.kind.atCut != nil {
		h.kind.atCut(tx)
	}
}

// write writes the head, with the texts that Redis 7 writes.
func (h *head) write(w *rdb.Writer, version int) error {
	w.Header(version)
	for _, t := range h.texts() {
		w.Aux(t[0], t[1])
	}
	for _, code := range h.functions {
		w.Function(code)
	}
	return w.Err()
}

func (h *head) texts() [][2]string {
	used, _ := h.k.o.DB.HeldMemory()
	base := "0"
	if h.kind.base {
		base = "1"
	}
	all := [][2]string{
		{"redis-ver", h.k.o.Version}, {"redis-bits", strconv.Itoa(strconv.IntSize)},
		{"ctime", strconv.FormatInt(h.now/1e6, 10)}, {"used-mem", strconv.Itoa(used)},
	}
	if h.origin.ID != "" {
		all = append(all, [2]string{"repl-stream-db", strconv.Itoa(h.origin.DB)},
			[2]string{"repl-id", h.origin.ID}, [2]string{"repl-offset", strconv.FormatInt(h.origin.Offset, 10)})
	}
	if h.saveID != "" {
		all = append(all, [2]string{saveID, h.saveID})
	}
	return append(all, [2]string{"aof-base", base})
}

// Backup writes an RDB file of the present data to w. Close ends it early, with ErrClosed, after
// the current write to w.
func (k *Keeper) Backup(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(k.ctx, cancel)()
	err := k.inTurn(ctx, func() error {
		return k.writeSnapshot(ctx, w, new(engine.Progress), snapshotKind{origin: true}, nil)
	})
	if err != nil && k.ctx.Err() != nil {
		return ErrClosed
	}
	return err
}

// SetDir implements CONFIG SET dir and dbfilename: it locks the new directory and uses it from then
// on. It returns an error while appendonly is yes, because the append-only files do not move. It
// locks no shard.
func (k *Keeper) SetDir() error {
	if k.o.Memory {
		return ErrNoDirectory
	}
	dir := k.o.Config.String("dir")
	k.mu.Lock()
	defer k.mu.Unlock()
	if dir == k.given || dir == k.dir {
		k.given = dir
		return nil
	}
	if k.aof.want || k.aof.state != aofOff {
		return errors.New("the append-only files stay where they are: CONFIG SET appendonly no comes first")
	}
	var lock io.Closer
	if k.lock != nil {
		var err error
		if lock, err = k.fs.Lock(dir); err != nil {
			return err
		}
	}
	err := k.unlock()
	k.dir, k.lock, k.given = dir, lock, dir
	k.openFilesAgain()
	return err
}
