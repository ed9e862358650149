package durable

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/oplog"
)

// maxBehind is the time, in us, by which the clock may be behind the files at a start. A greater difference
// cannot be drift or a leap second, so the operator must decide.
const maxBehind = 3600e6

// headBytes is the number of bytes of a file that are searched for its time. The texts of Redis and
// ebb are within the first few hundred bytes. In a compressed file they need a whole block: 64 KiB
// for LZ4 as Valkey writes it, 128 KiB for Zstandard.
const headBytes = 256 << 10

// ErrClockBehind: the clock is far behind the files.
var ErrClockBehind = errors.New("the clock is behind the data")

// forward is a clock that can be moved forward.
type forward interface{ NotBefore(us int64) }

// setClock makes engine time continue from the newest time in the files, in us, if the clock is
// behind it. Deadlines, tokens and stream ids require that time does not run backwards. Errors:
// ErrClockBehind.
func (k *Keeper) setClock(newest int64, where string) error {
	behind := newest - k.now()
	switch {
	case behind <= 0:
		return nil
	case behind > maxBehind && k.o.AcceptClock:
		k.o.DB.SawTime(newest)
		k.log.Warn("the clock is far behind the files, and accepted: deadlines and leases count from it",
			"behind", time.Duration(behind)*time.Microsecond, "files", where)
		return nil
	case behind > maxBehind:
		return fmt.Errorf("%w: it shows %s, and the newest in %s is of %s, %s later: set the clock, or start with "+
			"--accept-clock yes if it is right",
			ErrClockBehind, at(k.now()), where, at(newest), (time.Duration(behind) * time.Microsecond).Round(time.Second))
	}
	if c, ok := k.o.DB.Clock().(forward); ok {
		k.log.Warn("the clock is behind the files: time goes on from theirs, and comes back to it slowly", "behind",
			time.Duration(behind)*time.Microsecond)
		before := k.now()
		c.NotBefore(newest)
		k.leapt(k.now() - before)
	}
	return nil
}

// leapt subtracts a step of the clock, in us, from the duration of the running load.
func (k *Keeper) leapt(us int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if x := k.load.run; x != nil {
		x.began += us
	}
}

func at(us int64) string { return time.UnixMicro(us).UTC().Format(time.DateTime) + " UTC" }

// newestOf returns the newest time of append-only files, in us: the time of their last change, or
// of the base's creation.
func (k *Keeper) newestOf(files *oplog.Files) int64 {
	var newest int64
	for _, p := range files.Parts() {
		path := filepath.Join(files.Dir(), p.Name)
		if i, err := k.fs.Stat(path); err == nil {
			newest = max(newest, i.Modified*1000)
		}
		if f, err := k.fs.Open(path); err == nil && p.Type == oplog.Base {
			newest = max(newest, rdbTime(io.NewSectionReader(f, 0, headBytes)))
			_ = f.Close() // the file was only read
		}
	}
	return newest
}

// rdbTime returns the time, in us, at which an RDB file was written; 0 if the file does not contain
// it. It ignores errors, because the load finds them.
func rdbTime(r io.Reader) int64 {
	s, _ := strconv.ParseInt(rdbText(r, "ctime"), 10, 64)
	return s * 1e6
}
