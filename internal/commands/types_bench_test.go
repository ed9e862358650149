package commands_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
)

// BenchmarkTypes runs commands of all data types in pipelines of 32, in the same way as the server; ns/op is
// the cost of one command.
func BenchmarkTypes(b *testing.B) {
	hooks := &session.Hooks{}
	db := engine.Open(engine.Options{Hooks: hooks})
	defer db.Close()
	svc, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Loops: 1}, hooks)
	if err != nil {
		b.Fatal(err)
	}
	defer svc.Close()
	s := svc.NewSession(services.Quiet{})
	var buf []byte
	run := func(in string, out []byte) []byte {
		for rest := append(buf[:0], in...); len(rest) > 0; {
			used, more, v := s.Serve(rest, out)
			if out, rest = more, rest[used:]; v == reactor.Park {
				runtime.Gosched()
			}
		}
		return out
	}
	do := func(line string) []byte { return run(line+"\r\n", nil) }
	m := func(i int) string { return "member:" + strconv.Itoa(1000000+i) }
	for i := range 100000 {
		if i < 60 {
			do("RPUSH l " + strconv.Itoa(i*7919%1000))
			do("ZADD z60 " + strconv.Itoa(i*3) + " " + m(i))
		}
		if i < 100 {
			do("HSET h100 " + m(i) + " value" + strconv.Itoa(i))
			do("SADD s100 " + m(i))
		}
		if i < 1000 {
			do("ZADD a " + strconv.Itoa(i*7919) + " " + m(i))
			do("ZADD b " + strconv.Itoa(i*7919) + " " + m(i))
			do("HSET h1k " + m(i) + " value" + strconv.Itoa(i))
			do("RPUSH l1k " + m(i))
			do("XADD x1k * field value")
		}
		if i < 10000 {
			do("SADD s10k " + m(i))
			do("SADD t10k " + m(i+5000))
			do("PFADD pf0 " + m(i))
			do("PFADD pf1 " + m(i+5000))
		}
		do("XADD x " + strconv.Itoa(i+1) + "-1 f v")
		do("GEOADD geo " + strconv.FormatFloat(5+float64(i%1000)/50, 'f', 4, 64) + " " +
			strconv.FormatFloat(40+float64(i/1000)/10, 'f', 4, 64) + " " + m(i))
	}
	do("XGROUP CREATE x g 0")
	do("XREADGROUP GROUP g c COUNT 100000 STREAMS x >")
	do("PING")
	restore := func(key string) string {
		out := do("DUMP " + key)
		head := strings.IndexByte(string(out), '\n') + 1
		payload := out[head : len(out)-2]
		return "*5\r\n$7\r\nRESTORE\r\n$2\r\nzz\r\n$1\r\n0\r\n$" + strconv.Itoa(len(payload)) + "\r\n" + string(payload) + "\r\n$7\r\nREPLACE\r\n"
	}
	cmds := []string{"SORT l", "SORT l ALPHA", "SORT l STORE d", "SORT l BY w_* GET o_*", "DUMP z60", "RESTORE z60", "RESTORE h100",
		"RESTORE s100", "RESTORE a",
		"RESTORE h1k", "RESTORE l1k", "RESTORE x1k",
		"DUMP a", "DUMP h1k", "DUMP s100", "DUMP l1k", "DUMP x1k",
		"COPY h1k c REPLACE", "COPY a c REPLACE", "COPY s10k c REPLACE", "COPY l1k c REPLACE", "COPY x1k c REPLACE",
		"ZUNIONSTORE d 2 a b", "ZINTERSTORE d 2 a b", "HSCAN h1k 0", "SSCAN s10k 0", "ZSCAN a 0", "HRANDFIELD h100 10",
		"SRANDMEMBER s100 10", "LINDEX l1k 500",
		"LRANGE l1k 0 599", "LPOS l1k nosuch",
		"XACK x g 3-3", "PFMERGE pfd pf0 pf1", "GEOSEARCH geo FROMLONLAT 15 45 BYBOX 30 30 km",
		"GEOSEARCH geo FROMLONLAT 15 45 BYRADIUS 30 km ASC COUNT 10",
		"SINTER s10k t10k", "SUNION s10k t10k", "SINTERSTORE d s10k t10k", "SMEMBERS s10k"}
	if more := os.Getenv("BENCH"); more != "" {
		cmds = strings.Split(more, ";")
	}
	for _, cmd := range cmds {
		one := cmd + "\r\n"
		if key, ok := strings.CutPrefix(cmd, "RESTORE "); ok {
			one = restore(key)
		}
		in := strings.Repeat(one, 32)
		b.Run(strings.ReplaceAll(cmd, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			var out []byte
			for n := 0; n < b.N; n += 32 {
				out = run(in, out[:0])
			}
			if strings.HasPrefix(string(out), "-") {
				b.Fatal(string(out[:60]))
			}
		})
	}
}
