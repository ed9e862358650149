package commands_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/history"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/resp"
)

// The spans of the values and leases of a history, in ms. Clients move the clock by up to freshStep at once.
const (
	freshSpan, freshGone, freshLease, freshStep = 20, 45, 15, 12
)

// freshOp is one request of a history about one key whose value clients load.
type freshOp struct {
	words string // get, ask (as owner), renew, load (SET with IFTOKEN), put (SET), del, stale, unlease, drop (as owner); tick moves the clock
	value int64  // of load and put: a different number each time
	token int64  // the lease's token that the client knows
	owner int64  // of ask and drop
	ms    int64  // of tick
}

// freshOut is a reply: a word or a number, the value and the token.
type freshOut struct {
	word         string
	value, token int64
}

// freshState is the model: a value with its two deadlines, and a lease. A deadline's millisecond belongs to
// the time before it.
type freshState struct {
	now                int64
	value              int64 // 0: no value
	fresh, gone        int64
	token, until, last int64
	owner              int64 // the owner of the lease; 0: the lease has no owner
}

func (s *freshState) there() bool { return s.value != 0 && s.now <= s.gone }

// holds reports whether token is the valid token of the key's lease.
func (s *freshState) holds(token int64) bool {
	return token != 0 && s.token == token && s.now <= s.until
}

// change ends the lease, as every change of the key does.
func (s *freshState) change() { s.token = 0 }

func (s *freshState) store(v int64) {
	s.value, s.fresh, s.gone = v, s.now+freshSpan, s.now+freshGone
	s.change()
}

// step applies a request and reports whether its reply is right.
func (s *freshState) step(o freshOp, out freshOut) bool {
	there := s.there()
	count := func(n bool) bool { return out == freshOut{word: map[bool]string{true: "1", false: "0"}[n]} }
	switch o.words {
	case "tick":
		s.now += o.ms
		return true
	case "get", "ask", "renew":
		return s.get(o, out)
	case "load":
		if !s.holds(o.token) {
			return out == freshOut{word: "(nil)"}
		}
		s.store(o.value)
		return out == freshOut{word: "OK"}
	case "put":
		s.store(o.value)
		return out == freshOut{word: "OK"}
	case "del":
		s.value = 0
		s.change()
		return count(there)
	case "stale":
		if there {
			s.fresh = -1
		}
		s.change()
		return count(there)
	}
	held := s.holds(o.token) // unlease
	if o.words == "drop" {
		held = s.holds(s.token) && s.owner == o.owner
	}
	if held {
		s.token = 0
	}
	return count(held)
}

func (s *freshState) get(o freshOp, out freshOut) bool {
	v := int64(0)
	if s.there() {
		v = s.value
	}
	if v != 0 && s.now <= s.fresh {
		return out == freshOut{word: "fresh", value: v}
	}
	leased := s.holds(s.token)
	switch {
	case o.words == "renew" && s.holds(o.token):
		s.until = s.now + freshLease
		return out == freshOut{word: "refresh", value: v, token: o.token}
	case o.words == "ask" && leased && s.owner == o.owner:
		s.until = s.now + freshLease
		return out == freshOut{word: "refresh", value: v, token: s.token}
	case o.words != "renew" && !leased:
		ok := out.word == "refresh" && out.value == v && out.token > s.last
		s.token, s.last, s.until, s.owner = out.token, out.token, s.now+freshLease, 0
		if o.words == "ask" {
			s.owner = o.owner
		}
		return ok
	case v != 0:
		return out == freshOut{word: "stale", value: v}
	}
	return out == freshOut{word: "absent"}
}

var freshModel = porcupine.Model{
	Init: func() any { return freshState{} },
	Step: func(state, input, output any) (bool, any) {
		s := state.(freshState)
		ok := s.step(input.(freshOp), output.(freshOut))
		return ok, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// request returns the words of an operation.
func (o freshOp) request() []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	switch o.words {
	case "get":
		return []string{"GETFRESH", "k", "LEASE", number(freshLease)}
	case "ask":
		return []string{"GETFRESH", "k", "LEASE", number(freshLease), "OWNER", number(o.owner)}
	case "renew":
		return []string{"GETFRESH", "k", "LEASE", number(freshLease), "TOKEN", number(o.token)}
	case "load":
		return []string{"SET", "k", number(o.value), "PX", number(freshGone), "FRESH", number(freshSpan), "IFTOKEN", number(o.token)}
	case "put":
		return []string{"SET", "k", number(o.value), "PX", number(freshGone), "FRESH", number(freshSpan)}
	case "unlease":
		return []string{"UNLEASE", "k", number(o.token)}
	case "drop":
		return []string{"UNLEASE", "k", "OWNER", number(o.owner)}
	}
	return []string{strings.ToUpper(o.words), "k"}
}

// drawFresh draws the next operation of a client; token is the client's token, and owner its name. A loader
// stores a value, gives up, renews its lease, hangs while the clock moves, or crashes and so forgets its
// token.
func drawFresh(rng *rand.Rand, token, value, owner int64) freshOp {
	if token != 0 && rng.IntN(3) > 0 {
		return freshOp{words: []string{"load", "load", "load", "unlease", "renew", "die"}[rng.IntN(6)], token: token, value: value}
	}
	switch rng.IntN(12) {
	case 0:
		return freshOp{words: "put", value: value}
	case 1:
		return freshOp{words: "del"}
	case 2:
		return freshOp{words: "stale"}
	case 3, 4, 5:
		return freshOp{words: "tick", ms: 1 + rng.Int64N(freshStep)}
	}
	return freshOp{words: []string{"get", "ask", "ask", "drop"}[rng.IntN(4)], owner: owner}
}

// TestRefreshLeasesAreLinearizable has clients read, load and invalidate one key, while the clock moves.
// Loaders give up, crash, and need more time than their leases have. A linearizable key has at most one valid
// token, and never returns a value from before its last invalidation.
func TestRefreshLeasesAreLinearizable(t *testing.T) {
	for round := range 2 * history.Rounds {
		if !history.Check(t, freshModel, recordFresh(t, uint64(round))) {
			t.Logf("round %d", round)
			return
		}
	}
}

func recordFresh(t *testing.T, seed uint64) []porcupine.Operation {
	t.Helper()
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	var hooks session.Hooks
	db := engine.Open(engine.Options{Shards: 2, Clock: clock, Hooks: &hooks})
	defer db.Close()
	svc, err := session.NewService(session.Options{DB: db, Table: servercmd.Table}, &hooks)
	services.Must(t, err)
	defer svc.Close()
	db.SetActiveExpiry(seed%2 == 0)
	// A transaction reads the clock before it waits for its shard. So that the instant of each request is certain, the
	// clock moves only between requests.
	var moving sync.RWMutex
	return history.Record(svc, seed, func(c *history.Client) {
		token := int64(0)
		for i := range int64(history.Ops) {
			o := drawFresh(c.Rand, token, 1+i*history.Clients+int64(c.ID), 1+int64(c.ID))
			if o.words == "die" {
				token = 0
				continue
			}
			out := c.Note(o, func() any {
				if o.words == "tick" {
					moving.Lock()
					defer moving.Unlock()
					clock.Advance(time.Duration(o.ms) * time.Millisecond)
					return freshOut{}
				}
				moving.RLock()
				defer moving.RUnlock()
				return readFresh(services.Ask(c.Session, o.request()...))
			}).(freshOut)
			if out.token != 0 {
				token = out.token
			}
		}
	})
}

// readFresh reads a reply. Times are left out.
func readFresh(v resp.Value) (o freshOut) {
	if len(v.Elems) != 4 {
		return freshOut{word: word(v)}
	}
	o.word = v.Elems[0].Str
	o.value, _ = strconv.ParseInt(v.Elems[1].Str, 10, 64)
	o.token = v.Elems[2].Int
	return o
}

// word returns a short reply as one word.
func word(v resp.Value) string {
	if v.Kind == resp.KindNull {
		return "(nil)"
	}
	return v.String()
}
