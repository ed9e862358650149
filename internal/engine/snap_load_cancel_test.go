package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
)

// cancelling is a reader that cancels a context after some bytes.
type cancelling struct {
	io.Reader
	left   int
	cancel context.CancelFunc
}

func (c *cancelling) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b[:min(len(b), 4096)])
	if c.left -= n; c.left < 0 {
		c.cancel()
	}
	return n, err
}

// TestALoadThatIsCancelledEndsCleanly: no goroutine is left (synctest waits for all), the loaded data is
// sound and correct, and the same engine can load another file.
func TestALoadThatIsCancelledEndsCleanly(t *testing.T) {
	full := opened(t)
	for i := range 20_000 {
		put(t, full, 0, fmt.Sprint("key:", i), strings.Repeat("v", i%50))
	}
	want := textsOf(full, 0)
	file := begin(t, full, engine.SnapshotOptions{}).finish()
	for _, after := range []int{-1, 10_000, len(file) / 2, len(file) - 1} {
		synctest.Test(t, func(t *testing.T) {
			db := engine.Open(frozen())
			defer db.Close()
			ctx, cancel := context.WithCancel(t.Context())
			in := &cancelling{bytes.NewReader(file), after, cancel}
			if after < 0 {
				cancel()
			}
			var p engine.Progress
			err := db.Load(ctx, rdb.NewReader(in, rdb.ReaderOptions{}), engine.LoadOptions{Workers: 3, Progress: &p})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("cancelled after %d bytes it ends with %v", after, err)
			}
			some := textsOf(db, 0)
			for k, v := range some {
				if want[k] != v {
					t.Fatalf("%q is %q", k, v)
				}
			}
			if len(some) >= len(want) || int64(len(some)) != p.Keys.Load() {
				t.Fatalf("%d keys of %d are there, %d are counted", len(some), len(want), p.Keys.Load())
			}
			if err := db.Check(); err != nil {
				t.Fatal(err)
			}
			tx := db.BeginAll(0)
			tx.Flush(-1)
			tx.Commit()
			if err := db.Load(t.Context(), rdb.NewReader(bytes.NewReader(file), rdb.ReaderOptions{}), engine.LoadOptions{}); err != nil {
				t.Fatal(err)
			}
			same(t, textsOf(db, 0), want)
		})
	}
}
