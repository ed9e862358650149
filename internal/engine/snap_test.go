package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
)

// steps is a writer that waits before every write until the test allows it.
type steps struct {
	bytes.Buffer
	reached chan struct{} // a write is about to begin
	free    chan struct{} // closed: writes no longer wait
	fail    error
}

func newSteps() *steps {
	return &steps{reached: make(chan struct{}), free: make(chan struct{})}
}

func (s *steps) Write(b []byte) (int, error) {
	select {
	case s.reached <- struct{}{}:
	case <-s.free:
	}
	if s.fail != nil {
		return 0, s.fail
	}
	return s.Buffer.Write(b)
}

// running is a snapshot that waits before its first write.
type running struct {
	*steps
	t      *testing.T
	done   chan error
	cancel context.CancelFunc
}

// begin begins a snapshot, and returns after its cut.
func begin(t *testing.T, db *engine.DB, o engine.SnapshotOptions) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{steps: newSteps(), t: t, done: make(chan error, 1), cancel: cancel}
	w := rdb.NewWriter(r.steps, rdb.WriterOptions{Checksum: true})
	cut := make(chan struct{})
	at := o.AtCut
	o.AtCut = func(tx *engine.Tx) {
		if at != nil {
			at(tx)
		}
		close(cut)
	}
	go func() {
		err := db.Snapshot(ctx, w, o)
		if err == nil {
			err = w.End()
		}
		r.done <- err
	}()
	<-cut
	return r
}

// step allows one write, and waits for the next one or for the end.
func (r *running) step() (more bool) {
	select {
	case <-r.reached:
		return true
	case err := <-r.done:
		r.done <- err
		return false
	}
}

// finish lets the snapshot end, and returns the file.
func (r *running) finish() []byte {
	r.t.Helper()
	close(r.free)
	if err := <-r.done; err != nil {
		r.t.Fatal(err)
	}
	r.cancel()
	return r.Bytes()
}

// load fills a new engine from a file.
func load(t *testing.T, file []byte, o engine.LoadOptions, of engine.Options) (*engine.DB, error) {
	t.Helper()
	db := engine.Open(of)
	t.Cleanup(db.Close)
	r := rdb.NewReader(bytes.NewReader(file), rdb.ReaderOptions{Aux: func(name, text []byte) error {
		_, err := db.LoadAux(name, text)
		return err
	}})
	return db, db.Load(t.Context(), r, o)
}

// textsOf returns the strings of a database.
func textsOf(db *engine.DB, dbi int) map[string]string {
	tx := db.BeginAll(dbi)
	defer tx.Commit()
	all := map[string]string{}
	tx.Each(func(k engine.Key) { all[string(k.Name())] = string(k.Value()) })
	return all
}

func frozen() engine.Options {
	return engine.Options{Clock: clock.NewManual(time.UnixMilli(1_700_000_000_000)), Shards: 4}
}

func opened(t *testing.T) *engine.DB {
	db := engine.Open(frozen())
	t.Cleanup(db.Close)
	return db
}

func put(t *testing.T, db *engine.DB, dbi int, key, val string) {
	t.Helper()
	tx := db.Begin(dbi, []byte(key))
	defer tx.Commit()
	if _, _, err := tx.Set([]byte(key), []byte(val), engine.SetOptions{}, nil); err != nil {
		t.Fatal(err)
	}
}

func remove(db *engine.DB, dbi int, key string) {
	tx := db.Begin(dbi, []byte(key))
	tx.Del([]byte(key))
	tx.Commit()
}

// loaded returns the strings of database 0 that a file gives.
func loaded(t *testing.T, file []byte) map[string]string {
	t.Helper()
	db, err := load(t, file, engine.LoadOptions{}, frozen())
	if err != nil {
		t.Fatal(err)
	}
	return textsOf(db, 0)
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	n := 0
	for k, v := range want {
		if g, ok := got[k]; !ok || g != v {
			if n++; n < 10 {
				t.Errorf("%.40q is %.40q, %v, want %.40q", k, g, ok, v)
			}
		}
	}
	for k, v := range got {
		if _, ok := want[k]; !ok {
			if n++; n < 20 {
				t.Errorf("%.40q should not be there: %.40q", k, v)
			}
		}
	}
	t.Fatalf("%d keys, want %d", len(got), len(want))
}

func TestASnapshotHoldsWhatWasThereAtTheCut(t *testing.T) {
	db := opened(t)
	for i := range 3000 {
		put(t, db, 0, fmt.Sprint("key:", i), fmt.Sprint(i))
	}
	want := textsOf(db, 0)
	r := begin(t, db, engine.SnapshotOptions{})
	for i := range 5000 {
		switch k := fmt.Sprint("key:", i*7%4000); i % 3 {
		case 0:
			remove(db, 0, k)
		default:
			put(t, db, 0, k, "changed")
		}
		if i%1000 == 0 {
			r.step()
		}
	}
	same(t, loaded(t, r.finish()), want)
	if err := db.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestASnapshotIsRightWhateverTheTablesDo(t *testing.T) {
	db := opened(t)
	for i := range 10 {
		put(t, db, 0, fmt.Sprint("old:", i), "old")
	}
	for round := range 3 {
		want := textsOf(db, 0)
		r := begin(t, db, engine.SnapshotOptions{})
		for i := range 40_000 {
			put(t, db, 0, fmt.Sprint("new:", i), "new")
		}
		r.step()
		for i := range 40_000 {
			remove(db, 0, fmt.Sprint("new:", i))
		}
		same(t, loaded(t, r.finish()), want)
		for i := range 20_000 {
			put(t, db, 0, fmt.Sprint("big:", i), "big")
		}
		want = textsOf(db, 0)
		r = begin(t, db, engine.SnapshotOptions{})
		for i := range 20_000 {
			remove(db, 0, fmt.Sprint("big:", i))
			if i%5000 == 0 {
				r.step()
			}
		}
		same(t, loaded(t, r.finish()), want)
		if err := db.Check(); err != nil {
			t.Fatal(round, err)
		}
	}
}

func TestAFlushLeavesTheKeysToTheSnapshot(t *testing.T) {
	db := opened(t)
	for i := range 2000 {
		put(t, db, i%2, fmt.Sprint("key:", i), fmt.Sprint(i))
	}
	want, other := textsOf(db, 0), textsOf(db, 1)
	r := begin(t, db, engine.SnapshotOptions{})
	r.step()
	tx := db.BeginAll(0)
	tx.Swap(0, 1)
	tx.Flush(-1)
	tx.Commit()
	put(t, db, 0, "key:1", "later")
	file := r.finish()
	second, err := load(t, file, engine.LoadOptions{}, frozen())
	if err != nil {
		t.Fatal(err)
	}
	same(t, textsOf(second, 0), want)
	same(t, textsOf(second, 1), other)
	same(t, textsOf(db, 0), map[string]string{"key:1": "later"})
}

func TestASnapshotThatFailsDoesNotHarmTheNext(t *testing.T) {
	db := opened(t)
	for i := range 3000 {
		put(t, db, 0, fmt.Sprint("key:", i), strings.Repeat("v", 100))
	}
	r := begin(t, db, engine.SnapshotOptions{})
	r.step()
	for i := range 300 {
		put(t, db, 0, fmt.Sprint("key:", i*3), "one")
	}
	r.cancel()
	close(r.free)
	if err := <-r.done; !errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled snapshot ends with %v", err)
	}
	r = begin(t, db, engine.SnapshotOptions{})
	r.fail = io.ErrClosedPipe
	put(t, db, 0, "key:7", "two")
	close(r.free)
	if err := <-r.done; !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("a snapshot that cannot be written ends with %v", err)
	}
	want := textsOf(db, 0)
	r = begin(t, db, engine.SnapshotOptions{})
	put(t, db, 0, "key:7", "three")
	same(t, loaded(t, r.finish()), want)
}

func TestLongStringsAreNotCopiedAndNotTorn(t *testing.T) {
	db := opened(t)
	edits := map[string]func(tx *engine.Tx, k []byte) error{
		"append":   func(tx *engine.Tx, k []byte) error { _, err := tx.Append(k, []byte("tail")); return err },
		"setrange": func(tx *engine.Tx, k []byte) error { _, err := tx.SetRange(k, 1<<19+5, []byte("edited")); return err },
		"setbit":   func(tx *engine.Tx, k []byte) error { _, err := tx.SetBit(k, 8<<20-1, 1); return err },
		"set": func(tx *engine.Tx, k []byte) error {
			_, _, err := tx.Set(k, []byte("short"), engine.SetOptions{}, nil)
			return err
		},
		"rename": func(tx *engine.Tx, k []byte) error {
			to := append([]byte("to "), k...)
			_, err := tx.Rename(k, to, false)
			if err == nil {
				_, err = tx.SetRange(to, 70_000, []byte("edited"))
			}
			return err
		},
	}
	for _, size := range []int{100_000, 2 << 20} {
		for name := range edits {
			put(t, db, 0, fmt.Sprint(name, size), strings.Repeat(name+",", size/len(name)))
		}
	}
	want := textsOf(db, 0)
	r := begin(t, db, engine.SnapshotOptions{NoCompress: true})
	for i := range 20 {
		for name, edit := range edits {
			for _, size := range []int{100_000, 2 << 20} {
				if i > 0 && (name == "rename" || i%3 != 0) {
					continue
				}
				tx := db.BeginAll(0)
				if err := edit(tx, []byte(fmt.Sprint(name, size))); err != nil {
					t.Fatal(name, err)
				}
				tx.Commit()
			}
		}
		r.step()
	}
	same(t, loaded(t, r.finish()), want)
}

func TestWritersWaitForASlowDisk(t *testing.T) {
	db := opened(t)
	for i := range 3000 {
		put(t, db, 0, fmt.Sprint("key:", i), strings.Repeat("v", 200))
	}
	want := textsOf(db, 0)
	r := begin(t, db, engine.SnapshotOptions{NoCompress: true, Buffer: 100_000})
	through := make(chan struct{})
	go func() {
		for i := range 3000 {
			put(t, db, 0, fmt.Sprint("key:", i), "later")
		}
		close(through)
	}()
	full := func() bool {
		tx := db.NewTx()
		if !tx.TryLock(0, [][]byte{[]byte("elsewhere")}) {
			return true
		}
		tx.Unlock()
		return false
	}
	for !full() {
		runtime.Gosched()
	}
	select {
	case <-through:
		t.Fatal("no transaction waited")
	default:
	}
	tx := db.NewTx()
	tx.ReadOnly(true)
	tx.Lock(0, [][]byte{[]byte("key:1")}) // a reader does not wait
	tx.Unlock()
	same(t, loaded(t, r.finish()), want)
	<-through
}

func TestASnapshotIsAbandonedWhoseReaderIsSlow(t *testing.T) {
	db := opened(t)
	for i := range 3000 {
		put(t, db, 0, fmt.Sprint("key:", i), strings.Repeat("v", 200))
	}
	r := begin(t, db, engine.SnapshotOptions{NoCompress: true, Buffer: 100_000, Abandon: true})
	for i := range 3000 {
		put(t, db, 0, fmt.Sprint("key:", i), "later")
	}
	close(r.free)
	if err := <-r.done; !errors.Is(err, engine.ErrSnapshotBehind) {
		t.Fatalf("it ends with %v", err)
	}
	same(t, loaded(t, begin(t, db, engine.SnapshotOptions{}).finish()), textsOf(db, 0))
}

func TestOneSnapshotAtATime(t *testing.T) {
	db := opened(t)
	for i := range 1000 {
		put(t, db, 0, fmt.Sprint("key:", i), strings.Repeat("v", 100))
	}
	r := begin(t, db, engine.SnapshotOptions{})
	if err := db.Snapshot(t.Context(), rdb.NewWriter(io.Discard, rdb.WriterOptions{}), engine.SnapshotOptions{}); err != engine.ErrSnapshotting {
		t.Fatalf("a second one ends with %v", err)
	}
	r.finish()
}

func TestALoadRefusesAKeyThatComesTwice(t *testing.T) {
	e := rdb.Encoder{Key: []byte("k")}
	for range 2 {
		e.Record(0, -1, -1)
		e.String([]byte("v"))
	}
	var file bytes.Buffer
	w := rdb.NewWriter(&file, rdb.WriterOptions{Checksum: true})
	w.Header(10)
	_ = w.Records(0, e.Buf)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	_, err := load(t, file.Bytes(), engine.LoadOptions{}, frozen())
	if !errors.Is(err, engine.ErrTwice) || !strings.Contains(err.Error(), `"k"`) {
		t.Fatalf("it ends with %v", err)
	}
}

func TestASnapshotHoldsRulesTokensAndSlidingDeadlines(t *testing.T) {
	db := opened(t)
	tx := db.BeginAll(3)
	if err := tx.SetRule(engine.Rule{Name: "r\xff", Match: "a*", Levels: engine.AllLevels, Stream: "s", MaxLen: 10, MaxValue: -1}); err != nil {
		t.Fatal(err)
	}
	token := tx.NextToken() + 1_000_000
	tx.SawToken(token)
	long := bytes.Repeat([]byte("0123456789"), 100_000)
	for key, val := range map[string][]byte{"short": []byte("v"), "long": long} {
		if _, _, err := tx.Set([]byte(key), val, engine.SetOptions{Deadline: tx.Millis() + 5000, Span: 5000}, nil); err != nil {
			t.Fatal(err)
		}
	}
	rules, want := tx.Rules(), picture(tx)
	tx.Commit()
	second, err := load(t, begin(t, db, engine.SnapshotOptions{}).finish(), engine.LoadOptions{}, frozen())
	if err != nil {
		t.Fatal(err)
	}
	tx = second.BeginAll(3)
	defer tx.Commit()
	if got := tx.Rules(); len(got) != 1 || got[0] != rules[0] {
		t.Fatalf("the rules are %+v, want %+v", got, rules)
	}
	if got := tx.NextToken(); got <= token {
		t.Fatalf("the next token is %d, after %d", got, token)
	}
	same(t, picture(tx), want)
}

func TestASnapshotHoldsRulesThatWriteToQueues(t *testing.T) {
	db := opened(t)
	tx := db.BeginAll(2)
	stream := engine.Rule{Name: "s", Match: "a*", Levels: engine.AllLevels, Stream: "s", MaxLen: 10, MaxValue: -1}
	queue := engine.Rule{Name: "q", Match: "b*", Levels: 1 << engine.LevelKey, MaxValue: 5, ToQueue: true, Queue: "\xffq", Delay: 1 << 40, Priority: 9}
	for _, r := range []engine.Rule{stream, queue} {
		if err := tx.SetRule(r); err != nil {
			t.Fatal(err)
		}
	}
	tx.Select(1)
	if err := tx.SetRule(stream); err != nil { // the text of this rule has the version that older releases read
		t.Fatal(err)
	}
	tx.Commit()
	file := begin(t, db, engine.SnapshotOptions{}).finish()
	if !bytes.Contains(file, []byte("\x01\x01\x01\x01s\x02a*")) || !bytes.Contains(file, []byte("\x02\x02\x02\x01s\x02a*")) {
		t.Error("the versions of the rules are not 1 and 2")
	}
	second, err := load(t, file, engine.LoadOptions{}, frozen())
	if err != nil {
		t.Fatal(err)
	}
	tx = second.BeginAll(2)
	defer tx.Commit()
	if got := tx.Rules(); len(got) != 2 || got[0].Rule != stream || got[1].Rule != queue {
		t.Errorf("the rules are %+v", got)
	}
	tx.Select(1)
	if got := tx.Rules(); len(got) != 1 || got[0].Rule != stream {
		t.Errorf("the rules are %+v", got)
	}
}

func TestALoadLeavesOutWhatIsDeadUnlessToldOtherwise(t *testing.T) {
	db := engine.Open(engine.Options{Clock: clock.NewManual(time.UnixMilli(1_700_000_000_000)), Shards: 4})
	defer db.Close()
	tx := db.BeginAll(0)
	_, _, _ = tx.Set([]byte("k"), []byte("v"), engine.SetOptions{Deadline: tx.Millis() + 10}, nil)
	_, _ = tx.HSet([]byte("h"), [][]byte{[]byte("f"), []byte("v")})
	_ = tx.HExpire([]byte("h"), [][]byte{[]byte("f")}, tx.Millis()+10, 0, func(int) {})
	tx.Commit()
	file := begin(t, db, engine.SnapshotOptions{}).finish()
	for keep, want := range map[bool]int{false: 0, true: 2} {
		later := engine.Options{Clock: clock.NewManual(time.UnixMilli(1_700_000_001_000)), Shards: 4}
		second := engine.Open(later)
		second.SetActiveExpiry(false)
		r := rdb.NewReader(bytes.NewReader(file), rdb.ReaderOptions{})
		var p engine.Progress
		if err := second.Load(t.Context(), r, engine.LoadOptions{KeepExpired: keep, Progress: &p}); err != nil {
			t.Fatal(err)
		}
		tx := second.BeginAll(0)
		tx.Replaying()
		n := 0
		tx.Each(func(engine.Key) { n++ })
		tx.Commit()
		if n != want || p.Keys.Load() != int64(want) || p.Dropped.Load() != int64(2-want) {
			t.Errorf("KeepExpired %v: %d keys, %d counted, %d dropped", keep, n, p.Keys.Load(), p.Dropped.Load())
		}
		second.Close()
	}
}
