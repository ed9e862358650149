package durable

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/rdb"
)

// maxBehind is by how much the clock may be behind the files at a start, us. A greater
// difference is no drift and no missing leap second: the operator must decide.
const maxBehind = 3600e6

// headBytes is how much of a file is looked at for its time: the texts of Redis's
// and ours stand in the first hundred bytes or so. Of a compressed file it takes a
// whole block: LZ4's has 64 KiB as Valkey writes it, Zstandard's 128.
const headBytes = 256 << 10

// ErrClockBehind: the clock is far behind the files.
var ErrClockBehind = errors.New("the clock is behind the data")

// forward is a clock that can be moved forward.
type forward interface{ NotBefore(us int64) }

// setClock makes engine time go on from the newest time in the files, us, if the
// clock is behind it: deadlines, tokens and stream ids count on time that does not
// run back. Errors: ErrClockBehind.
func (k *Keeper) setClock(newest int64, where string) error {
	behind := newest - k.now()
	switch {
	case behind <= 0:
		return nil
	case behind > maxBehind && k.o.AcceptClock:
		k.o.DB.SawTime(newest)
		k.log.Warn("the clock is far behind the files, and accepted: deadlines and leases count from it", "behind", time.Duration(behind)*time.Microsecond, "files", where)
		return nil
	case behind > maxBehind:
		return fmt.Errorf("%w: it shows %s, and the newest in %s is of %s, %s later: set the clock, or start with --accept-clock yes if it is right",
			ErrClockBehind, at(k.now()), where, at(newest), (time.Duration(behind) * time.Microsecond).Round(time.Second))
	}
	if c, ok := k.o.DB.Clock().(forward); ok {
		k.log.Warn("the clock is behind the files: time goes on from theirs, and comes back to it slowly", "behind", time.Duration(behind)*time.Microsecond)
		before := k.now()
		c.NotBefore(newest)
		k.leapt(k.now() - before)
	}
	return nil
}

// leapt keeps a jump of the clock, us, out of what the load under way has taken.
func (k *Keeper) leapt(us int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if x := k.load.run; x != nil {
		x.began += us
	}
}

func at(us int64) string { return time.UnixMicro(us).UTC().Format(time.DateTime) + " UTC" }

// newestOf returns the newest time in append-only files, us: when they were changed
// last, and when the base was made.
func (k *Keeper) newestOf(files *oplog.Files) int64 {
	var newest int64
	for _, p := range files.Parts() {
		path := filepath.Join(files.Dir(), p.Name)
		if i, err := k.fs.Stat(path); err == nil {
			newest = max(newest, i.Modified*1000)
		}
		if f, err := k.fs.Open(path); err == nil && p.Type == oplog.Base {
			newest = max(newest, rdbTime(io.NewSectionReader(f, 0, headBytes)))
			_ = f.Close() // it was read only
		}
	}
	return newest
}

// rdbTime returns when an RDB file was made, us, 0 if it does not say. What is
// wrong with it the load will find.
func rdbTime(r io.Reader) int64 {
	var made int64
	found := errors.New("found")
	_, _ = rdb.NewReader(r, rdb.ReaderOptions{Aux: func(name, text []byte) error {
		if string(name) != "ctime" {
			return nil
		}
		if s, err := strconv.ParseInt(string(text), 10, 64); err == nil {
			made = s * 1e6
		}
		return found
	}}).Next()
	return made
}
