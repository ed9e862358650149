package limit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// TestScriptsDecideAsTheCommandsDo runs the same calls, at the same instants, by the
// commands of ebb and by the scripts for Redis, and compares every answer.
func TestScriptsDecideAsTheCommandsDo(t *testing.T) {
	for _, algo := range all {
		t.Run(algorithms[algo].name, func(t *testing.T) {
			draw.Check(t, func(t *rapid.T) { sameDecisions(t, algo) })
		})
	}
}

// twins are two limiters on one clock: one uses ebb's commands, the other scripts.
type twins struct {
	two   [2]*Limiter
	held  [2][]*Reservation
	algo  Algorithm
	rates []Rate
	rate  Rate
	clock *clock.Manual
	ctx   context.Context
}

func sameDecisions(t *rapid.T, algo Algorithm) {
	w := &twins{algo: algo, ctx: context.Background()}
	w.clock = clock.NewManual(time.Date(2030, 1, 2, 3, 4, 5, 678_901_000, time.UTC))
	c, err := ebb.Open(w.ctx, "mem://", ebb.Options{Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w.rates = []Rate{Per(3, time.Second), Per(7, time.Second), Per(1, time.Millisecond), Per(1000, 7*time.Millisecond),
		Per(13, 90*24*time.Hour),
		Per(50_000_000, 24*time.Hour)}
	if algo == SlidingLog {
		w.rates = w.rates[:5]
	}
	w.rate = rapid.SampledFrom(w.rates).Draw(t, "rate")
	for i := range w.two {
		if w.two[i], err = New(c, fmt.Sprint("l", i), w.rate, FailClosed, Options{Algorithm: algo}); err != nil {
			t.Fatal(err)
		}
	}
	w.two[1].scriptsOnly = true
	actions := map[string]func(*rapid.T){
		"pass": w.pass, "take": w.take, "again": w.again, "peek": w.peek, "most": w.most, "other rate": w.otherRate,
	}
	if algo == GCRA {
		actions["reserve"], actions["cancel"] = w.reserve, w.cancel
	}
	t.Repeat(actions)
}

// compare calls both, and fails unless their replies are equal.
func (w *twins) compare(t *rapid.T, what string, ask func(l *Limiter) (Result, error)) {
	t.Helper()
	a, err := ask(w.two[0])
	if err != nil {
		t.Fatal(what, err)
	}
	b, err := ask(w.two[1])
	if err != nil {
		t.Fatal(what, "by script:", err)
	}
	if a != b {
		t.Fatalf("%s at %v:\n  %+v, by script\n  %+v", what, w.two[0].plan.Load(), a, b)
	}
}

// cost draws a cost that fits in the burst, often the whole burst.
func (w *twins) cost(t *rapid.T) int64 {
	most := w.two[0].Burst()
	return rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, most), rapid.Int64Range(max(1, most-2), most)).Draw(t, "cost")
}

func (w *twins) pass(t *rapid.T) {
	p, n := int64(w.rate.Period/time.Microsecond), w.rate.N
	us := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, p/n*3), rapid.Int64Range(0, p*5/4), rapid.Just(p),
		rapid.Just(p/n)).Draw(t, "us")
	w.clock.Advance(time.Duration(us) * time.Microsecond)
}

func (w *twins) take(t *rapid.T) {
	n := w.cost(t)
	w.compare(t, "take", func(l *Limiter) (Result, error) { return l.AllowN(w.ctx, "k", n) })
}

func (w *twins) again(t *rapid.T) {
	n := w.cost(t)
	for range rapid.IntRange(1, 5).Draw(t, "times") {
		w.compare(t, "take", func(l *Limiter) (Result, error) { return l.AllowN(w.ctx, "k", n) })
		w.pass(t)
	}
}

func (w *twins) peek(t *rapid.T) {
	w.compare(t, "peek", func(l *Limiter) (Result, error) { return l.Peek(w.ctx, "k") })
}

func (w *twins) most(t *rapid.T) {
	n := w.cost(t) + rapid.Int64Range(0, 3).Draw(t, "more")
	w.compare(t, "most", func(l *Limiter) (Result, error) { return l.AllowAtMost(w.ctx, "k", n) })
}

func (w *twins) otherRate(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "seldom") > 0 {
		return
	}
	w.rate = rapid.SampledFrom(w.rates).Draw(t, "rate")
	burst := int64(0)
	if w.algo == GCRA {
		burst = rapid.Int64Range(0, min(100, 2*w.rate.N)).Draw(t, "burst")
	}
	for _, l := range w.two {
		if err := l.SetRate(w.rate, burst); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *twins) reserve(t *rapid.T) {
	// A greater cost, at the slowest rate that may follow, would exceed the 285 years in which scripts count
	// exactly.
	n := min(w.cost(t), 100)
	within := rapid.SampledFrom([]time.Duration{-1, 0, w.rate.Period / 2, w.rate.Period}).Draw(t, "within")
	var delays [2]time.Duration
	for i, l := range w.two {
		r, err := l.ReserveN(w.ctx, "k", n, within)
		if delays[i] = -1; err == nil {
			delays[i] = r.delay
			w.held[i] = append(w.held[i], r)
		}
	}
	if delays[0] != delays[1] {
		t.Fatalf("reserve %d: %v, by script %v", n, delays[0], delays[1])
	}
}

func (w *twins) cancel(t *rapid.T) {
	if len(w.held[0]) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.held[0])-1).Draw(t, "which")
	for _, held := range w.held {
		if err := held[i].Cancel(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
}
