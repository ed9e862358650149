package commands_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/ebbdb/ebb/internal/testing/history"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/resp"
)

// lockOp is one request of a history about one lock and one semaphore. The owners are the clients. The output
// is a token or an integer, 0 for nil, and -1 for LOST.
type lockOp struct {
	words  string // the request; "lock" and "sem" mean ACQUIRE
	client int
	shared bool
	wait   bool
	n      int64 // permits
	token  int64 // the token that the client knows
}

const semLimit = 4

// heldState is the model's state.
type heldState struct {
	shared  bool
	locks   [history.Clients]int64 // the tokens of the lock's holders
	permits [history.Clients]int64
	tokens  [history.Clients]int64 // the tokens of the permits
	last    int64
}

// fresh records a new token, and reports whether it is greater than all before.
func (s *heldState) fresh(token int64) bool {
	ok := token > s.last
	s.last = token
	return ok
}

func (s *heldState) holders() (n int) {
	for _, t := range s.locks {
		if t != 0 {
			n++
		}
	}
	return n
}

// step applies a request and reports whether its output is right.
func (s *heldState) step(o lockOp, out int64) bool {
	mine := &s.locks[o.client]
	switch o.words {
	case "lock":
		return s.lock(mine, o, out)
	case "renew", "release":
		ok := *mine != 0 && *mine == o.token
		if ok && o.words == "release" {
			*mine = 0
		}
		return out == map[bool]int64{true: 1, false: map[string]int64{"renew": -1, "release": 0}[o.words]}[ok]
	case "del":
		there := s.holders() > 0
		s.locks = [history.Clients]int64{}
		return out == map[bool]int64{true: 1}[there]
	case "sem":
		return s.sem(o, out)
	}
	have := &s.permits[o.client] // "give"
	there := *have > 0
	*have = max(0, *have-o.n)
	return out == map[bool]int64{true: 1}[there]
}

func (s *heldState) lock(mine *int64, o lockOp, out int64) bool {
	switch n := s.holders(); {
	case *mine != 0 && s.shared && !o.shared && n > 1:
		return out == 0
	case *mine != 0 && s.shared && !o.shared:
		s.shared, *mine = false, out
		return s.fresh(out)
	case *mine != 0:
		s.shared = s.shared || o.shared
		return out == *mine
	case n > 0 && !(s.shared && o.shared):
		return out == 0 && !o.wait
	}
	if out == 0 { // other clients wait, and this one must not overtake them
		return !o.wait
	}
	s.shared, *mine = o.shared, out
	return s.fresh(out)
}

func (s *heldState) sem(o lockOp, out int64) bool {
	sum := int64(0)
	for _, n := range s.permits {
		sum += n
	}
	have := &s.permits[o.client]
	switch {
	case *have >= o.n:
		return out == s.tokens[o.client]
	case out == 0:
		return !o.wait
	case sum-*have+o.n > semLimit:
		return false
	case *have > 0:
		*have = o.n
		return out == s.tokens[o.client]
	}
	*have, s.tokens[o.client] = o.n, out
	return s.fresh(out)
}

var heldModel = porcupine.Model{
	Init: func() any { return heldState{} },
	Step: func(state, input, output any) (bool, any) {
		s := state.(heldState)
		ok := s.step(input.(lockOp), output.(int64))
		return ok, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %d", input, output) },
}

// draw makes a request of a client that believes it holds a lock under a token, or permits. A client that
// holds something never waits for more, because two such clients would wait for each other.
func (o *lockOp) draw(rng *rand.Rand, token, permits int64) []string {
	owner := fmt.Sprint("c", o.client)
	o.token = token
	switch rng.IntN(8) {
	case 0, 1, 2:
		o.words, o.shared, o.wait = "lock", rng.IntN(2) == 0, token+permits == 0 && rng.IntN(2) == 0
		words := []string{"LOCK.ACQUIRE", "l", owner, "60000"}
		if o.shared {
			words = append(words, "SHARED")
		}
		return o.waits(words)
	case 3:
		o.words = "renew"
		o.token = max(token, 1)
		return []string{"LOCK.RENEW", "l", owner, strconv.FormatInt(o.token, 10), "60000"}
	case 4:
		o.words = "release"
		o.token = max(token, 1)
		return []string{"LOCK.RELEASE", "l", owner, strconv.FormatInt(o.token, 10)}
	case 5:
		if rng.IntN(4) == 0 {
			o.words = "del"
			return []string{"DEL", "l"}
		}
		o.words, o.n = "give", semLimit
		return []string{"SEM.RELEASE", "s", owner}
	case 6:
		o.words, o.n = "give", 1+rng.Int64N(2)
		return []string{"SEM.RELEASE", "s", owner, "COUNT", fmt.Sprint(o.n)}
	}
	o.words, o.n, o.wait = "sem", 1+rng.Int64N(semLimit), token+permits == 0 && rng.IntN(2) == 0
	return o.waits([]string{"SEM.ACQUIRE", "s", owner, fmt.Sprint(semLimit), "60000", "COUNT", fmt.Sprint(o.n)})
}

func (o *lockOp) waits(words []string) []string {
	if o.wait {
		words = append(words, "WAIT", "0")
	}
	return words
}

// lockClient runs random requests. At the end it releases everything it holds, so that no client waits for
// ever.
func lockClient(c *history.Client) {
	var token, permits int64
	run := func(o lockOp, words []string) {
		out := c.Note(o, func() any {
			v := services.Ask(c.Session, words...)
			if v.Kind == resp.KindError {
				return int64(-1)
			}
			return v.Int
		}).(int64)
		switch {
		case o.words == "lock" && out > 0:
			token = out
		case o.words == "renew" && out < 0, o.words == "release":
			token = 0
		case o.words == "sem" && out > 0:
			permits = max(permits, o.n)
		case o.words == "give":
			permits = max(0, permits-o.n)
		}
	}
	for range history.Ops {
		o := lockOp{client: c.ID}
		words := o.draw(c.Rand, token, permits)
		run(o, words)
	}
	owner := fmt.Sprint("c", c.ID)
	run(lockOp{words: "release", client: c.ID, token: max(token, 1)},
		[]string{"LOCK.RELEASE", "l", owner, strconv.FormatInt(max(token, 1), 10)})
	run(lockOp{words: "give", client: c.ID, n: semLimit}, []string{"SEM.RELEASE", "s", owner})
}

func TestLocksAndSemaphoresAreLinearizable(t *testing.T) {
	for round := range history.Rounds {
		if !history.Check(t, heldModel, history.Record(services.At(t, nil), uint64(round), lockClient)) {
			return
		}
	}
}
