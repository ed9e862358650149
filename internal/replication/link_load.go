package replication

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
)

// A full synchronisation brings all of the master's data as an RDB file:
//
//	$<length>\r\n<file>                        if the master sends a file
//	$EOF:<40 bytes>\r\n<file><those 40 bytes>  if the master writes to the socket
//
// A replica keeps its old data until it has checked the new data. repl-diskless-load says
// how:
//
//	disabled     the file is received and checked as it arrives: header, types, values,
//	             checksum. Then the replica drops the old data and loads the file
//	on-empty-db  the same if the server has data; an empty server loads from the socket
//	swapdb       the replica loads from the socket into a second keyspace, which then
//	             replaces the old data at one instant: there is memory for both
//
// While the replica loads the data, clients get LOADING and the offset does not move. With
// swapdb the server continues to serve the old data if it has the same history as the
// master's; otherwise clients get LOADING, as in Redis.

// load receives and loads the data that sync announces.
func (l *link) load(m *masterConn, sync *fullSync) error {
	data, size, err := m.payload()
	if err != nil {
		return err
	}
	l.expected.Store(size)
	l.received.Store(0)
	data = counted{data, l}
	how, holds := l.r.config.String("repl-diskless-load"), l.holdsData()
	l.r.log.Info("a full synchronisation begins: it replaces all data of this server",
		"master", l.addr(), "bytes", size, "offset", sync.offset, "repl-diskless-load", how)
	switch {
	case how == "swapdb" || l.r.group != nil: // a member keeps its old data until the new data is complete
		err = l.loadStaged(m, data, sync)
	case how == "on-empty-db" && !holds:
		err = l.replaceBy(m, data, sync, false)
	default:
		err = l.loadFile(m, data, sync, holds)
	}
	switch {
	case err == nil:
	case l.dropped:
		err = fmt.Errorf("%w; the old data is gone", err)
	case holds:
		err = fmt.Errorf("%w; the old data is kept", err)
	}
	return err
}

// loadFile receives the data into a file, and then replaces the old data by it. If there is old data, loadFile checks
// the file first.
func (l *link) loadFile(m *masterConn, data io.Reader, sync *fullSync, holds bool) error {
	file, err := l.receive(data, sync, holds)
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	return l.replaceBy(m, file, sync, true)
}

// replaceBy drops all data, and loads new data in its place. arrived reports that the new data is in a file.
func (l *link) replaceBy(m *masterConn, data io.Reader, sync *fullSync, arrived bool) error {
	done, err := l.holdFiles(m)
	if err != nil {
		return err
	}
	defer done()
	if !arrived {
		l.notReading.Store(false) // the load reads from the link
	}
	if err := l.empty(); err != nil {
		return err
	}
	defer l.r.host.SetGate(GateLoading, false)
	if err := l.fill(data, sync); err != nil {
		l.emptyAgain()
		return err
	}
	return l.adopt(sync)
}

// holdFiles drops replicas and prevents saves until done is called: a snapshot of a part
// of the data would have the name and the offset of the old data.
func (l *link) holdFiles(m *masterConn) (done func(), err error) {
	l.r.dropReplicas("all data is about to be replaced")
	l.notReading.Store(true)
	release, err := l.r.host.Keeper().Hold(l.ctx)
	m.noteReceived()
	if err != nil {
		l.notReading.Store(false)
		return nil, err
	}
	return func() {
		release()
		m.noteReceived()
		l.notReading.Store(false)
	}, nil
}

// loadStaged loads the data into a second keyspace, which replaces the old data when it
// is complete.
func (l *link) loadStaged(m *masterConn, data io.Reader, sync *fullSync) error {
	r := l.r
	if id, _, _ := r.Names(); id == sync.id {
		l.async.Store(true) // clients are served from the old data
		defer l.async.Store(false)
	} else {
		l.r.host.SetGate(GateLoading, true)
		defer l.r.host.SetGate(GateLoading, false)
	}
	stage := r.db.Stage()
	defer stage.Discard()
	libraries := r.host.StageFunctions(l.ctx)
	from := l.reader(data, sync, stage.LoadAux, libraries.Load)
	if err := stage.Load(l.ctx, from, engine.LoadOptions{KeepExpired: true}); err != nil {
		return err
	}
	if err := ended(from, data); err != nil {
		return err
	}
	done, err := l.holdFiles(m)
	if err != nil {
		return err
	}
	defer done()
	if err := l.install(stage, libraries, sync); err != nil {
		return err
	}
	l.replaced()
	return nil
}

// install replaces all data by the staged data, at one instant.
func (l *link) install(stage *engine.Staging, libraries StagedFunctions, sync *fullSync) error {
	tx := l.r.db.BeginAll(0)
	defer tx.Commit()
	if !l.current() {
		return errReplaced
	}
	tx.Replaying()
	if err := libraries.Install(); err != nil {
		return err
	}
	tx.Install(stage)
	l.adoptIn(tx, sync)
	return nil
}

// holdsData reports whether the server has keys, rules or libraries.
func (l *link) holdsData() bool {
	tx := l.r.db.BeginAll(0)
	defer tx.Commit()
	for _, k := range tx.Keyspaces() {
		if k.Keys > 0 {
			return true
		}
	}
	for db := range l.r.db.Databases() {
		if tx.Select(db); len(tx.Rules()) > 0 {
			return true
		}
	}
	return len(l.r.host.Functions()) > 0
}

// receive writes the data to a new file in the server's data directory, or in the system's temporary directory if the
// server keeps no files. With check it checks the data on the way. The caller removes the file.
func (l *link) receive(data io.Reader, sync *fullSync, check bool) (*os.File, error) {
	dir := "" // the system's directory for temporary files
	if c := l.r.config; c.Durable() {
		dir = c.String("dir")
	}
	file, err := os.CreateTemp(dir, durable.TempSync)
	if err != nil {
		return nil, err
	}
	if check {
		err = l.check(io.TeeReader(data, file), sync)
	} else {
		_, err = io.Copy(file, data)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		_ = os.Remove(file.Name())
		return nil, err
	}
	return file, nil
}

// check reads all of the data, and builds every value and every library without keeping
// them.
func (l *link) check(data io.Reader, sync *fullSync) error {
	stage := l.r.db.Stage()
	r := l.reader(data, sync, stage.LoadAux, l.r.host.StageFunctions(l.ctx).Load)
	if err := stage.Check(l.ctx, r, engine.LoadOptions{KeepExpired: true}); err != nil {
		return err
	}
	return ended(r, data)
}

// ended checks that no bytes follow the data that r has read to its end.
func ended(r *rdb.Reader, data io.Reader) error {
	rest, err := io.Copy(io.Discard, data)
	if rest += int64(len(r.Rest())); err == nil && rest > 0 {
		err = fmt.Errorf("got %d bytes after the end of the data; want none", rest)
	}
	return err
}

// reader returns a reader of the data, which passes texts to aux and libraries to
// function. The caller reads the keys.
func (l *link) reader(data io.Reader, sync *fullSync, aux func(name, text []byte) (bool, error), function func(code []byte) error) *rdb.Reader {
	return rdb.NewReader(data, rdb.ReaderOptions{
		Function: function,
		Aux: func(name, text []byte) error {
			if string(name) == "repl-stream-db" {
				if db, err := strconv.Atoi(string(text)); err == nil && db >= 0 && db < l.r.db.Databases() {
					sync.db = db
				}
			}
			_, err := aux(name, text)
			return err
		},
	})
}

// payload reads the line that announces the data, and returns a reader of the data. size is -1 if the master does not
// know it.
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
	return nil, 0, fmt.Errorf("the master announced its data with %q; want $ and a length, or $EOF: and 40 bytes", head([]byte(line), maxPeerText))
}

// exactReader reads a fixed number of bytes. It returns an error if the data ends earlier.
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

// markReader reads up to a mark. It consumes the mark and does not return it.
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
		n = len(there) - markSize + 1 // the last bytes may be the beginning of the mark
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

// empty closes GateLoading and drops all data.
func (l *link) empty() error {
	tx := l.r.db.BeginAll(0)
	defer tx.Commit()
	if !l.current() {
		return errReplaced
	}
	l.r.host.SetGate(GateLoading, true)
	l.forget(tx)
	l.dropped = true
	return nil
}

// emptyAgain drops the data of a load that failed. The stream begins again at offset 0, so
// that Sentinel does not prefer this empty server.
func (l *link) emptyAgain() {
	tx := l.r.db.BeginAll(0)
	l.forget(tx)
	tx.ResetLog(0)
	l.r.become(NewID())
	tx.Commit()
	l.replaced()
}

// forget drops all keys, rules and libraries, without an effect in the stream.
func (l *link) forget(tx *engine.Tx) {
	tx.Replaying()
	tx.Flush(-1)
	for db := range l.r.db.Databases() {
		tx.Select(db)
		for _, rule := range tx.Rules() {
			tx.DelRule(rule.Name)
		}
	}
	l.r.host.DropFunctions()
}

// adopt makes the master's stream this server's: the loaded data is its state at the
// offset of sync.
func (l *link) adopt(sync *fullSync) error {
	if err := l.takeOver(sync); err != nil {
		return err
	}
	l.replaced()
	return nil
}

// replaced makes the replicas and the files start again with the new data.
func (l *link) replaced() {
	l.r.dropReplicas("a full synchronisation has replaced all data")
	l.r.rewriteFiles()
}

func (l *link) takeOver(sync *fullSync) error {
	tx := l.r.db.BeginAll(0)
	defer tx.Commit()
	if !l.current() {
		return errReplaced
	}
	l.adoptIn(tx, sync)
	return nil
}

// adoptIn does the work of adopt in tx, which holds all shards.
func (l *link) adoptIn(tx *engine.Tx, sync *fullSync) {
	tx.ResetLog(sync.offset)
	l.r.db.Log().AppendVerbatim(nil, sync.db)
	l.r.become(sync.id)
}

// fill loads all of the data. Meanwhile active expiration is off, and the stream gets no
// effects.
func (l *link) fill(data io.Reader, sync *fullSync) error {
	r := l.reader(data, sync, l.r.db.LoadAux, l.r.host.LoadFunction)
	if err := l.r.db.Load(l.ctx, r, engine.LoadOptions{KeepExpired: true}); err != nil {
		return err
	}
	return ended(r, data)
}
