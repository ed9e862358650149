package commands_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/ebbdb/ebb/internal/testing/history"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// The period is 30 years, so no capacity returns within a history. A limiter then is a counter, whatever its
// algorithm.
const (
	slowPeriod = "946080000000"
	slowLimit  = 10
)

// taken is the model's state: the cost taken from each of the keys a, b and c.
type taken [3]int

// answer computes the reply about one limiter, as the first three numbers of RL.TAKE.
func (k *taken) answer(key string, cost int, take bool) (allowed bool, reply string) {
	n := &k[strings.IndexByte("abc", key[0])]
	allowed = *n+cost <= slowLimit
	if allowed && take {
		*n += cost
	}
	one := 0
	if allowed {
		one = 1
	}
	return allowed, fmt.Sprint(one, slowLimit, slowLimit-*n)
}

// apply runs a command on the model and returns the reply without times, as threes does.
func (k *taken) apply(args []string) string {
	switch args[0] {
	case "RL.RESET":
		n := &k[strings.IndexByte("abc", args[1][0])]
		there := *n > 0
		if *n = 0; there {
			return "1"
		}
		return "0"
	case "RL.TAKE":
		cost, _ := strconv.Atoi(args[5])
		_, reply := k.answer(args[1], cost, true)
		return reply
	}
	cost, _ := strconv.Atoi(args[len(args)-1])
	first, a := k.answer(args[2], cost, false)
	second, b := k.answer(args[3], cost, false)
	if !first || !second {
		return "0 " + a + " " + b
	}
	_, a = k.answer(args[2], cost, true)
	_, b = k.answer(args[3], cost, true)
	return "1 " + a + " " + b
}

// threes removes the times from a reply about limiters.
func threes(reply string) string {
	f := strings.Fields(reply)
	var keep []string
	if len(f)%5 == 1 {
		keep, f = f[:1:1], f[1:]
	}
	for ; len(f) >= 5; f = f[5:] {
		keep = append(keep, f[:3]...)
	}
	return strings.Join(keep, " ")
}

var limiterLinearModel = porcupine.Model{
	Init: func() any { return taken{} },
	Step: func(state, input, output any) (bool, any) {
		k := state.(taken)
		got := strings.Split(output.(string), "\x00")
		for i, args := range input.(history.Atom) {
			if i >= len(got) || k.apply(args) != threes(got[i]) {
				return false, k
			}
		}
		return len(got) == len(input.(history.Atom)), k
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%q -> %q", input, output) },
}

func TestTakesAreLinearizable(t *testing.T) {
	for round := range history.Rounds {
		algo := []string{"gcra", "log", "window", "fixed"}[round%4]
		random := func(rng *rand.Rand) []string {
			i := rng.IntN(len(history.Keys))
			key, other, cost := history.Keys[i], history.Keys[(i+1)%len(history.Keys)], strconv.Itoa(1+rng.IntN(4))
			switch rng.IntN(5) {
			case 0:
				return []string{"RL.RESET", key}
			case 1:
				return []string{"RL.TAKEALL", "2", key, other, fmt.Sprint(slowLimit), slowPeriod, fmt.Sprint(slowLimit), slowPeriod,
					"ALGO", algo, "COST", cost}
			}
			return []string{"RL.TAKE", key, fmt.Sprint(slowLimit), slowPeriod, "COST", cost, "ALGO", algo}
		}
		if !history.Check(t, limiterLinearModel, history.RecordCommands(t, uint64(round), random)) {
			return
		}
	}
}

func TestAThousandWaitForALimiterInTheirOrder(t *testing.T) {
	e := services.Played(t)
	clients := 1000
	if tier.Short() {
		clients = 200
	}
	if v, err := e.Do(1, "RL.TAKE", "k", "1", "10"); err != nil || v.Elems[0].Int != 1 {
		t.Fatal(v, err)
	}
	for n := range clients {
		services.Must(t, e.Send(n+2, []string{"RL.WAIT", "k", "1", "10", "0"}))
	}
	gone := map[int]bool{}
	for n := 0; n < clients; n += 3 {
		services.Must(t, e.Hangup(n+2))
		gone[n] = true
	}
	if v, err := e.Do(1, "RL.INFO", "k"); err != nil || v.Elems[17].Int != int64(clients-len(gone)) {
		t.Fatal(v, err)
	}
	for n := range clients {
		if gone[n] {
			continue
		}
		services.Must(t, e.Advance(10_000_000))
		v, ok := e.Next(n + 2)
		if !ok || len(v.Elems) != 5 || v.Elems[0].Int != 1 {
			t.Fatalf("client %d got %v, %v", n, v, ok)
		}
		for other := n + 1; other < min(n+4, clients); other++ {
			if !gone[other] {
				if v, ok := e.Next(other + 2); ok {
					t.Fatalf("client %d overtook: %v", other, v)
				}
			}
		}
	}
	if n := e.DB.Waiters(); n != 0 {
		t.Errorf("%d places in lines are still taken", n)
	}
	services.Must(t, e.DB.Check())
}

func TestTheLinesOfLimitersNameEachClient(t *testing.T) {
	e := services.Played(t)
	if _, err := e.Do(1, "RL.TAKE", "k", "1", "1000"); err != nil {
		t.Fatal(err)
	}
	var want []string
	for n := 2; n < 40; n++ {
		id, err := e.Do(n, "CLIENT", "ID")
		services.Must(t, err)
		services.Must(t, e.Send(n, []string{"RL.WAIT", "k", "1", "1000", "0"}))
		want = append(want, fmt.Sprint(id.Int, 1))
	}
	v, err := e.Do(1, "RL.INFO", "k")
	services.Must(t, err)
	var got []string
	for _, x := range v.Elems[19].Elems {
		got = append(got, history.Flat(x))
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "(integer) ", "")
	}
	if !slices.Equal(got, want) {
		t.Errorf("the line is %q, it should be %q", got, want)
	}
}
