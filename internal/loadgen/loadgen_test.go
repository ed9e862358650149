package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/leaks"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestQuantilesAreWithinOnePercentAndNeverTooLow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h histogram
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(rng.Uint64() >> (27 + rng.UintN(37)))
		h.record(d, 1)
		all = append(all, d)
	}
	slices.Sort(all)
	var s Summary
	h.addTo(&s)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		rank := max(1, int(q*float64(len(all))))
		want, got := all[rank-1], s.Quantile(q)
		if got < want || float64(got) > float64(want)*(1+1.0/128)+1 {
			t.Errorf("quantile %v is %d, want %d", q, got, want)
		}
	}
	if s.N != 20_000 || s.Max != all[len(all)-1] || s.Quantile(1) != s.Max {
		t.Errorf("n %d, max %d, want %d", s.N, s.Max, all[len(all)-1])
	}
}

func TestEveryBucketHoldsItsUpperBoundAndNotTheNext(t *testing.T) {
	for b := range buckets {
		if got := bucketOf(upper(b)); got != b {
			t.Fatalf("upper(%d) = %d is in bucket %d", b, upper(b), got)
		}
		if got := bucketOf(upper(b) + 1); got != min(b+1, buckets-1) {
			t.Fatalf("upper(%d)+1 is in bucket %d", b, got)
		}
	}
}

func TestASummarySinceAnotherHasWhatCameBetween(t *testing.T) {
	var h histogram
	h.record(time.Millisecond, 5)
	var before, after Summary
	h.addTo(&before)
	h.record(time.Second, 3)
	h.addTo(&after)
	d := after.since(&before)
	if d.N != 3 || d.Mean() != time.Second || d.Quantile(0.01) != time.Second {
		t.Fatalf("%d, %v, %v", d.N, d.Mean(), d.Quantile(0.01))
	}
	d = after.since(&Summary{})
	if d.N != 8 {
		t.Fatal(d.N)
	}
}

func TestBatchesDifferInTheirNumbersOnly(t *testing.T) {
	r := Test{Args: []string{"SET", "__key__", "__data__", "__rand_int__:__rand_int__"}}.encode(3, 5)
	rng := rand.New(rand.NewPCG(1, 1))
	seen := map[string]bool{}
	for range 100 {
		buf := r.batch(3, rng, 1_000_000)
		in := bufio.NewReader(bytes.NewReader(buf))
		for range 3 {
			v, err := wire.ReadValue(in)
			if err != nil {
				t.Fatalf("%v in %q", err, buf)
			}
			args, _ := v.AsStrings()
			if !regexp.MustCompile(`^SET key:000000\d{6} xxxxx 000000\d{6}:000000\d{6}$`).MatchString(strings.Join(args, " ")) {
				t.Fatalf("%q", args)
			}
			seen[args[1]] = true
		}
	}
	if len(seen) < 290 {
		t.Fatalf("only %d different keys", len(seen))
	}
}

func TestEachReplyIsSkippedWhole(t *testing.T) {
	replies := []string{
		"+OK\r\n", ":1\r\n", "$-1\r\n", "$0\r\n\r\n", "$5\r\na\r\nbc\r\n", "*-1\r\n", "*0\r\n", "*2\r\n:1\r\n*1\r\n$1\r\nx\r\n",
		"%1\r\n+k\r\n*2\r\n_\r\n#t\r\n", "~1\r\n,1.5\r\n", "=7\r\ntxt:abc\r\n", "(123\r\n", "|1\r\n+k\r\n+v\r\n:7\r\n",
		">2\r\n+invalidate\r\n*0\r\n+OK\r\n",
	}
	r := bufio.NewReaderSize(strings.NewReader(strings.Join(replies, "")+"-ERR no\r\n"), 16)
	for _, reply := range replies {
		if msg, err := SkipReply(r); msg != "" || err != nil {
			t.Fatalf("%q: %q, %v", reply, msg, err)
		}
	}
	if msg, err := SkipReply(r); msg != "ERR no" || err != nil {
		t.Fatalf("%q, %v", msg, err)
	}
	for _, bad := range []string{"?\r\n\r\n", "$x\r\n", "\r\n"} {
		if _, err := SkipReply(bufio.NewReader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q is a reply", bad)
		}
	}
}

func TestARunSendsExactlyTheRequestsAskedFor(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	target := Target{Addr: addr}
	for _, c := range []Config{
		{Clients: 3, Pipeline: 7, Requests: 1000},
		{Clients: 1, Requests: 10},
		{Clients: 5, Requests: 3},
		{Clients: 4, Requests: 500, Rate: 50_000},
	} {
		c.Target = target
		var line bytes.Buffer
		c.Progress = &line
		if _, err := doOnce(target, "CONFIG", "RESETSTAT"); err != nil {
			t.Fatal(err)
		}
		res, err := Run(t.Context(), c, Test{Name: "get", Args: []string{"GET", "__key__"}})
		if err != nil {
			t.Fatal(err)
		}
		stats, err := doOnce(target, "INFO", "commandstats")
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("cmdstat_get:calls=%d,", c.Requests); !strings.Contains(stats.Str, want) {
			t.Errorf("%+v: want %s in %s", c, want, stats.Str)
		}
		if res.Requests != int64(c.Requests) || res.Errors != 0 || res.Latency.Max <= 0 || res.ServerCPU != -1 {
			t.Errorf("%+v: %d requests, %d errors, max %v", c, res.Requests, res.Errors, res.Latency.Max)
		}
	}
}

func doOnce(t Target, args ...string) (resp.Value, error) {
	c, err := t.client(context.Background())
	if err != nil {
		return resp.Value{}, err
	}
	defer c.conn.Close()
	return c.do(args...)
}

func TestErrorRepliesAreCountedNotFatal(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	res, err := Run(t.Context(), Config{Target: Target{Addr: addr}, Clients: 2, Pipeline: 3, Duration: 20 * time.Millisecond},
		Custom([]string{"nonsense"}))
	if err != nil || res.Errors == 0 || res.Errors != res.Requests || !strings.HasPrefix(res.FirstError, "ERR unknown command") {
		t.Fatalf("%+v, %v", res, err)
	}
}

func TestTheStandardTestsHaveNoErrors(t *testing.T) {
	addr := realserver.Start(t, "redis-server")
	tests, err := Tests(strings.Join(Names(), ","))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		res, err := Run(t.Context(), Config{Target: Target{Addr: addr}, Clients: 2, Pipeline: 5, Requests: 50}, test)
		if err != nil || res.Errors > 0 || res.Requests != 50 {
			t.Errorf("%s: %+v, %v", test.Name, res, err)
		}
	}
	if _, err := Tests("get,nonsense"); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Error(err)
	}
}

// A server that answers nothing until it has seen all requests owes each of
// them the time since it was due.
func TestOpenLoopLatencyCountsFromWhenARequestWasDue(t *testing.T) {
	const n, rate = 50, 1000
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		in := bufio.NewReader(c)
		for range n {
			if _, err := wire.ReadValue(in); err != nil {
				return
			}
		}
		c.Write([]byte(strings.Repeat("+PONG\r\n", n)))
	}()
	res, err := Run(t.Context(), Config{Target: Target{Addr: l.Addr().String()}, Clients: 1, Requests: n, Rate: rate},
		Test{Name: "ping", Args: []string{"PING"}})
	l.Close()
	<-done
	if err != nil || res.Requests != n {
		t.Fatalf("%+v, %v", res, err)
	}
	// The last is due 49 ms behind the first, the median 24 ms before the last.
	if res.Latency.Max < 49*time.Millisecond || res.Latency.Quantile(0.5) < 24*time.Millisecond {
		t.Fatalf("max %v, median %v", res.Latency.Max, res.Latency.Quantile(0.5))
	}
}

func TestARunEndsWithItsContextAndWithItsConnection(t *testing.T) {
	for _, rate := range []float64{0, 1000} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			silent, err := l.Accept()
			if err != nil {
				return
			}
			silent.Read(make([]byte, 1)) // a request has come: that will do
			cancel()
			silent.Read(make([]byte, 1))
			silent.Close()
			if c, err := l.Accept(); err == nil { // the second run loses its connection
				c.Read(make([]byte, 1))
				c.Close()
			}
		}()
		cfg := Config{Target: Target{Addr: l.Addr().String()}, Clients: 1, Requests: 1_000_000, Rate: rate}
		test := Test{Name: "ping", Args: []string{"PING"}}
		if _, err := Run(ctx, cfg, test); err != context.Canceled {
			t.Errorf("rate %v, cancelled: %v", rate, err)
		}
		if _, err := Run(context.Background(), cfg, test); err == nil {
			t.Errorf("rate %v: a lost connection is not an error", rate)
		}
		l.Close()
		<-done
	}
}

func TestStormReportsLatencyAndReclaiming(t *testing.T) {
	addr := realserver.Start(t, "redis-server", "--hz", "100")
	var out, line bytes.Buffer
	cfg := StormConfig{
		Common: Common{Target: Target{Addr: addr}, Out: &out, Progress: &line}, Items: 401, Rate: 1000,
		Lead: 600 * time.Millisecond, Before: 100 * time.Millisecond, During: 50 * time.Millisecond, After: 50 * time.Millisecond,
	}
	if err := Storm(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	want := `^loaded 401 keys in \d+\.\ds; \d+\.\ds to the deadline; rss 0 MiB; dbsize 402
before  n=\d+ +p50=\S+ +p99=\S+ +p99\.9=\S+ +max=\S+
during  n=\d+ +p50=\S+ +p99=\S+ +p99\.9=\S+ +max=\S+
after   n=\d+ +p50=\S+ +p99=\S+ +p99\.9=\S+ +max=\S+
half gone after \S+, all gone after \S+; server cpu 0\.00s in \S+; rss 0 MiB
$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Fatalf("%s", out.String())
	}
	if !strings.Contains(line.String(), "storm: ") {
		t.Errorf("no progress in %q", line.String())
	}
	if err := Storm(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "--flush") {
		t.Fatalf("a server with keys: %v", err)
	}
}

func TestPromptCountsEventsAndRestoresTheConfiguration(t *testing.T) {
	addr := realserver.Start(t, "redis-server", "--hz", "100", "--notify-keyspace-events", "Kg")
	var out bytes.Buffer
	cfg := PromptConfig{Common: Common{Target: Target{Addr: addr}, Out: &out},
		Background: 10, Probes: 20, Lead: 50 * time.Millisecond, Wait: 20 * time.Second}
	if err := Prompt(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^bg=10 delivered=20/20 within 20s lag p50=\S+ p99=\S+ max=\S+\n$`).MatchString(out.String()) {
		t.Fatalf("%s", out.String())
	}
	v, err := doOnce(cfg.Target, "CONFIG", "GET", "notify-keyspace-events")
	if err != nil || len(v.Elems) != 2 || v.Elems[1].Str != "gK" {
		t.Fatalf("%v, %v", v, err)
	}
}

func TestReportsAgree(t *testing.T) {
	var h histogram
	h.record(time.Millisecond, 99)
	h.record(20*time.Millisecond, 1)
	r := Result{Name: "get", Requests: 100, Errors: 1, FirstError: "ERR no", Elapsed: 10 * time.Millisecond, ServerCPU: 250 * time.Microsecond}
	h.addTo(&r.Latency)
	var table, csv, js bytes.Buffer
	for _, rep := range []Report{NewTable(&table), NewCSV(&csv), NewJSON(&js)} {
		rep.Row(r)
		if err := rep.End(); err != nil {
			t.Fatal(err)
		}
	}
	wantTable := `test              requests       op/s   avg ms      p50      p90      p99    p99.9      max cpu us/op
get                    100     10,000    1.190    1.004    1.004    1.004   20.000   20.000      2.50
                         1 errors, the first: ERR no
`
	if table.String() != wantTable {
		t.Errorf("\n%s\nwant\n%s", table.String(), wantTable)
	}
	wantCSV := `"test","requests","errors","seconds","rps","avg_ms","p50_ms","p90_ms","p99_ms","p99.9_ms","max_ms","cpu_us_per_op"
"get",100,1,0.010,10000.00,1.190,1.004,1.004,1.004,20.000,20.000,2.50
`
	if csv.String() != wantCSV {
		t.Errorf("\n%s\nwant\n%s", csv.String(), wantCSV)
	}
	var rows []map[string]any
	if err := json.Unmarshal(js.Bytes(), &rows); err != nil || len(rows) != 1 || rows[0]["rps"] != 10000.0 || rows[0]["cpu_us_per_op"] != 2.5 {
		t.Errorf("%s, %v", js.String(), err)
	}
}
