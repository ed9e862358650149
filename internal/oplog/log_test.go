package oplog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// TestReadersSeeTheStream compares random appends, and readers that start anywhere in the backlog, with a byte slice
// as the model.
func TestReadersSeeTheStream(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		l := New(rapid.Int64Range(0, 1000).Draw(t, "start"))
		start := l.End()
		var all, files []byte // with and without control bytes
		type follower struct {
			r    *Reader
			want func() []byte
		}
		var followers []follower
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				n := rapid.SampledFrom([]int{1, 10, 1000, bigAppend - 1, bigAppend, blockSize + 1}).Draw(t, "bytes")
				b := bytes.Repeat([]byte{byte(len(all))}, n)
				u := Unit{DB: rapid.IntRange(0, 2).Draw(t, "db"), Commands: rapid.IntRange(1, 2).Draw(t, "commands"), Bytes: b}
				u.Last = u.DB
				var want []byte
				if l.DB() != u.DB {
					want = AppendSelect(want, u.DB)
				}
				if u.Commands > 1 {
					want = append(want, multi...)
				}
				want = append(want, b...)
				if u.Commands > 1 {
					want = append(want, exec...)
				}
				end, _ := l.Append(u)
				all, files = append(all, want...), append(files, want...)
				if end != start+int64(len(all)) || l.End() != end {
					t.Fatalf("end %d, want %d", end, start+int64(len(all)))
				}
			},
			"control": func(*rapid.T) {
				l.AppendControl([]byte("PING"))
				all = append(all, "PING"...)
			},
			"verbatim": func(*rapid.T) {
				l.AppendVerbatim([]byte("verbatim"), 7)
				all, files = append(all, "verbatim"...), append(files, "verbatim"...)
				if l.DB() != 7 {
					t.Fatal("the database of the other's stream is lost")
				}
			},
			"keep": func(t *rapid.T) { l.Keep(rapid.SampledFrom([]int64{0, 100, blockSize, 4 * blockSize}).Draw(t, "keep")) },
			"follow": func(t *rapid.T) {
				offset := rapid.Int64Range(l.Oldest(), l.End()).Draw(t, "offset")
				r, err := l.ReaderAt(offset, ForReplica)
				if err != nil {
					t.Fatalf("%d of %d to %d: %v", offset, l.Oldest(), l.End(), err)
				}
				from := offset - start
				followers = append(followers, follower{r, func() []byte { return all[from:] }})
			},
			"write": func(t *rapid.T) {
				r, err := l.ReaderAt(l.End(), ForFile)
				if err != nil {
					t.Fatal(err)
				}
				from := len(files)
				followers = append(followers, follower{r, func() []byte { return files[from:] }})
			},
			"read": func(t *rapid.T) {
				if len(followers) == 0 {
					return
				}
				i := rapid.IntRange(0, len(followers)-1).Draw(t, "reader")
				f := followers[i]
				var got []byte
				for b := f.r.Next(); b != nil; b = f.r.Next() {
					got = append(got, b...)
				}
				if !bytes.Equal(got, f.want()) {
					t.Fatalf("reader %d: %d bytes, want %d", i, len(got), len(f.want()))
				}
				if f.r.Offset() != l.End() {
					t.Fatalf("reader %d stands at %d of %d", i, f.r.Offset(), l.End())
				}
				f.r.Close()
				followers = append(followers[:i], followers[i+1:]...)
			},
		})
	})
}

func TestTheBacklogKeepsWhatItShould(t *testing.T) {
	l := New(0)
	l.Keep(1000)
	for range 1000 {
		l.Append(Unit{Commands: 1, Bytes: make([]byte, 1000)})
	}
	if end, oldest := l.End(), l.Oldest(); end-oldest < 1000 || end-oldest > 2*blockSize {
		t.Errorf("%d bytes are kept", end-oldest)
	}
	if _, err := l.ReaderAt(0, ForReplica); !errors.Is(err, ErrGone) {
		t.Errorf("the beginning: %v", err)
	}
	if _, err := l.ReaderAt(l.End()+1, ForReplica); !errors.Is(err, ErrGone) {
		t.Errorf("the future: %v", err)
	}
}

// TestReadersFollowWriters runs writers and readers concurrently.
func TestReadersFollowWriters(t *testing.T) {
	l := New(0)
	const writers, each = 4, 2000
	var all sync.WaitGroup
	for range 3 {
		r, err := l.ReaderAt(0, ForReplica)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer r.Close()
			n := 0
			for n < writers*each*10+len(AppendSelect(nil, 0)) {
				b := r.Next()
				if n += len(b); b == nil && r.Wait(t.Context()) != nil {
					t.Error("the reader was left alone")
					return
				}
			}
		})
	}
	for range writers {
		all.Go(func() {
			for i := range each {
				l.Append(Unit{Commands: 1, Bytes: fmt.Appendf(nil, "%010d", i)})
			}
		})
	}
	all.Wait()
}

func TestReplicasGetWhatIsSyncedUnderAlways(t *testing.T) {
	l := New(0)
	l.SetAlways(true)
	file, _ := l.ReaderAt(0, ForFile)
	replica, _ := l.ReaderAt(0, ForReplica)
	l.AppendVerbatim([]byte("abcdef"), 0)
	if got := file.Next(); string(got) != "abcdef" {
		t.Errorf("file: %q", got)
	}
	if got := replica.Next(); got != nil {
		t.Errorf("replica, before the sync: %q", got)
	}
	woken := make(chan error)
	go func() { woken <- replica.Wait(t.Context()) }()
	l.SetSynced(4)
	if err := <-woken; err != nil {
		t.Fatal(err)
	}
	if got := replica.Next(); string(got) != "abcd" {
		t.Errorf("replica: %q", got)
	}
	l.SetAlways(false)
	if got := replica.Next(); string(got) != "ef" {
		t.Errorf("replica, without always: %q", got)
	}
}

type count int

func (c *count) Wake() { *c++ }

func TestWaitsEndWithTheSyncOrWithAFailure(t *testing.T) {
	l := New(0)
	l.AppendVerbatim(make([]byte, 100), 0)
	var early, late, failed, after count
	if l.OnSynced(50, &early) || l.OnSynced(100, &late) {
		t.Fatal("nothing is synced")
	}
	l.SetSynced(60)
	if early != 1 || late != 0 {
		t.Errorf("at 60: %d, %d", early, late)
	}
	if !l.OnSynced(60, &early) {
		t.Error("60 is synced")
	}
	l.OnSynced(100, &failed)
	l.Fail(errors.New("no space"))
	if late != 1 || failed != 1 {
		t.Errorf("at the failure: %d, %d", late, failed)
	}
	if l.OnSynced(100, &after) || after != 1 {
		t.Errorf("while it fails: %d", after)
	}
}

func TestWritersWaitForASlowDisk(t *testing.T) {
	l := New(0)
	var w count
	l.AppendVerbatim(make([]byte, 300), 0)
	if l.Behind(&w) {
		t.Error("there is no bound")
	}
	l.Bound(200)
	if !l.Behind(&w) {
		t.Error("300 of 200 bytes wait")
	}
	l.SetWritten(150)
	if w != 0 || l.Behind(&w) {
		t.Errorf("150 of 200 bytes wait; woken %d", w)
	}
	l.SetWritten(200)
	if w != 1 {
		t.Errorf("half the bound is free; woken %d", w)
	}
}

func TestResetEndsReaders(t *testing.T) {
	l := New(0)
	r, _ := l.ReaderAt(0, ForFile)
	l.AppendVerbatim([]byte("abc"), 3)
	l.Reset(1000)
	if r.Next() != nil || !errors.Is(r.Wait(t.Context()), ErrReset) {
		t.Error("the reader reads on")
	}
	if l.End() != 1000 || l.Oldest() != 1000 || l.DB() != -1 {
		t.Errorf("%d, %d, %d", l.End(), l.Oldest(), l.DB())
	}
	r.Close()
	if !errors.Is(r.Wait(context.Background()), ErrClosed) {
		t.Error("a closed reader waits")
	}
}

func TestNudgeEndsOneWait(t *testing.T) {
	l := New(0)
	r, err := l.ReaderAt(0, ForReplica)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Nudge()
	if err := r.Wait(t.Context()); err != nil || r.Next() != nil {
		t.Errorf("a reader that was nudged before: %v", err)
	}
	ended := make(chan error)
	go func() { ended <- r.Wait(t.Context()) }()
	r.Nudge()
	if err := <-ended; err != nil {
		t.Errorf("a reader that was nudged meanwhile: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Wait(over); !errors.Is(err, context.Canceled) {
		t.Errorf("the next wait: %v", err)
	}
}
