package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/rdb"
)

// A full synchronisation: all of the master's data as an RDB file,
//
//	$<length>\r\n<file>              where the master has a file
//	$EOF:<40 bytes>\r\n<file><those 40 bytes>   where it writes as it walks
//
// repl-diskless-load says what becomes of the data that was here: with disabled and
// on-empty-db the file is received as a whole before that is dropped, unless there
// is none; with swapdb it is loaded as it arrives, and what was here is gone when the
// first bytes are. While it is loaded clients hear LOADING, and the length of the
// stream does not move.

// load receives and loads the data that sync announced.
func (l *link) load(m *masterConn, sync *fullSync) error {
	data, size, err := m.payload()
	if err != nil {
		return err
	}
	l.expected.Store(size)
	l.received.Store(0)
	data = counted{data, l}
	keeps := l.keepsMeanwhile()
	l.r.svc.Log.Info("full synchronisation begins: all data here is replaced", "master", l.addr(), "bytes", size, "offset", sync.offset, "through_file", keeps)
	if keeps {
		file, err := l.receive(data)
		if err != nil {
			return err
		}
		defer os.Remove(file.Name())
		defer file.Close()
		data = file
	}
	// Nobody makes a snapshot of a part, whose name and offset would be those of the
	// data so far.
	l.r.svc.dropReplicas("all data is about to be replaced")
	l.deaf.Store(true)
	defer l.deaf.Store(false)
	defer m.noteHeard()
	done, err := l.r.svc.keeper.Hold(l.ctx)
	if err != nil {
		return err
	}
	defer done()
	if m.noteHeard(); !keeps {
		l.deaf.Store(false) // it is read from while it is loaded
	}
	if err := l.empty(); err != nil {
		return err
	}
	defer l.r.svc.gates.set(gateLoading, false)
	if err := l.fill(data, sync); err != nil {
		l.emptyAgain()
		return err
	}
	rest, err := io.Copy(io.Discard, data)
	if err == nil && rest > 0 {
		err = fmt.Errorf("behind the data came %d bytes that do not belong there", rest)
	}
	if err != nil {
		l.emptyAgain()
		return err
	}
	return l.adopt(sync)
}

// keepsMeanwhile reports whether there is data that is to be kept until the new has
// arrived.
func (l *link) keepsMeanwhile() bool {
	if l.r.svc.Config.String("repl-diskless-load") == "swapdb" {
		return false
	}
	tx := l.r.svc.DB.BeginAll(0)
	defer tx.Commit()
	for _, k := range tx.Keyspaces() {
		if k.Keys > 0 {
			return true
		}
	}
	return false
}

// receive writes the data into a file, beside the server's own files if there are
// any. Whoever gets the file removes it.
func (l *link) receive(data io.Reader) (*os.File, error) {
	dir := "" // where the system has its temporary files
	if c := l.r.svc.Config; c.Durable() {
		dir = c.String("dir")
	}
	file, err := os.CreateTemp(dir, durable.TempSync)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(file, data); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
		return nil, err
	}
	return file, nil
}

// payload reads the line that announces the data, and returns a reader of it. size
// is -1 where the master does not know.
func (m *masterConn) payload() (data io.Reader, size int64, err error) {
	line, err := m.line()
	if err != nil {
		return nil, 0, err
	}
	if mark, ok := strings.CutPrefix(line, "$EOF:"); ok && len(mark) == markSize {
		return &markReader{r: m.r, mark: []byte(mark)}, -1, nil
	}
	if n, ok := strings.CutPrefix(line, "$"); ok {
		if size, err = strconv.ParseInt(n, 10, 64); err == nil && size >= 0 {
			return &exactReader{r: m.r, left: size}, size, nil
		}
	}
	return nil, 0, fmt.Errorf("the master announced its data with %q", line)
}

// exactReader reads a number of bytes; less is an error.
type exactReader struct {
	r    io.Reader
	left int64
}

func (x *exactReader) Read(b []byte) (int, error) {
	if x.left == 0 {
		return 0, io.EOF
	}
	n, err := x.r.Read(b[:min(int64(len(b)), x.left)])
	x.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

const markSize = 40

// markReader reads up to a mark, which it swallows.
type markReader struct {
	r    *bufio.Reader
	mark []byte
	over bool
}

func (x *markReader) Read(b []byte) (int, error) {
	if x.over {
		return 0, io.EOF
	}
	if _, err := x.r.Peek(markSize); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	there, _ := x.r.Peek(x.r.Buffered())
	n := bytes.Index(there, x.mark)
	switch {
	case n == 0:
		x.over = true
		if _, err := x.r.Discard(markSize); err != nil {
			return 0, err
		}
		return 0, io.EOF
	case n < 0:
		n = len(there) - markSize + 1 // what follows may begin the mark
	}
	return x.r.Read(b[:min(n, len(b))])
}

// counted counts the bytes of a full synchronisation.
type counted struct {
	io.Reader
	l *link
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.l.received.Add(int64(n))
	return n, err
}

// empty closes the gate and forgets all data.
func (l *link) empty() error {
	tx := l.r.svc.DB.BeginAll(0)
	defer tx.Commit()
	if !l.current() {
		return errReplaced
	}
	l.r.svc.gates.set(gateLoading, true)
	l.forget(tx)
	return nil
}

// emptyAgain forgets what was loaded in part. The stream begins anew: nobody is to
// take an empty server for one that has come far.
func (l *link) emptyAgain() {
	tx := l.r.svc.DB.BeginAll(0)
	l.forget(tx)
	tx.ResetLog(0)
	l.r.become(randomID())
	tx.Commit()
	l.replaced()
}

// forget drops all keys, rules and libraries, which is in no stream.
func (l *link) forget(tx *engine.Tx) {
	s := l.r.svc
	tx.Replaying()
	tx.Flush(-1)
	for db := range s.DB.Databases() {
		tx.Select(db)
		for _, rule := range tx.Rules() {
			tx.DelRule(rule.Name)
		}
	}
	s.scripts.FlushLibraries()
}

// adopt makes the master's stream this server's, as of the data that was loaded.
func (l *link) adopt(sync *fullSync) error {
	if err := l.takeOver(sync); err != nil {
		return err
	}
	l.replaced()
	return nil
}

// replaced tells replicas and files that they have another history.
func (l *link) replaced() {
	l.r.svc.dropReplicas("a full synchronisation has replaced all data")
	if l.r.onReplaced != nil {
		l.r.onReplaced()
	}
}

func (l *link) takeOver(sync *fullSync) error {
	tx := l.r.svc.DB.BeginAll(0)
	defer tx.Commit()
	if !l.current() {
		return errReplaced
	}
	tx.ResetLog(sync.offset)
	l.r.svc.DB.Log().AppendVerbatim(nil, sync.db)
	l.r.become(sync.id)
	return nil
}

// fill loads the data. Nothing expires while it does, and nothing is in a stream.
func (l *link) fill(data io.Reader, sync *fullSync) error {
	s := l.r.svc
	r := rdb.NewReader(data, rdb.ReaderOptions{
		Function: s.loadLibrary,
		Aux: func(name, text []byte) error {
			if string(name) == "repl-stream-db" {
				if db, err := strconv.Atoi(string(text)); err == nil && db < s.DB.Databases() {
					sync.db = db
				}
			}
			_, err := s.DB.LoadAux(name, text)
			return err
		},
	})
	return s.DB.Load(l.ctx, r, engine.LoadOptions{KeepExpired: true})
}
