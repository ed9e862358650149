package session

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/wire"
)

// pipelined returns a session of a loop on an engine of some shards, 0 for the default.
func pipelined(tb testing.TB, shards int) *Session {
	hooks := &Hooks{}
	db := engine.Open(engine.Options{Hooks: hooks, Shards: shards})
	tb.Cleanup(db.Close)
	svc, err := NewService(Options{DB: db, Table: testTable, Loops: 1}, hooks)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(svc.Close)
	s := svc.NewSession(quietConn{})
	tb.Cleanup(func() { s.Closed(nil) })
	return s
}

func keyNumbered(i int) string { return fmt.Sprintf("key:%012d", i) }

// fill sets the first n keys, with values of 32 bytes.
func fill(tb testing.TB, s *Session, n int) {
	var in, out []byte
	for i := range n {
		in = wire.AppendCommand(in, "SET", keyNumbered(i), "a value of thirty-two characters")
		if i%1000 == 999 || i == n-1 {
			used, replies, _ := s.Serve(in, out[:0])
			if used != len(in) || !bytes.HasSuffix(replies, []byte("+OK\r\n")) {
				tb.Fatalf("%d of %d bytes, %.60q", used, len(in), replies)
			}
			in, out = in[:0], replies
		}
	}
}

func TestAPipelineReadsAheadInALargeKeyspace(t *testing.T) {
	s := pipelined(t, 1)
	gets := func(from, n int) (in []byte) {
		for i := range n {
			in = wire.AppendCommand(in, "GET", keyNumbered(from+i))
		}
		return in
	}
	s.Serve(gets(0, 1), nil)
	if s.noAhead != 0 {
		t.Error("it reads ahead for a request alone")
	}
	s.Serve(gets(0, 2), nil)
	if s.noAhead != aheadPause {
		t.Error("a pipeline in a small keyspace reads ahead again and again")
	}
	fill(t, s, 30_000)
	for range 2 * aheadPause {
		s.Serve(gets(0, 2), nil)
	}
	if s.noAhead != 0 {
		t.Error("a pipeline does not notice that the keyspace has become large")
	}
	in := gets(0, 3*engine.AheadMost)
	if got, want := s.readAhead(in), len(gets(0, engine.AheadMost)); got != want {
		t.Errorf("it reads ahead for %d bytes, want %d", got, want)
	}
	mixed := fmt.Appendf(gets(0, 2), "GET %s\r\n", keyNumbered(2)) // the last one is inline
	if got, want := s.readAhead(mixed), len(gets(0, 2)); got != want {
		t.Errorf("it reads ahead for %d bytes, want %d", got, want)
	}
	s.Serve(bytes.Repeat(wire.AppendCommand(nil, "PING"), 2), nil)
	if s.noAhead != aheadPause {
		t.Error("a pipeline without keys reads ahead again and again")
	}
	s.noAhead = 0
	var out []byte
	if n := testing.AllocsPerRun(100, func() { _, out, _ = s.Serve(in, out[:0]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
	value := []byte("$32\r\na value of thirty-two characters\r\n")
	if want := bytes.Repeat(value, 3*engine.AheadMost); !bytes.Equal(out, want) {
		t.Errorf("%d bytes of replies, want %d", len(out), len(want))
	}
}

// BenchmarkPipeline runs GETs, and SETs of existing keys, with random keys, as the server would: ns/op is the
// cost of one command. "plain" does not read ahead.
func BenchmarkPipeline(b *testing.B) {
	for _, keys := range []int{1_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			s := pipelined(b, 0)
			fill(b, s, keys)
			for _, command := range []string{"GET", "SET"} {
				for _, depth := range []int{1, 2, 4, 32, 128} {
					for _, pause := range []uint8{0, 255} {
						b.Run(fmt.Sprintf("%s/depth=%d/%s", command, depth, map[uint8]string{0: "ahead", 255: "plain"}[pause]), func(b *testing.B) {
							benchmarkPipeline(b, s, command, keys, depth, pause)
						})
					}
				}
			}
		})
	}
}

func benchmarkPipeline(b *testing.B, s *Session, command string, keys, depth int, pause uint8) {
	words := []string{command, keyNumbered(0)}
	if command == "SET" {
		words = append(words, "another one of thirty-two bytes.")
	}
	one := wire.AppendCommand(nil, words...)
	in := bytes.Repeat(one, depth)
	digits := bytes.Index(one, []byte("key:")) + len("key:0000")
	var out []byte
	x := uint64(1)
	b.ReportAllocs()
	b.ResetTimer()
	s.noAhead = 0
	for n := 0; n < b.N; n += depth {
		for at := digits; at < len(in); at += len(one) {
			x = x*6364136223846793005 + 1442695040888963407
			i := uint32(x >> 32 * uint64(keys) >> 32)
			for d := 7; d >= 0; d-- {
				in[at+d] = byte('0' + i%10)
				i /= 10
			}
		}
		if pause > 0 {
			s.noAhead = pause
		}
		_, out, _ = s.Serve(in, out[:0])
	}
	if len(out) < depth || out[0] != '$' && out[0] != '+' {
		b.Fatalf("%.60q", out)
	}
}
