package voter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

const testFile = "/data/group/" + FileName

func openTestStore(t *testing.T, fs disk.FS) *store {
	t.Helper()
	s, err := openStore(fs, "/data/group", slog.New(slog.DiscardHandler), func() uint64 { return 7 })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func entry(index, term uint64, text string) *raft.Log {
	return &raft.Log{Index: index, Term: term, Data: []byte(text), AppendedAt: time.Unix(1, int64(index))}
}

// someVoters returns a configuration with n voters.
func someVoters(n uint64) raft.Configuration {
	s := Server{Node: 1, Store: n, Address: "h:1"}
	return raft.Configuration{Servers: []raft.Server{{ID: s.id(), Address: s.address()}}}
}

func (s *store) take(index, term uint64, state string) error {
	sink, err := s.Create(raft.SnapshotVersionMax, index, term, someVoters(index), index, nil)
	if err != nil {
		return err
	}
	for _, piece := range []string{state[:len(state)/2], state[len(state)/2:]} {
		if _, err := sink.Write([]byte(piece)); err != nil {
			return err
		}
	}
	return sink.Close()
}

// show returns the whole content of a store as text.
func (s *store) show(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	first, err1 := s.FirstIndex()
	last, err2 := s.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for i := first; i <= last && i != 0; i++ {
		var e raft.Log
		if err := s.GetLog(i, &e); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%d %d %v %q %q %d\n", e.Index, e.Term, e.Type, e.Data, e.Extensions, e.AppendedAt.UnixNano())
	}
	for _, key := range []string{termKey, "LastVoteTerm"} {
		n, err := s.GetUint64([]byte(key))
		fmt.Fprintln(&b, key, n, err)
	}
	v, err := s.Get([]byte("LastVoteCand"))
	fmt.Fprintf(&b, "%q %v\n", v, err)
	all, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		_, r, err := s.Open(m.ID)
		if err != nil {
			t.Fatal(err)
		}
		state, err := io.ReadAll(r)
		fmt.Fprintf(&b, "%+v %q %v\n", *m, state, err)
	}
	return b.String()
}

func TestAStoreHasAfterARestartWhatItHad(t *testing.T) {
	fs := crashfs.New(1)
	s := openTestStore(t, fs)
	fails := func(want string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.identity != 7 {
		t.Errorf("the name is %d, want 7", s.identity)
	}
	must(s.StoreLogs(nil))
	must(s.StoreLogs([]*raft.Log{entry(1, 1, "a"), entry(2, 1, "b"), {Index: 3, Term: 2, Type: raft.LogConfiguration, Data: []byte("c"),
		Extensions: []byte("x")}}))
	must(s.StoreLog(entry(4, 2, "")))
	fails("continues with entry 5, got entry 7", s.StoreLog(entry(7, 2, "")))
	fails("continues with entry 5, got entry 4", s.StoreLog(entry(4, 2, "")))
	must(s.DeleteRange(4, 9))
	must(s.DeleteRange(9, 12))
	fails("cannot remove 2 to 2", s.DeleteRange(2, 2))
	must(s.DeleteRange(1, 1))
	must(s.SetUint64([]byte(termKey), 9))
	must(s.Set([]byte("LastVoteCand"), []byte("me")))
	must(s.take(2, 1, "state"))
	cancelled, err := s.Create(raft.SnapshotVersionMax, 3, 1, someVoters(3), 1, nil)
	must(err)
	must(cancelled.Cancel())
	must(cancelled.Close())
	_, err = s.Create(0, 3, 1, someVoters(3), 1, nil)
	fails("version 0", err)
	_, _, err = s.Open("1-9")
	fails("no snapshot 1-9", err)
	if err := s.GetLog(1, new(raft.Log)); !errors.Is(err, raft.ErrLogNotFound) {
		t.Errorf("entry 1 was removed: %v", err)
	}
	want := s.show(t)
	syncs := fs.Count(crashfs.OpSync)
	must(s.SetUint64([]byte(termKey), 9))
	if got := fs.Count(crashfs.OpSync); got != syncs {
		t.Errorf("a value that is there already costs %d syncs", got-syncs)
	}
	must(s.close())
	fails("closed", s.StoreLog(entry(4, 2, "")))
	must(s.SetUint64([]byte(termKey), 10)) // the store is closed, so it does not wait
	fs = fs.Crash()
	s = openTestStore(t, fs)
	if got := s.show(t); got != want || s.identity != 7 {
		t.Errorf("got, of %d:\n%s\nwant:\n%s", s.identity, got, want)
	}
	must(s.close())
	must(s.close())
}

func TestTheFileOfAStoreStaysSmall(t *testing.T) {
	fs := crashfs.New(1)
	s := openTestStore(t, fs)
	text := strings.Repeat("x", 1000)
	for i := uint64(1); i <= 3000; i++ {
		if err := s.StoreLog(entry(i, 1, text)); err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			if err := errors.Join(s.take(i-50, 1, text), s.DeleteRange(1, i-50)); err != nil {
				t.Fatal(err)
			}
		}
	}
	info, err := fs.Stat(testFile)
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(2*200*1100 + slack + 2000); info.Size > most {
		t.Errorf("after 3,000 entries of 1,000 bytes, of which 150 are there at most, the file has %d bytes, want at most %d", info.Size, most)
	}
	want := s.show(t)
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if got := openTestStore(t, fs.Kill()).show(t); got != want {
		t.Error("the content is another one")
	}
}

// step makes a random call of the store, and returns its error.
func step(r *rand.Rand, s *store) error {
	first, _ := s.FirstIndex()
	last, _ := s.LastIndex()
	if last == 0 && s.snapshot != nil {
		last = s.snapshot.index
	}
	switch r.IntN(8) {
	case 0:
		return s.Set([]byte("LastVoteCand"), []byte{byte(r.IntN(4))})
	case 1:
		return s.SetUint64([]byte("LastVoteTerm"), uint64(r.IntN(9)))
	case 2:
		return s.DeleteRange(first, first+uint64(r.IntN(4)))
	case 3:
		return s.DeleteRange(max(last, 3)-uint64(r.IntN(3)), last)
	case 4:
		return s.take(last, 1, fmt.Sprint("state ", last))
	default:
		var all []*raft.Log
		for i := range uint64(1 + r.IntN(3)) {
			all = append(all, entry(last+1+i, uint64(r.IntN(5)), strings.Repeat("d", r.IntN(300))))
		}
		return s.StoreLogs(all)
	}
}

// fault plants a random fault for the next steps.
func fault(r *rand.Rand, fs *crashfs.FS) {
	switch r.IntN(5) {
	case 0:
		fs.Inject(crashfs.Fault{Op: crashfs.OpSync, Err: syscall.EIO, Times: 1 + r.IntN(2)})
	case 1:
		fs.Inject(crashfs.Fault{Op: crashfs.OpWrite, Err: syscall.EIO, Times: 1 + r.IntN(3), Short: r.IntN(30)})
	case 2:
		fs.Inject(crashfs.Fault{Op: crashfs.OpRename, Err: syscall.EIO, Times: 1})
	case 3:
		fs.Inject(crashfs.Fault{Op: crashfs.OpSyncDir, Err: syscall.EIO, Times: 1})
	default:
		fs.DieAfter(r.IntN(8))
	}
}

// After a power cut, a kill or a failed write, a store has the content of its last successful call, or that of the
// call that failed.
func TestNoFaultOfTheDiskLosesWhatIsWritten(t *testing.T) {
	r := draw.Rand(t)
	for range draw.Rounds(0, 300) {
		fs := crashfs.New(r.Uint64())
		s := openTestStore(t, fs)
		may := map[string]bool{s.show(t): true}
		for range 60 {
			if r.IntN(6) == 0 {
				fault(r, fs)
			}
			before := s.show(t)
			twin := openTestStore(t, copyOf(t, s)) // makes the same calls without faults
			seed := r.Uint64()
			err := step(rand.New(rand.NewPCG(seed, 0)), s)
			if twinErr := step(rand.New(rand.NewPCG(seed, 0)), twin); twinErr != nil {
				t.Fatal(twinErr)
			}
			want := twin.show(t)
			switch {
			case err == nil && s.show(t) != want:
				t.Fatalf("got:\n%s\nwant:\n%s", s.show(t), want)
			case err == nil:
				may = map[string]bool{want: true}
			case s.show(t) != before:
				t.Fatalf("%v, and the content has changed from:\n%s\nto:\n%s", err, before, s.show(t))
			default:
				may[want] = true
			}
			if r.IntN(8) > 0 && !errors.Is(err, crashfs.ErrDead) {
				continue
			}
			fs = end(r, fs)
			s = openTestStore(t, fs)
			got := s.show(t)
			if !may[got] {
				t.Fatalf("after a restart:\n%s", got)
			}
			may = map[string]bool{got: true}
			// What the new process has read is durable from now on: a power cut does not undo it.
			if r.IntN(2) == 0 {
				fs = fs.Crash()
				s = openTestStore(t, fs)
				if s.show(t) != got {
					t.Fatalf("a second restart has:\n%s\nthe first had:\n%s", s.show(t), got)
				}
			}
		}
	}
}

// end ends the process or cuts the power.
func end(r *rand.Rand, fs *crashfs.FS) *crashfs.FS {
	if r.IntN(2) == 0 {
		return fs.Kill()
	}
	return fs.Crash()
}

// copyOf returns a disk with a copy of a store's file.
func copyOf(t *testing.T, s *store) *crashfs.FS {
	t.Helper()
	fs := crashfs.New(1)
	if err := errors.Join(fs.MkdirAll("/data/group"), disk.WriteFile(fs, testFile, s.content.append(nil))); err != nil {
		t.Fatal(err)
	}
	return fs
}

// written returns a file of several records, and its content as show returns it.
func written(t *testing.T) (file []byte, want string) {
	t.Helper()
	fs := crashfs.New(1)
	s := openTestStore(t, fs)
	err := errors.Join(s.StoreLogs([]*raft.Log{entry(1, 1, "a"), entry(2, 1, "b")}), s.SetUint64([]byte(termKey), 300), s.take(1, 1, "state"),
		s.StoreLog(entry(3, 2, "cc")), s.Set([]byte("LastVoteCand"), []byte("me")))
	if err != nil {
		t.Fatal(err)
	}
	b, err := fs.ReadFile(testFile)
	if err != nil {
		t.Fatal(err)
	}
	return b, s.show(t)
}

func TestADamagedFileIsNamed(t *testing.T) {
	whole, want := written(t)
	last := bytes.LastIndex(whole, []byte("LastVoteCand")) - 2 - recordHead // the offset of the last record
	for i := range whole {
		for _, flip := range []byte{1, 0x80, 0xff} {
			bad := bytes.Clone(whole)
			bad[i] ^= flip
			fs := crashfs.New(1)
			if err := errors.Join(fs.MkdirAll("/data/group"), disk.WriteFile(fs, testFile, bad)); err != nil {
				t.Fatal(err)
			}
			s, err := openStore(fs, "/data/group", slog.New(slog.DiscardHandler), nil)
			switch {
			case err == nil && i < last:
				t.Fatalf("byte %d of %d, changed by %#x, is not noticed", i, len(whole), flip)
			case err == nil && s.show(t) == want:
				t.Fatalf("byte %d of the last record, changed by %#x, has no effect", i, flip)
			case err != nil && (!errors.Is(err, errDamaged) || !strings.Contains(err.Error(), testFile)):
				t.Fatalf("byte %d changed by %#x: %v", i, flip, err)
			}
		}
	}
	bad := append(bytes.Clone(whole), appendRecord(nil, []byte{99})...)
	if err := new(content).load(bad); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a record of an unknown kind: %v", err)
	}
	for _, body := range [][]byte{{kindIdentity}, {kindValue, 5}, {kindEntries, 1, 1}, {kindDelete, 1, 1, 1}, {kindSnapshot, 1, 1, 1, 1},
		entriesRecord([]*raft.Log{entry(9, 1, "")})} {
		if err := new(content).load(append(bytes.Clone(whole), appendRecord(nil, body)...)); !errors.Is(err, errDamaged) {
			t.Errorf("a record %v: %v", body, err)
		}
	}
}

// A power cut leaves a part of the record that was being written, or zeros.
func TestAPieceOfTheLastRecordIsIgnored(t *testing.T) {
	whole, _ := written(t)
	var want content
	if err := want.load(whole); err != nil {
		t.Fatal(err)
	}
	next := appendRecord(nil, valueRecord([]byte("k"), []byte("v")))
	for i := range len(next) {
		for name, tail := range map[string][]byte{"a piece": next[:i], "zeros": make([]byte, i),
			"a piece and zeros": append(bytes.Clone(next[:i]),
				make([]byte, len(next)-i)...)} {
			var got content
			if err := got.load(append(bytes.Clone(whole), tail...)); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s of %d bytes: %v, got %+v", name, i, err, got)
			}
		}
	}
}
