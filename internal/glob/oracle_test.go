package glob

import (
	"bufio"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// naive is the definition: it tries every length for every star. It is
// exponential in the number of stars.
func naive(p, s string, caseBit byte) bool {
	switch {
	case p == "":
		return s == ""
	case p[0] == '*':
		return naive(p[1:], s, caseBit) || s != "" && naive(p, s[1:], caseBit)
	case s == "":
		return false
	}
	n := one(p, 0, s[0], caseBit)
	return n > 0 && naive(p[n:], s[1:], caseBit)
}

func FuzzMatchIsTheNaiveDefinition(f *testing.F) {
	for _, p := range []string{"a*b*c", "[a-", "[^]]*", `\`, "[z-a]?*", `[\]-a]`, "***", "[]a]", "[a-b-c]", `[\`} {
		f.Add(p, "abcab]c-")
	}
	f.Fuzz(func(t *testing.T, p, s string) {
		if strings.Count(p, "*") > 6 || len(s) > 24 {
			return
		}
		if Match(p, s) != naive(p, s, 0) {
			t.Errorf("Match(%q, %q) = %v", p, s, !naive(p, s, 0))
		}
		if MatchFold(p, s) != naive(p, s, 0x20) {
			t.Errorf("MatchFold(%q, %q) = %v", p, s, !naive(p, s, 0x20))
		}
	})
}

func TestManyStarsCostNoMoreThanTheProductOfTheLengths(t *testing.T) {
	p, s := strings.Repeat("a*", 1000)+"b", strings.Repeat("a", 20000)
	if Match(p, s) {
		t.Error("there is no b")
	}
}

func TestMatchingAllocatesNothing(t *testing.T) {
	p, s := []byte("h[a-e]l*o?"), []byte("hello world!")
	if n := testing.AllocsPerRun(100, func() { Match(p, s); MatchFold(p, s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// random makes a short string of the bytes that mean something to a pattern.
func random(r *rand.Rand, n int) string {
	const alphabet = `abcAZz*?[]^-\`
	b := make([]byte, r.IntN(n+1))
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// The one difference is on purpose: for Redis "**" does not match the empty
// string although "*" does, by a special case of KEYS.
func TestRedisMatchesTheSameKeys(t *testing.T) {
	conn, err := net.Dial("tcp", realserver.Start(t, "redis-server"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	read := bufio.NewReader(conn)
	do := func(args ...string) resp.Value {
		if _, err := conn.Write(wire.AppendCommand(nil, args...)); err != nil {
			t.Fatal(err)
		}
		v, err := wire.ReadValue(read)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	r := rand.New(rand.NewPCG(1, 2))
	keys := make(map[string]bool)
	for range 200 {
		if k := random(r, 6); k != "" {
			keys[k] = true
			do("SET", k, "v")
		}
	}
	matched := 0
	for range 1500 {
		p := random(r, 7)
		theirs := make(map[string]bool)
		for _, e := range do("KEYS", p).Elems {
			theirs[e.Str] = true
			matched++
		}
		for k := range keys {
			if Match(p, k) != theirs[k] {
				t.Errorf("Match(%s, %s) = %v", strconv.Quote(p), strconv.Quote(k), !theirs[k])
			}
		}
	}
	if matched < 1000 {
		t.Errorf("only %d matches were compared", matched)
	}
	// CONFIG GET matches without regard to case.
	for range 1500 {
		p := "[" + random(r, 4) + "]ort*"
		got := false
		for _, e := range do("CONFIG", "GET", p).Elems {
			got = got || e.Str == "port"
		}
		if strings.ContainsAny(p, "*?[") && MatchFold(p, "port") != got {
			t.Errorf("MatchFold(%q, port) = %v", p, !got)
		}
	}
}
