package nearcache

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestAProgramHearsOfKeysThatChange(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, other := b.Context(), b.Open()
		ours, more := b.Name("ours"), b.Name("more")
		s, err := b.Track(ctx, ours, more+":within", more, more+":x")
		if b.Kind == "ebb-scripts" { // its driver is one that cannot do it
			if !errors.Is(err, errors.ErrUnsupported) {
				t.Error(err)
			}
			return
		}
		must(t, err)
		defer s.Close()
		next := func(want ...string) {
			t.Helper()
			seen := map[string]bool{}
			for range want {
				m, err := s.Next(ctx)
				must(t, err)
				if m.Channel != conn.Tracking {
					t.Errorf("%+v", m)
				}
				seen[m.Payload] = true
			}
			for _, k := range want {
				if !seen[k] {
					t.Errorf("%v, want %v", seen, want)
				}
			}
		}
		must(t, other.Set(ctx, b.Name("theirs"), "1"))
		must(t, other.Set(ctx, ours+":1", "1"))
		next(ours + ":1")
		must(t, b.Conn.Set(ctx, more, "1")) // our own change
		next(more)
		_, err = other.Del(ctx, ours+":1")
		must(t, err)
		next(ours + ":1")
		must(t, s.Close())
		if _, err := s.Next(ctx); !errors.Is(err, ebb.ErrClosed) {
			t.Error(err)
		}
		if _, err := b.Track(ctx); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	})
}

func TestAProgramHearsThatItMayHaveMissedAChange(t *testing.T) {
	backends.Except(t, []string{"ebb-scripts"}, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		s, err := b.Track(ctx, b.Name("k"))
		must(t, err)
		defer s.Close()
		if !b.FaultAt(b.Name("k")) {
			return
		}
		for range 2 {
			if m, err := s.Next(ctx); !errors.Is(err, ebb.ErrInterrupted) {
				t.Fatal(m, err)
			}
		}
		b.Until("a write", func() bool { return b.Conn.Set(context.Background(), b.Name("k"), "1") == nil })
		if m, err := s.Next(ctx); err != nil && !errors.Is(err, ebb.ErrInterrupted) || err == nil && m.Payload != b.Name("k") {
			t.Error(m, err)
		}
	})
}

func TestAUserWithoutChannelsKeepsCopiesForAShortTime(t *testing.T) {
	backends.Except(t, []string{"mem", "file", "ebb-scripts", "sentinel", "cluster"}, func(t *testing.T, b *backends.Backend) {
		ctx, quiet := b.Context(), b.Quiet()
		if _, err := quiet.Track(ctx, "k"); err == nil || ebb.Temporary(err) {
			t.Error(err)
		}
		n := New(quiet, 10, nil, "k")
		defer n.Close()
		b.Until("a copy", func() bool {
			n.put("k", "", "1", time.Minute)
			copies, ok := n.Len()
			return copies == 1 && !ok
		})
		n.runner.Wait() // it has given up
	})
}

func TestNoReadIsOlderThanAReportUnderLoad(t *testing.T) {
	backends.Except(t, []string{"mem", "ebb-scripts"}, func(t *testing.T, b *backends.Backend) { // virtual time waits for busy goroutines
		ctx, other, key := b.Context(), b.Open(), b.Name("k")
		n := New(b.Conn, 10, nil, key)
		defer n.Close()
		read := func() int {
			text, ok := n.Get(key, "")
			if !ok {
				r := n.Begin(key)
				var err error
				text, err = b.Get(ctx, key)
				n.End(r, err == nil, "", text, conn.Forever, 0)
				if err != nil {
					t.Error(err)
				}
			}
			v, _ := strconv.Atoi(text)
			return v
		}
		must(t, other.Set(ctx, key, 0))
		b.Until("a copy", func() bool { read(); copies, _ := n.Len(); return copies > 0 })
		var reported, hits atomic.Int64
		var done atomic.Bool
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for !done.Load() {
					least := reported.Load()
					if v := read(); int64(v) < least {
						t.Errorf("%d after the report of %d", v, least)
						return
					}
					hits.Add(1)
				}
			})
		}
		for i := 1; i <= 50; i++ {
			n.mu.Lock()
			before := n.changes
			n.mu.Unlock()
			must(t, other.Set(ctx, key, i))
			b.Until("the report", func() bool {
				n.mu.Lock()
				defer n.mu.Unlock()
				return n.changes > before
			})
			reported.Store(int64(i))
		}
		done.Store(true)
		wg.Wait()
		t.Logf("%d reads, 50 reports, none older than a report", hits.Load())
	})
}

func TestMain(m *testing.M) { backends.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
