package commands_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/limiter"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// grant is a grant of a limiter, either immediate or a reservation.
type grant struct {
	limiter.Grant
	id  int64
	due int64
}

// limiterModel records every grant of one limiter and does not model its state: it checks the bounds over all
// spans between two grants.
type limiterModel struct {
	db     *engine.DB
	clock  *clock.Manual
	o      engine.TakeOptions
	grants []grant
}

var limiterKey = []byte("limiter")

func newLimiterModel(t *rapid.T, algo limiter.Algo) *limiterModel {
	m := &limiterModel{clock: clock.NewManual(time.UnixMicro(1_700_000_000_123_457))}
	m.db = engine.Open(engine.Options{Clock: m.clock, Shards: 1, RecordEffects: true})
	m.o = engine.TakeOptions{Algo: algo, Limit: rapid.SampledFrom([]int64{1, 2, 3, 7, 10}).Draw(t, "limit"),
		Period: 1000 * rapid.SampledFrom([]int64{1, 5, 10, 1000}).Draw(t, "period")}
	m.o.Burst = m.o.Limit
	if algo == limiter.GCRA {
		m.o.Burst = rapid.Int64Range(1, 12).Draw(t, "burst")
	}
	return m
}

func (m *limiterModel) now() int64 { return m.clock.Micros() }

func (m *limiterModel) in(f func(tx *engine.Tx)) {
	tx := m.db.Begin(0, limiterKey)
	f(tx)
	tx.Commit()
}

func (m *limiterModel) ask(t *rapid.T, cost int64, peek bool) (a engine.Taken) {
	o := m.o
	o.Cost, o.Peek = cost, peek
	m.in(func(tx *engine.Tx) {
		var err error
		if a, err = tx.Take(limiterKey, o); err != nil {
			t.Fatal(err)
		}
	})
	return a
}

func (m *limiterModel) cost(t *rapid.T) int64 {
	return rapid.Int64Range(1, m.o.Burst+1).Draw(t, "cost")
}

func (m *limiterModel) take(t *rapid.T) {
	cost := m.cost(t)
	before := m.ask(t, cost, true)
	a := m.ask(t, cost, false)
	switch {
	case a.Allowed != before.Allowed || a.Retry != before.Retry:
		t.Fatalf("PEEK answered %+v, the take %+v", before, a)
	case a.Allowed:
		m.grants = append(m.grants, grant{Grant: a.Grant, due: m.now()})
		if a.Remaining != before.Remaining-cost {
			t.Fatalf("%d were there, %d are left after %d", before.Remaining, a.Remaining, cost)
		}
	case cost > m.o.Burst && a.Retry != -1, cost <= m.o.Burst && a.Retry < 1:
		t.Fatalf("refused, to be tried again in %d us", a.Retry)
	}
}

// retry waits for exactly the time that a refusal tells. A microsecond less is too early.
func (m *limiterModel) retry(t *rapid.T) {
	cost := rapid.Int64Range(1, m.o.Burst).Draw(t, "cost")
	a := m.ask(t, cost, false)
	if a.Allowed {
		m.grants = append(m.grants, grant{Grant: a.Grant, due: m.now()})
		return
	}
	m.clock.Advance(time.Duration(a.Retry-1) * time.Microsecond)
	if early := m.ask(t, cost, true); early.Allowed || early.Retry != 1 {
		t.Fatalf("a us before the time that was told: %+v", early)
	}
	m.clock.Advance(time.Microsecond)
	if then := m.ask(t, cost, true); !then.Allowed {
		t.Fatalf("at the time that was told: %+v", then)
	}
}

// reset waits for exactly the time until the limiter is full again, as the limiter tells it.
func (m *limiterModel) reset(t *rapid.T) {
	a := m.ask(t, 0, true)
	if a.Reset == 0 {
		return
	}
	m.clock.Advance(time.Duration(a.Reset-1) * time.Microsecond)
	if early := m.ask(t, 0, true); early.Reset != 1 || early.Remaining >= early.Limit {
		t.Fatalf("a us before it is full: %+v", early)
	}
	m.clock.Advance(time.Microsecond)
	if full := m.ask(t, a.Limit, true); !full.Allowed || full.Reset != 0 {
		t.Fatalf("it is not full: %+v", full)
	}
}

func (m *limiterModel) advance(t *rapid.T) {
	us := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(1, 2*m.o.Period), rapid.Just(m.o.Period), rapid.Just(m.o.Period/m.o.Limit),
		rapid.Just(m.o.Period-m.now()%m.o.Period)).Draw(t, "us")
	m.clock.Advance(time.Duration(us) * time.Microsecond)
}

func (m *limiterModel) reserve(t *rapid.T) {
	o := engine.ReserveOptions{TakeOptions: m.o, MaxWait: rapid.SampledFrom([]int64{-1, 0, m.o.Period / 2}).Draw(t, "wait")}
	o.Cost = rapid.Int64Range(1, m.o.Burst).Draw(t, "cost")
	answer := m.ask(t, o.Cost, true)
	m.in(func(tx *engine.Tx) {
		r, ok, err := tx.Reserve(limiterKey, o)
		wait := max(0, answer.Retry)
		switch {
		case err != nil:
			t.Fatal(err)
		case r.Due != tx.Now()+wait || ok != (o.MaxWait < 0 || wait <= o.MaxWait):
			t.Fatalf("reserved %+v, %v; RL.TAKE would wait %d", r, ok, wait)
		case ok:
			m.grants = append(m.grants, grant{limiter.Grant{Cost: r.Cost, At: tx.Now()}, r.ID, r.Due})
		}
	})
}

func (m *limiterModel) cancel(t *rapid.T) {
	if len(m.grants) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.grants)-1).Draw(t, "grant")
	g := m.grants[i]
	m.in(func(tx *engine.Tx) {
		ok, err := tx.CancelReservation(limiterKey, g.id)
		if err != nil || ok != (g.id != 0 && g.due > tx.Now()) {
			t.Fatalf("cancelled %+v: %v, %v", g, ok, err)
		}
		if ok {
			m.grants = slices.Delete(m.grants, i, i+1)
			if again, _ := tx.CancelReservation(limiterKey, g.id); again {
				t.Fatal("cancelled twice")
			}
		}
	})
}

// giveBack undoes one of the last grants. If the limiter accepts that, the model deletes the grant.
func (m *limiterModel) giveBack(t *rapid.T) {
	if len(m.grants) == 0 {
		return
	}
	i := len(m.grants) - 1 - rapid.IntRange(0, min(2, len(m.grants)-1)).Draw(t, "back")
	g := m.grants[i]
	if g.id != 0 {
		return
	}
	m.in(func(tx *engine.Tx) {
		ok, err := tx.GiveBack(limiterKey, g.Grant)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			m.grants = slices.Delete(m.grants, i, i+1)
		}
	})
}

// check compares the remaining capacity that the limiter reports with the costs that it allows, and checks
// the bound over all grants.
func (m *limiterModel) check(t *rapid.T) {
	a := m.ask(t, 0, true)
	if a.Remaining > 0 && !m.ask(t, a.Remaining, true).Allowed {
		t.Fatalf("%d remain, and are not allowed", a.Remaining)
	}
	if m.ask(t, a.Remaining+1, true).Allowed {
		t.Fatalf("%d remain, one more is allowed", a.Remaining)
	}
	slices.SortStableFunc(m.grants, func(a, b grant) int { return int(a.due - b.due) })
	for i := range m.grants {
		sum := int64(0)
		for _, g := range m.grants[i:] {
			sum += g.Cost
			if why := m.over(m.grants[i].due, g.due, sum); why != "" {
				t.Fatalf("%d from %d to %d: %s", sum, m.grants[i].due, g.due, why)
			}
		}
	}
	if err := m.db.Check(); err != nil {
		t.Fatal(err)
	}
}

// over returns the bound that grants of the total cost sum break if they all fall in the span from..to, "" if
// they break none.
func (m *limiterModel) over(from, to, sum int64) string {
	limit, period := m.o.Limit, m.o.Period
	switch {
	case m.o.Algo == limiter.GCRA && sum*period > m.o.Burst*period+(to-from)*limit:
		return "more than the burst and what the rate has added"
	case m.o.Algo == limiter.Log && to-from < period && sum > limit:
		return "more than the limit in a period"
	case m.o.Algo == limiter.Window && to-from < period && sum >= 2*limit:
		return "twice the limit in a period"
	case (m.o.Algo == limiter.Window || m.o.Algo == limiter.Fixed) && from/period == to/period && sum > limit:
		return "more than the limit in an aligned window"
	case m.o.Algo == limiter.Fixed && to-from < period && sum > 2*limit:
		return "more than twice the limit in a period"
	}
	return ""
}

func TestLimitersStayWithinTheirBounds(t *testing.T) {
	tier.Sequential(t)
	for algo := range limiter.Algos {
		t.Run(algo.String(), func(t *testing.T) {
			draw.Check(t, func(t *rapid.T) {
				m := newLimiterModel(t, algo)
				defer m.db.Close()
				actions := map[string]func(*rapid.T){
					"": m.check, "take": m.take, "take again": m.take, "retry": m.retry, "reset": m.reset, "advance": m.advance, "give back": m.giveBack,
				}
				if algo == limiter.GCRA {
					actions["reserve"], actions["reserve again"], actions["cancel"] = m.reserve, m.reserve, m.cancel
				}
				t.Repeat(actions)
				if err := modeltest.CheckEffects(m.db); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// The parameters may change with every call: the effects still lead to the same state, and a restored dump
// gives the same replies.
func TestLimitersBearAnyParameters(t *testing.T) {
	big := func(t *rapid.T, name string, top int64) int64 {
		return rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, top)).Draw(t, name)
	}
	draw.Check(t, func(t *rapid.T) {
		clock := clock.NewManual(time.UnixMicro(1_700_000_000_123_457))
		db := engine.Open(engine.Options{Clock: clock, Shards: 4, RecordEffects: true})
		defer db.Close()
		algo := limiter.Algo(rapid.IntRange(0, int(limiter.Algos)-1).Draw(t, "algo"))
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			o := engine.ReserveOptions{MaxWait: -1, TakeOptions: engine.TakeOptions{Algo: algo,
				Limit: big(t, "limit", limiter.MaxTokens), Period: big(t, "period", limiter.MaxPeriod/1000) * 1000}}
			if o.Cost = big(t, "cost", limiter.MaxTokens); algo == limiter.GCRA && rapid.Bool().Draw(t, "bursts") {
				o.Burst = big(t, "burst", limiter.MaxTokens)
			}
			tx := db.Begin(0, limiterKey, []byte("copy"))
			if algo == limiter.GCRA && rapid.Bool().Draw(t, "reserves") {
				if r, ok, err := tx.Reserve(limiterKey, o); err == nil && ok && rapid.Bool().Draw(t, "cancels") {
					_, err = tx.CancelReservation(limiterKey, r.ID)
					mustNot(t, err)
				}
			}
			a, err := tx.Take(limiterKey, o.TakeOptions)
			if err == nil && (a.Remaining < 0 || a.Remaining > a.Limit || a.Retry < -1 || a.Reset < 0) {
				t.Fatalf("%+v: %+v", o, a)
			}
			if payload, ok := tx.Dump(nil, limiterKey); ok {
				mustNot(t, tx.Restore([]byte("copy"), payload, engine.RestoreOptions{Replace: true}))
				o.Peek = true
				x, err1 := tx.Take(limiterKey, o.TakeOptions)
				y, err2 := tx.Take([]byte("copy"), o.TakeOptions)
				if x != y || fmt.Sprint(err1) != fmt.Sprint(err2) {
					t.Fatalf("%+v answers %+v, its copy %+v", o, x, y)
				}
			}
			tx.Commit()
			clock.Advance(time.Duration(big(t, "us", 1<<40)) * time.Microsecond)
		}
		mustNot(t, db.Check())
		mustNot(t, modeltest.CheckEffects(db))
	})
}

func mustNot(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
