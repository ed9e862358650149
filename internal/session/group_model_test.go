package session_test

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/history"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/wire"
)

// The model: a master, and a member that has received part of the master's stream. Clients send commands; the
// member receives more of the stream, and acknowledges it, at the instants that the seed determines. Then the
// master fails and the member takes over. One order of the commands must explain its data and all replies;
// commands without a reply may or may not have taken place.

const (
	groupRounds  = 60
	groupSteps   = 60
	groupClients = 4
)

var uncertainModel = porcupine.Model{
	Init: history.Strings.Init,
	Step: func(state, input, output any) (bool, any) {
		if output != nil {
			return history.Strings.Step(state, input, output)
		}
		k := state.(history.Keyspace)
		for _, args := range input.(history.Atom) {
			k.Apply(args)
		}
		return true, k
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%q -> %v", input, output) },
}

// groupWorld runs one history.
type groupWorld struct {
	t       *testing.T
	g       *grouped
	rng     *rand.Rand
	clock   int64
	member  *oplog.Reader
	has     []byte // the part of the stream that the member has
	peers   [groupClients]*services.Peer
	pending [groupClients]*porcupine.Operation // the operation that waits for its reply
	history []porcupine.Operation
}

func newGroupWorld(t *testing.T, rng *rand.Rand) *groupWorld {
	w := &groupWorld{t: t, g: joined(t), rng: rng}
	var err error
	if w.member, err = w.g.log.ReaderAt(0, oplog.ForReplica); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.member.Close)
	for i := range w.peers {
		w.peers[i] = w.g.dial(t)
	}
	return w
}

func (w *groupWorld) tick() int64 { w.clock++; return w.clock }

// step lets one event happen.
func (w *groupWorld) step() {
	switch w.rng.IntN(5) {
	case 0: // the member gets what there is
		for b := w.member.Next(); b != nil; b = w.member.Next() {
			w.has = append(w.has, b...)
		}
	case 1: // it acknowledges its current position, or an earlier one
		to := w.member.Offset()
		if from := w.g.log.Committed(); to > from {
			w.g.commit(from + 1 + w.rng.Int64N(to-from))
		}
		for i := range w.peers {
			w.resume(i)
		}
	default:
		if i := w.rng.IntN(groupClients); w.pending[i] == nil {
			w.send(i)
		}
	}
}

// send sends an atom as a client.
func (w *groupWorld) send(i int) {
	a := history.Atom{history.RandomCommand(w.rng)}
	if w.rng.IntN(3) == 0 {
		a = append(a, history.RandomCommand(w.rng))
	}
	w.pending[i] = &porcupine.Operation{ClientId: i, Input: a, Call: w.tick()}
	var in []byte
	if len(a) > 1 {
		in = append(in, "MULTI\r\n"...)
	}
	for _, args := range a {
		in = wire.AppendCommand(in, args...)
	}
	if len(a) > 1 {
		in = append(in, "EXEC\r\n"...)
	}
	out, _ := w.peers[i].Step(in)
	w.took(i, out)
}

// resume serves a client that was woken.
func (w *groupWorld) resume(i int) {
	select {
	case <-w.peers[i].Woken:
		out, _ := w.peers[i].Step(nil)
		w.took(i, out)
	default:
	}
}

// took records the reply to a client's operation, if there is one.
func (w *groupWorld) took(i int, out string) {
	op := w.pending[i]
	if out == "" || out == services.Unsynced || op == nil {
		return
	}
	r, a := bufio.NewReader(strings.NewReader(out)), op.Input.(history.Atom)
	for skip := len(a) + 1; len(a) > 1 && skip > 0; skip-- { // OK and QUEUED
		_, _ = wire.ReadValue(r)
	}
	v, err := wire.ReadValue(r)
	if err != nil {
		w.t.Fatalf("%q: %v", out, err)
	}
	replies := []string{history.Flat(v)}
	if len(a) > 1 {
		replies = replies[:0]
		for _, e := range v.Elems {
			replies = append(replies, history.Flat(e))
		}
	}
	op.Output, op.Return = strings.Join(replies, "\x00"), w.tick()
	w.history, w.pending[i] = append(w.history, *op), nil
}

// promote replaces the master with the member, and reads all its data.
func (w *groupWorld) promote() {
	w.g.depose()
	for i := range w.peers {
		w.resume(i)
		if op := w.pending[i]; op != nil {
			op.Return = math.MaxInt64
			w.history = append(w.history, *op)
		}
	}
	next := services.Start(w.t)
	if err := next.Replay(effectsOf(w.t, w.has)); err != nil {
		w.t.Fatal(err)
	}
	s := next.NewSession(nil)
	defer s.Closed(nil)
	for _, key := range history.Keys {
		op := porcupine.Operation{ClientId: groupClients, Input: history.Atom{{"GET", key}}, Call: w.tick()}
		op.Output, op.Return = history.Flat(s.Do([]byte("GET"), []byte(key))), w.tick()
		w.history = append(w.history, op)
	}
}

// effectsOf parses a stream into effects.
func effectsOf(t *testing.T, stream []byte) (all []engine.Effect) {
	t.Helper()
	var p wire.Parser
	seq, in := uint64(0), false
	for len(stream) > 0 {
		args, n, err := p.Next(stream)
		if err != nil || n == 0 {
			t.Fatalf("the stream ends within a command: %v", err)
		}
		stream = stream[n:]
		word := strings.ToUpper(string(args[0]))
		if !in {
			seq++
		}
		switch word {
		case "MULTI", "EXEC":
			in = word == "MULTI"
		case "SELECT":
		default:
			e := engine.Effect{Seq: seq}
			for _, a := range args {
				e.Args = append(e.Args, []byte(string(a)))
			}
			all = append(all, e)
		}
	}
	return all
}

// runGroup runs a history and checks it.
func runGroup(t *testing.T, rng *rand.Rand, plant func(*grouped)) (result porcupine.CheckResult) {
	t.Run("history", func(t *testing.T) { // a test of its own, so that its services are closed afterwards
		w := newGroupWorld(t, rng)
		plant(w.g)
		for range groupSteps {
			w.step()
		}
		w.promote()
		result = porcupine.CheckOperationsTimeout(uncertainModel, w.history, 20*time.Second)
		if result != porcupine.Illegal {
			return
		}
		for _, op := range w.history {
			t.Logf("%d %9d-%9d %s", op.ClientId, op.Call, op.Return, uncertainModel.DescribeOperation(op.Input, op.Output))
		}
	})
	return result
}

func TestNoReplyOfAGroupIsLostByAPromotion(t *testing.T) {
	rng, waited := draw.Rand(t), 0
	for range draw.Rounds(0, groupRounds) {
		switch runGroup(t, rng, func(*grouped) {}) {
		case porcupine.Illegal:
			t.Fatal("no order of these commands explains their replies and what the next master has")
		case porcupine.Unknown:
			waited++
		}
	}
	if waited > 0 {
		t.Logf("%d histories were too hard to check in the time given", waited)
	}
}

// A test of the model: it must find a reply that leaves too early.
func TestTheModelFindsAReplyThatLeavesEarly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range groupRounds {
		if runGroup(t, rng, func(g *grouped) { g.log.SetGroup(false) }) == porcupine.Illegal {
			return
		}
	}
	t.Errorf("in %d histories without held replies it finds none that is lost", groupRounds)
}
