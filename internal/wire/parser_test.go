package wire

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// parseAll feeds data to p in pieces that end at cuts, each time in a fresh
// buffer that holds only what is unconsumed, as a connection would.
func parseAll(t testing.TB, p *Parser, data []byte, cuts []int) (requests [][]string, err error) {
	t.Helper()
	base := 0
	for _, end := range append(slices.Clone(cuts), len(data)) {
		if end < base {
			continue
		}
		buf := bytes.Clone(data[base:end])
		before := bytes.Clone(buf)
		for {
			args, n, err := p.Next(buf)
			if n < 0 || n > len(buf) {
				t.Fatalf("consumed %d of %d bytes", n, len(buf))
			}
			if err != nil {
				return requests, err
			}
			if n == 0 {
				break
			}
			words := make([]string, len(args))
			for i, a := range args {
				words[i] = string(a)
			}
			requests = append(requests, words)
			if !bytes.Equal(buf, before) {
				t.Fatalf("the input was changed")
			}
			buf, before = buf[n:], before[n:]
			base += n
		}
		if want := p.Want(); want > 0 && want <= len(buf) {
			t.Fatalf("Want() = %d with %d bytes at hand", want, len(buf))
		}
	}
	return requests, nil
}

// Expectations in this table were observed on redis-server 7.0.15 through a
// raw socket.
var requestTests = []struct {
	name string
	in   string
	want [][]string
	err  string
}{
	{"array", "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", [][]string{{"GET", "k"}}, ""},
	{"pipeline", "*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n", [][]string{{"PING"}, {"QUIT"}}, ""},
	{"binary argument", "*1\r\n$6\r\n\r\n*\x00$\xff\r\n", [][]string{{"\r\n*\x00$\xff"}}, ""},
	{"empty argument", "*1\r\n$0\r\n\r\n", [][]string{{""}}, ""},
	{"empty array", "*0\r\nPING\r\n", [][]string{{}, {"PING"}}, ""},
	{"null array", "*-1\r\nPING\r\n", [][]string{{}, {"PING"}}, ""},
	{"negative array", "*-9223372036854775808\r\nPING\r\n", [][]string{{}, {"PING"}}, ""},
	{"byte after CR is not read", "*1\rX$4\rXPINGXX", [][]string{{"PING"}}, ""},
	{"bytes after an argument are not read", "*1\r\n$4\r\nPINGxy", [][]string{{"PING"}}, ""},

	{"no count", "*\r\n", nil, "invalid multibulk length"},
	{"count is text", "*a\r\n", nil, "invalid multibulk length"},
	{"count with leading zero", "*01\r\n$4\r\nPING\r\n", nil, "invalid multibulk length"},
	{"count with plus", "*+1\r\n$4\r\nPING\r\n", nil, "invalid multibulk length"},
	{"count with space", "* 1\r\n$4\r\nPING\r\n", nil, "invalid multibulk length"},
	{"negative zero", "*-0\r\n", nil, "invalid multibulk length"},
	{"count beyond 64 bits", "*9223372036854775808\r\n", nil, "invalid multibulk length"},
	{"count beyond the limit", "*2147483648\r\n", nil, "invalid multibulk length"},
	{"LF alone does not end a header", "*1\n$4\nPING\n\r\n", nil, "invalid multibulk length"},
	{"no dollar", "*1\r\nPING\r\n", nil, "expected '$', got 'P'"},
	{"no dollar in the second request", "*1\r\n$4\r\nPING\r\n*1\r\nX\r\n", [][]string{{"PING"}}, "expected '$', got 'X'"},
	{"empty header", "*1\r\n\r\n", nil, "expected '$', got '\r'"},
	{"high byte for a dollar", "*1\r\n\xff\r\n", nil, "expected '$', got '\xff'"},
	{"length is negative", "*1\r\n$-1\r\n", nil, "invalid bulk length"},
	{"length is text", "*1\r\n$a\r\n", nil, "invalid bulk length"},
	{"no length", "*1\r\n$\r\n", nil, "invalid bulk length"},
	{"length with leading zero", "*1\r\n$04\r\nPING\r\n", nil, "invalid bulk length"},
	{"length beyond the limit", "*1\r\n$536870913\r\n", nil, "invalid bulk length"},
	{"endless count", "*" + strings.Repeat("1", 65537), nil, "too big mbulk count string"},
	{"long count is only wrong", "*" + strings.Repeat("1", 65535) + "\r\n", nil, "invalid multibulk length"},
	{"endless length", "*1\r\n$" + strings.Repeat("1", 65537), nil, "too big bulk count string"},
	{"endless garbage for a length", "*1\r\n" + strings.Repeat("A", 65537), nil, "too big bulk count string"},

	{"inline", "SET k v\r\n", [][]string{{"SET", "k", "v"}}, ""},
	{"inline with LF", "PING\n", [][]string{{"PING"}}, ""},
	{"blank lines", "\r\n\n  \r\nPING\r\n", [][]string{{}, {}, {}, {"PING"}}, ""},
	{"white space", "\tPING\t\ta\x0bb \r\n", [][]string{{"PING", "a\x0bb"}}, ""},
	{"CR separates", "PING a\rb\r\n", [][]string{{"PING", "a", "b"}}, ""},
	{"double quotes", `PING "\x41\n\t\b\a\r\q\xzz"` + "\r\n", [][]string{{"PING", "A\n\t\b\a\rqxzz"}}, ""},
	{"single quotes", `PING 'a\'b\n'` + "\r\n", [][]string{{"PING", `a'b\n`}}, ""},
	{"empty quotes", `PING "" ''` + "\r\n", [][]string{{"PING", "", ""}}, ""},
	{"quotes inside a word", `PING a"b c"` + "\r\n", [][]string{{"PING", "ab c"}}, ""},
	{"several quoted words", `"a" b 'c' d"e"` + "\r\n", [][]string{{"a", "b", "c", "de"}}, ""},
	{"text behind a quote", `PING "a"b` + "\r\n", nil, "unbalanced quotes in request"},
	{"open double quote", `PING "a` + "\r\n", nil, "unbalanced quotes in request"},
	{"open single quote", `PING 'a` + "\r\n", nil, "unbalanced quotes in request"},
	{"escaped quote at the end", `PING "a\"` + "\r\n", nil, "unbalanced quotes in request"},
	{"longest inline", strings.Repeat("A", 65536) + "\n", [][]string{{strings.Repeat("A", 65536)}}, ""},
	{"endless inline", strings.Repeat("A", 65537), nil, "too big inline request"},
}

func TestParserReadsWhatRedisReads(t *testing.T) {
	for _, tt := range requestTests {
		t.Run(tt.name, func(t *testing.T) {
			var all []int
			if len(tt.in) < 1000 {
				for i := range len(tt.in) {
					all = append(all, i)
				}
			}
			for _, cuts := range [][]int{nil, {1}, {len(tt.in) / 2}, {len(tt.in) - 1}, all} {
				var p Parser
				got, err := parseAll(t, &p, []byte(tt.in), cuts)
				checkError(t, err, tt.err)
				if !slices.EqualFunc(got, tt.want, slices.Equal) {
					t.Errorf("cut at %v: %.200q, want %.200q", cuts, got, tt.want)
				}
			}
		})
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("error %v", err)
		}
		return
	}
	var protocol ProtocolError
	if !errors.As(err, &protocol) || err.Error() != "Protocol error: "+want {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestParserKeepsItsLimits(t *testing.T) {
	tests := []struct {
		name   string
		limits Limits
		in     string
		err    string
	}{
		{"arguments at the limit", Limits{MaxArgs: 2}, "*2\r\n", ""},
		{"arguments beyond", Limits{MaxArgs: 2}, "*3\r\n", "invalid multibulk length"},
		{"default arguments at the limit", Limits{}, "*1048576\r\n", ""},
		{"default arguments beyond", Limits{}, "*1048577\r\n", "invalid multibulk length"},
		{"bulk at the limit", Limits{MaxBulk: 1000}, "*1\r\n$1000\r\n", ""},
		{"bulk beyond", Limits{MaxBulk: 1000}, "*1\r\n$1001\r\n", "invalid bulk length"},
		{"bulk beyond, complete", Limits{MaxBulk: 1}, "*1\r\n$2\r\nab\r\n", "invalid bulk length"},
		{"inline beyond", Limits{MaxInline: 4}, "PING \r\n", "too big inline request"},
		{"before login, ten arguments", Limits{Unauthenticated: true}, "*10\r\n", ""},
		{"before login, eleven", Limits{Unauthenticated: true}, "*11\r\n", "unauthenticated multibulk length"},
		{"before login, 16 KiB", Limits{Unauthenticated: true}, "*1\r\n$16384\r\n", ""},
		{"before login, more", Limits{Unauthenticated: true}, "*1\r\n$16385\r\n", "unauthenticated bulk length"},
		{"before login, far too many", Limits{Unauthenticated: true}, "*2147483648\r\n", "invalid multibulk length"},
		{"before login, complete", Limits{Unauthenticated: true}, "*11\r\n" + strings.Repeat("$1\r\na\r\n", 11),
			"unauthenticated multibulk length"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := Parser{Limits: tt.limits}
			_, err := parseAll(t, &p, []byte(tt.in), nil)
			checkError(t, err, tt.err)
		})
	}
}

func TestWantTellsHowMuchIsMissing(t *testing.T) {
	tests := []struct {
		in   string
		want int
	}{
		{"", 0},
		{"*", 0},
		{"PIN", 0},
		{"*2\r\n", 4 + 2*6},
		{"*2\r\n$100\r\n", 10 + 102 + 6},
		{"*2\r\n$3\r\nGET\r\n$1000", 18 + 2},
		{"*2\r\n$3\r\nGET\r\n$1000\r\nabc", 20 + 1002},
		{"*1\r\n$4\r\nPING\r\n", 0},
	}
	for _, tt := range tests {
		var p Parser
		if _, _, err := p.Next([]byte(tt.in)); err != nil {
			t.Fatal(err)
		}
		if got := p.Want(); got != tt.want {
			t.Errorf("%q: Want() = %d, want %d", tt.in, got, tt.want)
		}
	}
}

func TestADeclaredCountReservesNothing(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	parsers := make([]Parser, 100)
	for i := range parsers {
		if _, n, err := parsers[i].Next([]byte("*1048576\r\n$1\r\na\r\n")); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("100 requests of a million declared arguments allocated %d bytes", grown)
	}
}

func TestAMillionArguments(t *testing.T) {
	const n = 1 << 20
	data := append(fmt.Appendf(nil, "*%d\r\n", n), bytes.Repeat([]byte("$1\r\na\r\n"), n)...)
	var p Parser
	for end := 1000; end < len(data); end += 200_000 {
		if _, n, err := p.Next(data[:end]); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	args, used, err := p.Next(data)
	if len(args) != n || used != len(data) || err != nil {
		t.Fatal(len(args), used, err)
	}
	p.Next([]byte("PING\r\n"))
	if cap(p.args) > keepArgs {
		t.Errorf("%d argument slots are kept", cap(p.args))
	}
}

func TestArgumentsCannotGrowIntoEachOther(t *testing.T) {
	for _, in := range []string{"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "a b\r\n", "'a' 'b'\r\n"} {
		var p Parser
		args, _, _ := p.Next([]byte(in))
		_ = append(args[0], "XXXXXXX"...)
		if string(args[1]) != "b" {
			t.Errorf("%q: an append to the first argument changed the second: %q", in, args[1])
		}
	}
}

func TestParserAllocatesNothing(t *testing.T) {
	whole := []byte("*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n")
	inline := []byte("SET 'key' value\r\n")
	var p Parser
	allocs := testing.AllocsPerRun(100, func() {
		p.Next(whole)
		p.Next(whole[:20])
		p.Next(whole)
		p.Next(inline)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestResetForgetsAPartialRequest(t *testing.T) {
	var p Parser
	p.Next([]byte("*2\r\n$3\r\nGE"))
	p.Reset()
	args, _, err := p.Next([]byte("PING\r\n"))
	if len(args) != 1 || err != nil {
		t.Errorf("%q, %v", args, err)
	}
}

func FuzzParserSplits(f *testing.F) {
	for _, tt := range requestTests {
		if len(tt.in) < 1000 {
			f.Add([]byte(tt.in), uint16(1), uint16(5))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, first, second uint16) {
		limits := Limits{MaxInline: 64, MaxArgs: 1000, MaxBulk: 1000}
		one := Parser{Limits: limits}
		want, wantErr := parseAll(t, &one, data, nil)
		var bytewise []int
		for i := range data {
			bytewise = append(bytewise, i)
		}
		a, b := int(first)%(len(data)+1), int(second)%(len(data)+1)
		for _, cuts := range [][]int{{min(a, b), max(a, b)}, bytewise} {
			cut := Parser{Limits: limits}
			got, err := parseAll(t, &cut, data, cuts)
			if !slices.EqualFunc(got, want, slices.Equal) {
				t.Fatalf("cut at %v: %q, in one piece %q", cuts, got, want)
			}
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("cut at %v: error %v, in one piece %v", cuts, err, wantErr)
			}
		}
	})
}

func BenchmarkParser(b *testing.B) {
	set := "*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000001\r\n$32\r\n" + strings.Repeat("x", 32) + "\r\n"
	get := "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000001\r\n"
	for _, bb := range []struct{ name, request string }{{"SET", set}, {"GET", get}, {"inline", "GET key:000000000001\r\n"}} {
		b.Run(bb.name, func(b *testing.B) {
			batch := bytes.Repeat([]byte(bb.request), 32)
			var p Parser
			b.ReportAllocs()
			b.SetBytes(int64(len(bb.request)))
			for rest := batch; b.Loop(); {
				_, n, err := p.Next(rest)
				if err != nil || n == 0 {
					b.Fatal(n, err)
				}
				if rest = rest[n:]; len(rest) == 0 {
					rest = batch
				}
			}
		})
	}
}
