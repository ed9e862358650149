package servercmd

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
)

// beside sends the same requests to an engine and to redis-server, and compares the replies.
func beside(t *testing.T, requests [][]string, options ...string) {
	t.Helper()
	conn, err := net.Dial("tcp", realserver.Start(t, "redis-server", append([]string{"--enable-debug-command", "yes"}, options...)...))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	db := engine.Open(engine.Options{})
	defer db.Close()
	cfg, err := config.Load(append([]string{"--enable-debug-command", "yes"}, options...), nil)
	if err != nil {
		t.Fatal(err)
	}
	svc, err := session.NewService(session.Options{DB: db, Table: Table, Config: cfg}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer svc.Close()
	c := svc.NewSession(nil)
	defer c.Closed(nil)
	r := bufio.NewReader(conn)
	for _, args := range requests {
		if _, err := conn.Write(wire.AppendCommand(nil, args...)); err != nil {
			t.Fatal(err)
		}
		want, err := wire.ReadValue(r)
		if err != nil {
			t.Fatal(err)
		}
		var words [][]byte
		for _, a := range args {
			words = append(words, []byte(a))
		}
		// The texts about missing rights differ (noperm-texts).
		theirs := strings.Replace(string(wire.AppendTTY(nil, want)), "This user has", "User bob has", 1)
		if got := c.Do(words...); string(wire.AppendTTY(nil, got)) != theirs {
			t.Errorf("%q\n ours  %s redis %s", args, wire.AppendTTY(nil, got), theirs)
		}
	}
}

// randomNumber returns a number in one of C's notations, or a text that almost is one.
func randomNumber(rng *rand.Rand) string {
	sign := []string{"", "", "-", "+"}[rng.IntN(4)]
	digits := func(n int, set string) string {
		b := make([]byte, rng.IntN(n+1))
		for i := range b {
			b[i] = set[rng.IntN(len(set))]
		}
		return string(b)
	}
	switch rng.IntN(12) {
	case 0:
		return sign + "0x" + digits(20, "0123456789abcdefABCDEF") + "." + digits(20, "0123456789abcdef") +
			[]string{"", "p5", "P-70", "p+16000", "p-16500", "p"}[rng.IntN(6)]
	case 1:
		return sign + []string{"inf", "INFINITY", "nan", "infin", "nan(1)", "0x", ".", "1e", "1_0", " 1", "1 ", "0b1"}[rng.IntN(12)]
	case 2:
		return fmt.Sprintf("%s%d.%de%d", sign, rng.IntN(10), rng.Int64(), rng.IntN(10000)-5000)
	case 3:
		return fmt.Sprintf("%s%de%d", sign, rng.Int64(), rng.IntN(60)-30)
	case 4:
		return sign + digits(60, "0123456789") + "." + digits(60, "0123456789")
	case 5:
		return sign + "1" + strings.Repeat("0", rng.IntN(40)) + ".5"
	case 6:
		return fmt.Sprint(rng.NormFloat64() * 1e10)
	case 7:
		return fmt.Sprintf("%s0.%0*d5", sign, rng.IntN(18)+1, 1)
	}
	return fmt.Sprintf("%s%d.%0*d", sign, rng.IntN(100000), rng.IntN(17)+1, rng.IntN(10))
}

func TestFloatsAreAddedAsByRedis(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var requests [][]string
	for range 1500 {
		requests = append(requests, []string{"SET", "k", randomNumber(rng)},
			[]string{"INCRBYFLOAT", "k", randomNumber(rng)}, []string{"INCRBYFLOAT", "k", randomNumber(rng)})
	}
	beside(t, requests)
}

func TestFieldsAreChangedAsByRedis(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	edge := func() string {
		n := int64(1) << rng.IntN(64)
		return fmt.Sprint([]int64{n, -n, n - 1, -n + 1, rng.Int64(), -rng.Int64(), 0, 1, -1}[rng.IntN(9)])
	}
	var requests [][]string
	for range 1500 {
		args := []string{"BITFIELD", "k"}
		for range 1 + rng.IntN(4) {
			field := []string{fmt.Sprint([]string{"u", "i"}[rng.IntN(2)], rng.IntN(65)), fmt.Sprint([]string{"", "#"}[rng.IntN(2)], rng.IntN(130))}
			switch rng.IntN(4) {
			case 0:
				args = append(append(args, "GET"), field...)
			case 1:
				args = append(append(append(args, "SET"), field...), edge())
			case 2:
				args = append(append(append(args, "INCRBY"), field...), edge())
			default:
				args = append(args, "OVERFLOW", []string{"WRAP", "SAT", "FAIL"}[rng.IntN(3)])
			}
		}
		requests = append(requests, args, []string{"GET", "k"})
	}
	beside(t, requests)
}
