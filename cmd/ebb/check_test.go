package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/rdb"
)

// runCheck runs `ebb check`, and answers its questions with answer.
func runCheck(answer string, args ...string) (out string, status int) {
	var said bytes.Buffer
	cmd := checkCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&said)
	cmd.SetErr(&said)
	cmd.SetIn(strings.NewReader(answer))
	var code exitStatus
	if err := cmd.Execute(); errors.As(err, &code) {
		status = int(code)
	}
	return said.String(), status
}

func TestCheckFixesAfterAYes(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.aof")
	whole := "*2\r\n$3\r\nDEL\r\n$1\r\nk\r\n"
	if err := os.WriteFile(name, []byte(whole+"*2\r\n$3\r\nDEL\r\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		answer string
		args   []string
		status int
		said   string
	}{
		{"", []string{name}, 1, "--fix cuts these bytes off"},
		{"", []string{"--fix", name}, 1, "left as it is"},
		{"no\n", []string{"--fix", name}, 1, "left as it is"},
		{"y\n", []string{"--fix", name}, 0, `which begin with the command "DEL"? [y/N]   fixed: 13 bytes are cut off, 20 are left`},
		{"", []string{name}, 0, "  ok"},
	} {
		out, status := runCheck(c.answer, c.args...)
		if status != c.status || !strings.Contains(out, c.said) {
			t.Errorf("%q, answer %q: status %d: %s", c.args, c.answer, status, out)
		}
	}
	if b, _ := os.ReadFile(name); string(b) != whole {
		t.Errorf("%q is left", b)
	}
}

// TestCheckKnowsValuesOfOurOwn checks a file with a valid filter and one with an invalid filter.
func TestCheckKnowsValuesOfOurOwn(t *testing.T) {
	db := engine.Open(engine.Options{Databases: 1, Shards: 1})
	defer db.Close()
	key := []byte("filter")
	tx := db.Begin(0, key)
	if _, err := tx.BFAdd(key, []byte("item")); err != nil {
		t.Fatal(err)
	}
	payload, _ := tx.Dump(nil, key)
	tx.Commit()
	value, _, err := rdb.Open(payload)
	if err != nil {
		t.Fatal(err)
	}
	var e rdb.Encoder
	e.Key = []byte("none")
	e.Record(0, -1, -1)
	e.Module("ebb-bloom", []byte("?"))
	file := new(bytes.Buffer)
	w := rdb.NewWriter(file, rdb.WriterOptions{Checksum: true})
	w.Header(rdb.PlainVersion)
	_ = w.Records(0, append([]byte{value[0], 6, 'f', 'i', 'l', 't', 'e', 'r'}, value[1:]...))
	_ = w.Records(0, e.Buf)
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "own.rdb")
	if err := os.WriteFile(name, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	out, status := runCheck("", name)
	if status != 1 || strings.Count(out, "WRONG") != 1 ||
		!strings.Contains(out, `in the value of key "none" of database 0: cannot load the value: Bad data format`) {
		t.Errorf("status %d: %s", status, out)
	}
}

// TestCheckReadsSnapshots compares the counts of ebb check with an engine that has values of many types.
func TestCheckReadsSnapshots(t *testing.T) {
	db := engine.Open(engine.Options{Databases: 2, Shards: 4})
	defer db.Close()
	for i := range 100 {
		key := strconv.AppendInt(nil, int64(i), 10)
		tx := db.Begin(i%2, key)
		var err error
		switch i % 3 {
		case 0:
			_, err = tx.BFAdd(key, []byte("item"))
		case 1:
			_, err = tx.SAdd(key, [][]byte{[]byte("a"), []byte("b")})
		default:
			_, err = tx.LPush(key, engine.Head, [][]byte{[]byte("a")}, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		tx.Commit()
	}
	name := filepath.Join(t.TempDir(), "snapshot.rdb")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := rdb.NewWriter(f, rdb.WriterOptions{Checksum: true, Compress: true, Patch: f})
	if err := errors.Join(db.Snapshot(t.Context(), w, engine.SnapshotOptions{}), w.End(), f.Close()); err != nil {
		t.Fatal(err)
	}
	out, status := runCheck("", name)
	for _, line := range []string{"RDB file, version 10 of Redis", "0 MBbloom-- 17 ", "1 MBbloom-- 17 ", "0 list 17 ", "all 100 ", " ok"} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), line) {
			t.Errorf("no %q: %s", line, out)
		}
	}
	if status != 0 {
		t.Error(out)
	}
}
