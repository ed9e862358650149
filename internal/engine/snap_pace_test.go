package engine

import "testing"

// walked is a walk at an instant after a start.
type walked struct {
	pace
	now  int64 // us
	late int64 // us by which rests are too long
}

// works simulates us microseconds of work, and returns the length of the rest that must follow.
func (w *walked) works(us int64) int64 {
	w.now += us
	rest := w.due(w.now)
	if rest > 0 {
		w.now += rest + w.late
		w.rested(rest, w.now)
	}
	return rest
}

func wantRest(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: a rest of %d us, want %d us", what, got, want)
	}
}

func TestAWalkRestsForTwiceItsWorkWhileOthersWork(t *testing.T) {
	w := &walked{pace: pace{from: 5_000_000}, now: 5_000_000}
	w.seen()
	wantRest(t, "a slice", w.works(15), 0)
	wantRest(t, "a piece", w.works(85), 200)
	w.seen()
	wantRest(t, "a long piece", w.works(250), 500)
	w.seen()
	wantRest(t, "a piece that waited for the disk", w.works(40_000), paceLongest)
}

func TestAWalkWorksForLongerAfterARestThatWasTooLong(t *testing.T) {
	w := &walked{pace: pace{from: 5_000_000}, now: 5_000_000, late: 900}
	piece := func(want int64) {
		t.Helper()
		w.seen()
		wantRest(t, "a piece", w.works(pacePiece), want)
	}
	piece(200)
	for range 2 { // the credit for the 900 us is 400
		piece(0)
		piece(0)
		piece(200)
	}
	w.late = 100
	piece(0)
	piece(0)
	piece(200)
	piece(100)
	w.late = 0
	piece(100)
	piece(200)
	piece(200)
}

func TestAWalkThatDisturbsNoTransactionDoesNotRest(t *testing.T) {
	w := &walked{pace: pace{from: 5_000_000}, now: 5_000_000}
	for range 1000 {
		wantRest(t, "no transaction has come", w.works(pacePiece), 0)
	}
	w.seen()
	wantRest(t, "a transaction has come", w.works(pacePiece), 200)
	for at := w.now; w.now < at+paceQuiet-2*pacePiece; {
		if w.works(pacePiece) == 0 && w.now < w.quiet {
			t.Fatalf("no rest %d us after the last transaction: it may only be kept from its processor", w.now-at)
		}
	}
	w.works(3 * pacePiece)
	wantRest(t, "no transaction has come for long", w.works(pacePiece), 0)
}

// A transaction of any kind counts: a reader waits for the processor too.
func TestTransactionsAreSeenByAWalk(t *testing.T) {
	db := Open(Options{Databases: 1, Reclaimers: 1})
	defer db.Close()
	s := newSnapshot(db, SnapshotOptions{})
	db.snap.Store(s)
	defer db.snap.Store(nil)
	tx := db.Begin(0, []byte("k"))
	tx.Commit()
	if !s.pace.busy.Load() {
		t.Error("a transaction went unseen")
	}
}
