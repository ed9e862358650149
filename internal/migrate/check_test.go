package migrate

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/doctor"
)

func TestATargetThatHoldsDataIsNotOverwritten(t *testing.T) {
	from, to := startEbb(t), startEbb(t)
	open(t, from).run(t, "SET k new")
	c := open(t, to)
	c.run(t, "SET k old")
	for _, scan := range []bool{false, true} {
		o := Options{From: []string{from}, To: to, Scan: scan, Once: true}
		_, err := step(t, o, (*Migration).Follow)
		if err == nil || !strings.Contains(err.Error(), "holds 1 keys, and must be empty; --replace") || c.run(t, "GET k").Str != "old" {
			t.Errorf("scan %t: %v, and the target has %q", scan, err, c.run(t, "GET k").Str)
		}
	}
	said, err := step(t, Options{From: []string{from}, To: to, Scan: true, Once: true, Replace: true}, (*Migration).Follow)
	if err != nil || c.run(t, "GET k").Str != "new" {
		t.Errorf("%v: %q\n%s", err, c.run(t, "GET k").Str, said)
	}
}

func TestCheckNamesWhatDoesNotFit(t *testing.T) {
	from, to := startEbb(t), startEbb(t, "maxmemory 10kb", "databases 4", "rename-command HSET nothing")
	fill(t, open(t, from), 100, true)
	open(t, from).run(t, "ACL SETUSER ann on")
	m, _ := migrating(t, Options{From: []string{from}, To: to})
	found, err := m.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := doctor.Print(&text, found); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"TO lacks HSET (100 calls)", "act   memory",
		"keys in database 5, and TO has 4 databases", "look  users", "ok    path       replication"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, &text)
		}
	}
}

// A target without the databases failed after half a minute, when its link had not come up.
func TestATargetWithTooFewDatabasesIsRefusedAtOnce(t *testing.T) {
	for _, scan := range []bool{false, true} {
		from, to := startEbb(t), startEbb(t, "databases 4")
		fill(t, open(t, from), 10, true)
		said, err := step(t, Options{From: []string{from}, To: to, Scan: scan}, (*Migration).Follow)
		if err == nil || !strings.Contains(err.Error(), "has 4 databases: start TO with --databases 6") {
			t.Errorf("scan %t: %v\n%s", scan, err, said)
		}
		if role := open(t, to).run(t, "ROLE").Elems[0].Str; role != "master" {
			t.Errorf("scan %t: the target is a %s", scan, role)
		}
	}
}

func TestASourceBeforeRedis62CannotHoldWrites(t *testing.T) {
	for version, want := range map[string]doctor.Grade{"6.0.16": doctor.Act, "5.0.14": doctor.Act, "6.2.0": doctor.OK, "7.0.15": doctor.OK,
		"10.1": doctor.OK, "": doctor.OK} {
		m := &Migration{from: []*peer{{product: "redis", info: map[string]string{"redis_version": version}}}}
		found, err := m.checkHold(t.Context())
		if err != nil || doctor.Worst(found) != want || want == doctor.Act && !strings.Contains(found[0].What, "WRITE needs Redis 6.2") {
			t.Errorf("%q: %v, %+v", version, err, found)
		}
		if want == doctor.OK { // a cutover would go on to connect
			continue
		}
		if err := m.Cutover(t.Context()); err == nil || !strings.Contains(err.Error(), "needs Redis 6.2") {
			t.Errorf("%q: a cutover: %v", version, err)
		}
	}
}

// The rules' list, which migrate itself asks for, and ebb's own module are not findings.
func TestACheckFromEbbDoesNotFindItself(t *testing.T) {
	from, to := startEbb(t), startEbb(t, "rename-command EXPIRY nothing")
	c := open(t, from)
	c.run(t, "SET k v")
	c.run(t, "EXPIRY RULE LIST")
	m, err := Open(t.Context(), Options{From: []string{from}, To: to, Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	found, err := m.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if err := doctor.Print(&said, found); err != nil {
		t.Fatal(err)
	}
	if text := said.String(); strings.Contains(text, "EXPIRY") || !strings.Contains(text, "ok    modules") {
		t.Error(text)
	}
}

func TestCheckRefusesASourceThatIsAReplica(t *testing.T) {
	master, from := startEbb(t), startEbb(t)
	host, port, _ := strings.Cut(strings.TrimPrefix(master, "redis://"), ":")
	open(t, from).run(t, "REPLICAOF "+host+" "+port)
	for _, scan := range []bool{false, true} {
		f := findingOf(t, Options{From: []string{from}, To: startEbb(t), Scan: scan}, "path")
		if f.Grade != doctor.Act || !strings.Contains(f.What, "is a replica of "+host+":"+port) {
			t.Errorf("scan %t: %+v", scan, f)
		}
	}
}
