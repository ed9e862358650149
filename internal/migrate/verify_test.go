package migrate

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// mustEqual verifies that two servers hold the same.
func mustEqual(t *testing.T, from []string, to string) {
	t.Helper()
	said, err := step(t, Options{From: from, To: to}, (*Migration).Verify)
	if err != nil || !strings.Contains(said, "equal: ") {
		t.Errorf("%v\n%s", err, said)
	}
}

// mustEqualOrBusy verifies while a writer writes: no key may differ that did not change.
func mustEqualOrBusy(t *testing.T, from []string, to string) {
	t.Helper()
	if said, err := step(t, Options{From: from, To: to}, (*Migration).Verify); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// The sources may have as many keys as the target, and the target one that none of them has: here two have the same key, and the
// numbers of redis-server count keys that are due.
func TestVerifyFindsAKeyThatOnlyTheTargetHasAmongAsMany(t *testing.T) {
	a, b, to := startEbb(t), startEbb(t), startEbb(t)
	open(t, a).run(t, "SET k v")
	open(t, b).run(t, "SET k v")
	open(t, to).run(t, "MSET k v only-here v")
	said, err := step(t, Options{From: []string{a, b}, To: to}, (*Migration).Verify)
	if !errors.Is(err, errDiffer) || !strings.Contains(said, `key "only-here": FROM does not have it`) {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestVerifyNamesWhatDiffers(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	f, c := open(t, from), open(t, to)
	fill(t, f, 10, true)
	if said, err := step(t, Options{From: []string{from}, To: to, Scan: true, Once: true}, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, x := range []struct{ line, want string }{
		{"HSET hash3 f other", `key "hash3": the hash differs`},
		{"DEL list4", `key "list4": TO does not have it`},
		{"PEXPIRE timed5 1000", `key "timed5": the deadline is `},
		{"XGROUP SETID stream1 g 0", `key "stream1": the stream differs`},
		{"SET only-here v", `key "only-here": FROM does not have it`},
		{"XSETID stream2 99999999999999-0 ENTRIESADDED 77", `key "stream2": the stream differs`},
		{`FUNCTION LOAD "#!lua name=here\nredis.register_function('f', function() return 1 end)"`, `functions "here": FROM does not have it`},
		{"LSET list6 0 b", `key "list6": the list differs`},
	} {
		c.run(t, x.line)
		said, err := step(t, Options{From: []string{from}, To: to}, (*Migration).Verify)
		if !errors.Is(err, errDiffer) || !strings.Contains(said, x.want) {
			t.Errorf("after %s: %v\n%s", x.line, err, said)
		}
	}
	said, err := step(t, Options{From: []string{from}, To: to, Sample: 10}, (*Migration).Verify)
	if err != nil && !errors.Is(err, errDiffer) {
		t.Errorf("a sample: %v\n%s", err, said)
	}
}

func TestVerifyOfAFileLooksForWhatOnlyTheTargetHas(t *testing.T) {
	dir := t.TempDir()
	from, to := startEbb(t, "dir "+dir, "save 3600 1", "appendonly no"), startEbb(t)
	c := open(t, from)
	fill(t, c, 10, true)
	c.run(t, `FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)"`)
	c.run(t, "SAVE")
	o := Options{From: []string{filepath.Join(dir, "dump.rdb")}, To: to}
	if said, err := step(t, o, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if said, err := step(t, o, (*Migration).Verify); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	on := open(t, to)
	for _, x := range [][2]string{{"FUNCTION DELETE lib", `"lib": TO does not have it`},
		{"SET only-here v", `"only-here": FROM does not have it`}} {
		on.run(t, x[0])
		if said, err := step(t, o, (*Migration).Verify); !errors.Is(err, errDiffer) || !strings.Contains(said, x[1]) {
			t.Errorf("after %s: %v\n%s", x[0], err, said)
		}
	}
}
