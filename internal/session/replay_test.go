package session_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

// replayRounds is the number of random sequences that are run and replayed, each of replayOps operations.
const (
	replayRounds = 60
	replayOps    = 150
)

// The effects of any operations on an engine give the same data in another engine, whether expired keys are
// removed on time or only when a command meets them.
func TestEffectsGiveTheSameKeyspace(t *testing.T) {
	tier.Sequential(t)
	table := services.Table(t)
	for round := range uint64(replayRounds) {
		g := modeltest.NewGenerator(round, table, func(name string) bool { return table.LookupFull(name) != nil })
		g.Own = true
		ops := g.Sequence(replayOps)
		if err := replay(t, ops, round%2 == 0); err != nil {
			ops = modeltest.Shrink(ops, 400, func(ops []modeltest.Op) bool { return replay(t, ops, round%2 == 0) != nil })
			t.Fatalf("seed %d: %v\n%s", round, replay(t, ops, round%2 == 0),
				transcript.Format(transcript.Case{Title: "found by replaying", Steps: modeltest.Steps(ops)}))
		}
	}
}

// replay runs a sequence in virtual time, and compares the engines every few steps.
func replay(t *testing.T, ops []modeltest.Op, active bool) error {
	t.Helper()
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r, err := modeltest.NewReplica()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e.DB.SetActiveExpiry(active)
	for i, o := range ops {
		if o.Wait > 0 {
			err = e.Advance(o.Wait)
		} else {
			err = e.Send(o.Conn, o.Args)
		}
		if err == nil && i%10 == 9 {
			err = r.Follow(e.DB)
		}
		if err != nil {
			return err
		}
	}
	return r.Follow(e.DB)
}

// An effect that no engine writes is refused with a message that names it.
func TestAnImpossibleEffectIsNamed(t *testing.T) {
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	err = e.Service.Replay([]engine.Effect{{Seq: 7, Args: [][]byte{[]byte("NOSUCH"), []byte("k")}}})
	want := `effect 0 of transaction 7 was refused: ["NOSUCH" "k"] in database 0: ERR unknown command 'NOSUCH', with args beginning with: 'k' `
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
