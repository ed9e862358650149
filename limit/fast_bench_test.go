package limit

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// scriptServer is a connection to redis-server for pipelines.
type scriptServer struct {
	b    *testing.B
	conn net.Conn
	in   *bufio.Reader
}

func (s *scriptServer) do(words ...string) conn.Value {
	s.b.Helper()
	return s.send(wire.AppendCommand(nil, words...), 1)
}

// send sends n requests, and returns the last reply.
func (s *scriptServer) send(requests []byte, n int) (v conn.Value) {
	s.b.Helper()
	_, err := s.conn.Write(requests)
	for i := 0; i < n && err == nil; i++ {
		if v, err = wire.ReadValue(s.in); err == nil {
			err = v.Err()
		}
	}
	if err != nil {
		s.b.Fatal(err)
	}
	return v
}

// cpu returns the server's CPU time in us.
func (s *scriptServer) cpu() (us float64) {
	for line := range strings.Lines(s.do("INFO", "cpu").String()) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name == "used_cpu_user" || name == "used_cpu_sys" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				s.b.Fatal(line, err)
			}
			us += seconds * 1e6
		}
	}
	return us
}

// BenchmarkScripts compares the server's CPU time of the short scripts with that of the whole scripts that
// they stand for.
func BenchmarkScripts(b *testing.B) {
	addr := realserver.Start(b, realserver.Redis7)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	s := &scriptServer{b, nc, bufio.NewReader(nc)}
	c, err := ebb.Open(b.Context(), "mem://")
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	for _, x := range []struct {
		name string
		rate Rate
		algo Algorithm
	}{{"us", PerSecond(1_000_000), GCRA}, {"fraction", PerSecond(1_000_003), GCRA}, {"fixed", PerSecond(60_000_000), FixedWindow}} {
		l, err := New(c, x.name, x.rate, FailClosed, Options{Algorithm: x.algo})
		if err != nil {
			b.Fatal(err)
		}
		p := l.plan.Load()
		for _, y := range []struct {
			name   string
			script *conn.Script
			keys   []string
			args   []any
		}{
			{"short", p.fast, []string{x.name}, p.fastArgs(1)},
			{"whole", byAlgorithm[p.algo].take, keys(x.name + ":whole"), append(p.script[:4:4], 1, modeNames[modeTake])},
		} {
			words := append([]string{"EVALSHA", s.do("SCRIPT", "LOAD", y.script.Text()).String(), strconv.Itoa(len(y.keys))}, y.keys...)
			for _, a := range y.args {
				words = append(words, fmt.Sprint(a))
			}
			const batch = 32
			requests := []byte(strings.Repeat(string(wire.AppendCommand(nil, words...)), batch))
			b.Run(x.name+"/"+y.name, func(b *testing.B) {
				s.b = b
				before, n := s.cpu(), 0
				for b.Loop() {
					s.send(requests, batch)
					n += batch
				}
				b.ReportMetric((s.cpu()-before)/float64(n), "server-us/call")
			})
		}
	}
}
