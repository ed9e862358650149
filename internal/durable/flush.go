package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
)

// Emptied notes that tx, which holds all shards, has removed all data at once (FLUSHALL). If there
// are save points, it replaces the RDB file with one without keys before it returns, as Redis does.
// Otherwise a crash before the next save would restore the old data. It cancels a running save,
// because its data is older. It logs an error, and counts it as a failed save.
//
// It locks no further shard. Other commands wait while it syncs a file.
func (k *Keeper) Emptied(tx *engine.Tx) {
	points, _ := k.o.Config.Value("save").Data.([]savePoint)
	if k.o.Memory || len(points) == 0 {
		return
	}
	k.mu.Lock()
	skip := k.closed || k.broken || !k.started || k.held > 0 // the engine does not have the data of the files
	k.mu.Unlock()
	if skip {
		return
	}
	k.replacing.Lock()
	defer k.replacing.Unlock()
	k.mu.Lock()
	if j := k.job; j != nil && j.kind == jobSave {
		j.overtaken = true
		j.cancel()
	}
	path, temp := k.rdbPath(), filepath.Join(k.dir, fmt.Sprintf("temp-flush-%d.rdb", os.Getpid()))
	err := k.takeLock()
	k.mu.Unlock()
	began := k.now()
	if err == nil {
		if err = k.writeEmpty(tx, temp); err == nil {
			err = k.replaceRDB(temp, path)
		}
		if err != nil {
			_ = k.fs.Remove(temp) // the file may not exist
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
		k.log.Error("the RDB file still has the data that FLUSHALL has removed", "error", err)
	} else {
		k.log.Info("the RDB file is saved without keys, behind FLUSHALL")
	}
	k.mu.Lock()
	k.jobs.lastTry = began
	k.jobs.saved(&job{began: began, dirty: k.o.DB.Dirty() + int64(tx.Changes())}, k.now(), err, k.leftOut(err))
	k.settleLock()
	k.mu.Unlock()
	k.nudge() // the server may have to refuse writes now, or to allow them again
}

// writeEmpty writes and syncs a file without keys: the functions, and the name of the
// stream at this instant.
func (k *Keeper) writeEmpty(tx *engine.Tx, path string) error {
	f, err := k.fs.Create(path)
	if err != nil {
		return err
	}
	out := rdb.NewWriter(f, rdb.WriterOptions{Checksum: k.o.Config.Bool("rdbchecksum"), Compress: k.o.Config.Bool("rdbcompression")})
	h := head{k: k, kind: snapshotKind{origin: true}}
	h.cut(tx)
	if err = h.write(out, rdb.PlainVersion); err == nil {
		err = out.End()
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
