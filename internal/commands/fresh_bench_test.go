package commands_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// BenchmarkGetFresh runs GET and GETFRESH of a value of 100 bytes in pipelines of 32, as BenchmarkTypes does; ns/op is the cost of one
// command.
func BenchmarkGetFresh(b *testing.B) {
	_, s := freshBench(b)
	value := strings.Repeat("x", 100)
	out := services.ServeAll(b, s, "SET plain "+value+" EX 3600\r\nSET fresh "+value+" EX 3600 FRESH 3000\r\n", nil)
	for _, cmd := range []string{"GET plain", "GET fresh", "GETFRESH plain", "GETFRESH fresh", "GETFRESH fresh LEASE 5000"} {
		in := strings.Repeat(cmd+"\r\n", 32)
		b.Run(strings.ReplaceAll(cmd, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				out = services.ServeAll(b, s, in, out[:0])
				n += 32
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/command")
		})
	}
}

// BenchmarkRefresh elects a client for a stale value of 100 bytes under a key of 8 bytes, and has the client
// store the next value. bytes/refresh is the number of bytes that the two commands add to the log.
func BenchmarkRefresh(b *testing.B) {
	db, s := freshBench(b)
	db.NeedLog(1)
	set := "SET page:home " + strings.Repeat("x", 100) + " EX 3600 FRESH 3000"
	out := services.ServeAll(b, s, set+"\r\n", nil)
	logged, n := int64(0), 0
	for b.Loop() {
		out = services.ServeAll(b, s, "STALE page:home\r\n", out[:0])
		from := db.Log().End()
		out = services.ServeAll(b, s, "GETFRESH page:home LEASE 5000\r\n", out[:0])
		lines := strings.Split(string(out), "\r\n")
		if len(lines) < 6 || lines[2] != "refresh" || lines[5][0] != ':' {
			b.Fatalf("%q", out)
		}
		out = services.ServeAll(b, s, fmt.Sprintf("%s IFTOKEN %s\r\n", set, lines[5][1:]), out[:0])
		if string(out) != "+OK\r\n" {
			b.Fatalf("%q", out)
		}
		logged, n = logged+db.Log().End()-from, n+1
	}
	b.ReportMetric(float64(logged)/float64(n), "bytes/refresh")
}

// freshBench returns an engine and one of its clients.
func freshBench(b *testing.B) (*engine.DB, *session.Session) {
	hooks := &session.Hooks{}
	db := engine.Open(engine.Options{Hooks: hooks})
	b.Cleanup(func() { db.Close() })
	svc, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Loops: 1}, hooks)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { svc.Close() })
	return db, svc.NewSession(services.Quiet{})
}

// BenchmarkMoveAHundred moves a hundred jobs from a queue's list to a worker's and back, as a prefetch of kombu or RQ would: by LMOVE,
// which moves one, and by LMOVEM.
func BenchmarkMoveAHundred(b *testing.B) {
	const jobs = 100
	_, s := freshBench(b)
	out := services.ServeAll(b, s, "RPUSH queue"+strings.Repeat(" "+strings.Repeat("x", 100), jobs)+"\r\n", nil)
	for _, way := range []struct {
		name     string
		commands int
		in       string
	}{
		{"LMOVE", jobs, strings.Repeat("LMOVE queue worker LEFT RIGHT\r\n", jobs) + strings.Repeat("LMOVE worker queue LEFT RIGHT\r\n", jobs)},
		{"LMOVEM", 1, "LMOVEM queue worker LEFT RIGHT COUNT 100 BULK\r\nLMOVEM worker queue LEFT RIGHT COUNT 100 BULK\r\n"},
	} {
		b.Run(way.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				out = services.ServeAll(b, s, way.in, out[:0])
				n += 2 * jobs
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/job")
			b.ReportMetric(float64(way.commands)/jobs, "commands/job")
		})
	}
}
