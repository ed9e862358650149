package migrate

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func TestWrongServersAreNamed(t *testing.T) {
	one := startEbb(t)
	locked := startEbb(t, "requirepass secret")
	for _, x := range []struct {
		o    Options
		want string
	}{
		{Options{From: []string{one}, To: one}, "are the same server"},
		{Options{From: []string{one + "/3"}, To: locked}, "NOAUTH"},
		{Options{From: []string{one + "/3"}, To: locked, Password: "secret"}, "the URL names database 3"},
		{Options{From: []string{"redis://127.0.0.1:1"}, To: one}, "FROM 127.0.0.1:1: "},
		{Options{From: []string{one}, To: "host:1"}, "TO: "},
	} {
		if _, err := step(t, x.o, (*Migration).Follow); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v to %s: %v, want %q", x.o.From, x.o.To, err, x.want)
		}
	}
	if said, err := step(t, Options{From: []string{one}, To: locked, Password: "secret", Once: true}, (*Migration).Follow); err != nil {
		t.Errorf("with a password for the one server that has one: %v\n%s", err, said)
	}
}

// redis-server without TLS takes the handshake for the beginning of a line, and says nothing.
func TestAServerWithoutTLSIsNamed(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	defer func(d time.Duration) { connectTimeout = d }(connectTimeout)
	connectTimeout = 50 * time.Millisecond
	_, err = Open(t.Context(), Options{From: []string{"redis://127.0.0.1:1"}, To: "rediss://" + silent.Addr().String(), Out: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "TO") || !strings.Contains(err.Error(), "TLS handshake") {
		t.Error("got", err)
	}
}

// What TO needs to log in at the other servers of its own group is not the migration's.
func TestTheTargetGetsItsOwnLinkSettingsBack(t *testing.T) {
	for _, password := range []string{"", "secret"} {
		from, to := startEbb(t), startEbb(t, "masterauth grouppw", "masteruser repl")
		if password != "" {
			from = strings.Replace(startEbb(t, "requirepass "+password), "://", "://:"+password+"@", 1)
		}
		fill(t, open(t, from), 10, false)
		c := open(t, to)
		stopped, err := step(t, Options{From: []string{from}, To: to, Once: true}, (*Migration).Follow)
		if err != nil {
			t.Fatalf("%v\n%s", err, stopped)
		}
		c.run(t, "REPLICAOF NO ONE") // the move is given up; the next one is from a server with another password
		c.run(t, "CONFIG SET masterauth grouppw masteruser repl")
		if said, err := step(t, Options{From: []string{from}, To: to, Replace: true}, (*Migration).Cutover); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		for name, want := range map[string]string{"masterauth": "grouppw", "masteruser": "repl"} {
			if got := c.run(t, "CONFIG GET "+name).Elems[1].Str; got != want {
				t.Errorf("from a server with the password %q: %s is %q, want %q", password, name, got, want)
			}
		}
	}
}

// The password of a move that was given up may not keep TO from the next one.
func TestAnAbandonedMoveDoesNotStopTheNext(t *testing.T) {
	locked, plain, to := startEbb(t, "requirepass secret"), startEbb(t), startEbb(t)
	fill(t, open(t, plain), 10, false)
	locked = strings.Replace(locked, "://", "://:secret@", 1)
	if said, err := step(t, Options{From: []string{locked}, To: to, Once: true}, (*Migration).Follow); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	open(t, to).run(t, "REPLICAOF NO ONE")
	open(t, to).run(t, "CONFIG SET tls-replication yes")
	if said, err := step(t, Options{From: []string{plain}, To: to}, (*Migration).Cutover); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	mustEqual(t, []string{plain}, to)
}
