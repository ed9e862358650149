package session

import (
	"runtime"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/reactor"
)

// BenchmarkExec runs MULTI, ten commands and EXEC: for the default user, for a user with limited keys, and on
// a cluster of one node. ns/op is the cost of all twelve.
func BenchmarkExec(b *testing.B) {
	for _, x := range []struct{ name, before, directive string }{
		{name: "default"},
		{name: "limited", before: "ACL SETUSER u on >p ~{k}* +@all\r\nAUTH u p\r\n"},
		{name: "cluster", directive: "yes"},
	} {
		b.Run(x.name, func(b *testing.B) {
			hooks := &Hooks{}
			db := engine.Open(engine.Options{Hooks: hooks})
			defer db.Close()
			svc, err := NewService(Options{DB: db, Table: testTable, Loops: 1}, hooks)
			if err != nil {
				b.Fatal(err)
			}
			defer svc.Close()
			svc.cluster = x.directive == "yes"
			s := svc.NewSession(quietConn{})
			out := serveAll(b, s, x.before, nil)
			in := "MULTI\r\n" + strings.Repeat("SET {k}1 v\r\nMGET {k}1 {k}2 {k}3 {k}4\r\n", 5) + "EXEC\r\n"
			if got := string(serveAll(b, s, in, out[:0])); !strings.Contains(got, "*10\r\n+OK") {
				b.Fatalf("%q", got)
			}
			b.ReportAllocs()
			for b.Loop() {
				out = serveAll(b, s, in, out[:0])
			}
		})
	}
}

func serveAll(b *testing.B, s *Session, in string, out []byte) []byte {
	for rest := []byte(in); len(rest) > 0; {
		used, more, v := s.Serve(rest, out)
		if v == reactor.Park { // another goroutine must run
			runtime.Gosched()
		} else if used == 0 {
			b.Fatalf("%q stays", rest)
		}
		out, rest = more, rest[used:]
	}
	return out
}
