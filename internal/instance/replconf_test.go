package instance

import (
	"strings"
	"testing"
)

// Other clients see a replica's REPLCONF options. No value may add a line to INFO or replace a number by text.
func TestWhatAReplicaSaysOfItselfIsChecked(t *testing.T) {
	in := startMaster(t)
	c := connect(t, in.Addrs()[0].String())
	for _, words := range [][]string{
		{"ip-address", "1.2.3.4\r\nrole:slave"}, {"ip-address", "a,port=1"}, {"ip-address", "x y"},
		{"ip-address", "\x1b[2J"}, {"ip-address", "ä"}, {"listening-port", "-1"}, {"listening-port", "65536"}, {"listening-port", "x"},
		{"listening-port", "9223372036854775807"},
	} {
		if v := c.ask(append([]string{"REPLCONF"}, words...)...); v.Err() == nil {
			t.Errorf("%q: %v", words, v)
		}
	}
	for _, ip := range []string{"10.0.0.1", "::1", "fe80::1%eth0", "replica-1.example_x.com", ""} {
		if v := c.ask("REPLCONF", "ip-address", ip); v.Str != "OK" {
			t.Errorf("%q: %v", ip, v)
		}
	}
	if info := c.ask("INFO", "everything").Str; strings.Contains(info, "role:slave") {
		t.Error("a replica wrote a line of INFO")
	}
}

// Valkey 9 aborts a synchronisation at a hash with deadlines of fields, unless the replica has announced that
// version.
func TestAReplicaSaysItsVersion(t *testing.T) {
	s := newScripted(t, full(50, snapshot(t, "new"), ""))
	linked(t, replicaOfScripted(t, s))
	if _, ok := s.said.Load("replconf version 9.0.0"); !ok {
		t.Error("the replica does not say its version")
	}
}
