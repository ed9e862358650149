package engine

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/rdbtest"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// packedFile is a file of n keys in an envelope of Zstandard.
func packedFile(t *testing.T, n int, value func(e *rdb.Encoder, i int)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := rdb.NewWriter(&b, rdb.WriterOptions{})
	w.Header(rdb.PlainVersion)
	e := rdb.Encoder{Compress: true}
	for i := range n {
		e.Reset(e.Buf[:0])
		e.Key = fmt.Append(nil, "key:", i)
		e.Record(0, -1, -1)
		value(&e, i)
		_ = w.Records(0, e.Buf)
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	return rdbtest.Zstandard(t, b.Bytes())
}

// zeros writes a value of n zeros that the Encoder does not compress.
func zeros(e *rdb.Encoder, n int) {
	e.Compress = false
	e.String(make([]byte, n))
}

func TestAFileThatUnpacksToMoreThanMemoryIsRefused(t *testing.T) {
	const limit = 4 << 20
	part := 1
	if tier.Short() {
		part = 4 // the files are still larger than two limits
	}
	for what, file := range map[string][]byte{
		"strings":       packedFile(t, 64/part, func(e *rdb.Encoder, _ int) { zeros(e, 1<<20) }),
		"one string":    packedFile(t, 1, func(e *rdb.Encoder, _ int) { zeros(e, 64<<20/part) }),
		"LZF in it":     packedFile(t, 200/part, func(e *rdb.Encoder, _ int) { e.String(make([]byte, 1<<20)) }),
		"many elements": packedFile(t, 1, func(e *rdb.Encoder, _ int) { many(e, 10_000_000/part) }),
		"a list": packedFile(t, 1, func(e *rdb.Encoder, _ int) {
			e.BeginList()
			for range 4000 / part {
				e.Element(make([]byte, 16<<10))
			}
			e.EndList()
		}),
	} {
		for _, how := range []string{"load", "staging", "check"} {
			db, _, _ := open(t, Options{})
			db.LimitMemory(limit)
			r := rdb.NewReader(bytes.NewReader(file), rdb.ReaderOptions{})
			stage, err := db.Stage(), error(nil)
			switch how {
			case "load":
				err = db.Load(t.Context(), r, LoadOptions{})
			case "staging":
				err = stage.Load(t.Context(), r, LoadOptions{})
			default:
				err = stage.Check(t.Context(), r, LoadOptions{})
			}
			if !errors.Is(err, ErrUnpacks) && (err == nil || !strings.Contains(err.Error(), "are allowed")) {
				t.Errorf("%s, %s: %d bytes are accepted, %v", what, how, len(file), err)
			}
			if used := db.UsedMemory(); used > 2*limit {
				t.Errorf("%s, %s: a file of %d bytes takes %d bytes; want %d", what, how, len(file), used, limit)
			}
			stage.Discard()
		}
	}
}

// many writes a list of n elements of one byte.
func many(e *rdb.Encoder, n int) {
	e.Compress = false
	e.BeginList()
	for range n {
		e.Element([]byte("a"))
	}
	e.EndList()
}

// TestHonestFilesLargerThanTheLimitAreLoaded loads files that no bound may refuse: a replica may hold more
// than its own limit, because its master evicts.
func TestHonestFilesLargerThanTheLimitAreLoaded(t *testing.T) {
	r := draw.Rand(t)
	limit, part := 1<<20, 1
	if tier.Short() {
		limit, part = limit/4, 4
	}
	for what, file := range map[string][]byte{
		"numbers": packedFile(t, 200_000/part, func(e *rdb.Encoder, i int) { e.String(fmt.Append(nil, r.Int64())) }),
		"texts that repeat": packedFile(t, 20_000/part, func(e *rdb.Encoder, i int) {
			e.String(bytes.Repeat(fmt.Append(nil, r.Int64()), 50))
		}),
		"dense, below the limit": packedFile(t, 10, func(e *rdb.Encoder, _ int) { zeros(e, 20<<10/part) }),
	} {
		db, _, _ := open(t, Options{})
		db.LimitMemory(int64(limit))
		if err := db.Load(t.Context(), rdb.NewReader(bytes.NewReader(file), rdb.ReaderOptions{}), LoadOptions{}); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	dense := packedFile(t, 64/part, func(e *rdb.Encoder, _ int) { zeros(e, 1<<20) })
	db, _, _ := open(t, Options{}) // no limit
	if err := db.Load(t.Context(), rdb.NewReader(bytes.NewReader(dense), rdb.ReaderOptions{}), LoadOptions{}); err != nil {
		t.Error(err)
	}
}

// listPayload is a DUMP payload of a list with n equal nodes, each of which unpacks to size bytes.
func listPayload(n, size int) []byte {
	e := rdb.Encoder{Compress: true}
	e.BeginList()
	for range n {
		e.Element(make([]byte, size))
	}
	e.EndList()
	return slices.Clone(rdb.Seal(e.Buf, e.Version()))
}

func TestAPayloadThatUnpacksToMoreThanMemoryIsRefused(t *testing.T) {
	db, _, _ := open(t, Options{})
	const limit = 4 << 20
	bomb, fits := listPayload(1000, 64<<10), listPayload(20, 64<<10)
	restore := func(payload []byte, replay bool) error {
		tx := db.Begin(0, []byte("k"))
		defer tx.Commit()
		if replay {
			tx.Replaying()
		}
		return tx.Restore([]byte("k"), payload, RestoreOptions{Replace: true})
	}
	db.LimitMemory(limit)
	if err := restore(bomb, false); !errors.Is(err, ErrUnpacks) {
		t.Errorf("%d bytes that unpack to %d: %v", len(bomb), 1000*64<<10, err)
	}
	for range 10 { // each returns its part of the ration
		if err := restore(fits, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := restore(bomb, true); err != nil {
		t.Errorf("a replay: %v", err)
	}
	db.LimitUnpacked(limit) // the machine has no more
	if err := restore(bomb, true); !errors.Is(err, ErrUnpacks) {
		t.Errorf("a replay on a small machine: %v", err)
	}
	if n := db.unpacking.spent.Load(); n != 0 {
		t.Errorf("%d bytes of the ration are not given back", n)
	}
}
