package durable

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/testing/rdbtest"
)

// valkeyFile returns a file of Valkey 9.2 with the given number of keys, before it is compressed.
func valkeyFile(t *testing.T, keys int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := rdb.NewWriter(&b, rdb.WriterOptions{})
	w.Header(rdb.PlainVersion)
	w.Aux("valkey-ver", "9.2.0")
	w.Aux("ctime", fmt.Sprint(start.Unix()+7200))
	var e rdb.Encoder
	for i := range keys {
		e.Key = fmt.Append(nil, "old:", i)
		e.Record(0, -1, -1)
		e.String(fmt.Append(nil, "value:", i*7919))
	}
	_ = w.Records(0, e.Buf)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	copy(b.Bytes(), "VALKEY081")
	return b.Bytes()
}

// compressedForms are the forms in which a file may come.
func compressedForms(t *testing.T, file []byte) map[string][]byte {
	return map[string][]byte{"plain": file, "LZ4": rdbtest.LZ4(t, file), "Zstandard": rdbtest.Zstandard(t, file)}
}

// A file that Valkey 9.2 has compressed is loaded at the start and by DEBUG RELOAD, and
// tells when it was written.
func TestCompressedFilesAreLoaded(t *testing.T) {
	for form, file := range compressedForms(t, valkeyFile(t, 5000)) {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := newFS(1)
				writeFile(t, fs, dir+"/dump.rdb", file)
				w := newWorld(fs, clock.NewManual(start))
				defer w.close()
				w.options.AcceptClock = true
				if err := w.open(t); err != nil {
					t.Fatal(err)
				}
				w.holds(t, "old:0", "value:0", "old:4999", "value:39587081")
				w.logged(t, "behind=2h0m0s") // as the file says inside
				w.set("old:0", "another", "new", "v")
				if err := w.k.Reload(t.Context(), ReloadOptions{NoSave: true}); err != nil {
					t.Fatal(err)
				}
				w.holds(t, "old:0", "value:0", "new", "")
			})
		})
	}
}

// A snapshot that append-only files begin with has commands behind it in the one file that
// Redis had up to version 6, more of them than are read at once.
func TestCommandsFollowASnapshotInOneFile(t *testing.T) {
	for _, keys := range []int{1, 20_000} { // the snapshot is smaller than a block, or larger
		for form, file := range compressedForms(t, valkeyFile(t, keys)) {
			t.Run(fmt.Sprint(form, keys), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					fs := newFS(1)
					fs.SetTime(start.UnixMilli() + 7200_000)
					all := bytes.Clone(file)
					const commands = 20_000
					for i := range commands {
						key := fmt.Sprintf("key:%06d", i)
						all = fmt.Appendf(all, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$5\r\nvalue\r\n", len(key), key)
					}
					writeFile(t, fs, dir+"/appendonly.aof", all)
					w := newWorld(fs, clock.NewManual(start.Add(7200_000_000_000)), "appendonly", "yes")
					defer w.close()
					if err := w.open(t); err != nil {
						t.Fatal(err)
					}
					w.holds(t, "old:0", "value:0", "key:000000", "value", "key:019999", "value")
					if n := w.keys(); n != keys+commands {
						t.Errorf("%d keys", n)
					}
				})
			})
		}
	}
}

// keys counts those of database 0.
func (w *world) keys() int {
	w.tx.LockAll(0)
	defer w.tx.Unlock()
	return w.tx.Size()
}
