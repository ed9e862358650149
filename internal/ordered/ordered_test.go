package ordered_test

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/ordered"
	"github.com/ebbdb/ebb/internal/testing/chunktest"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// model is a set beside a map; a test builds the sorted slice from it on demand.
type model struct {
	mem     chunktest.Memory
	set     *ordered.Set
	members map[string]entry
	now     int64
	names   int       // members are numbers below this
	scores  []float64 // what scores are drawn from

	frozen *ordered.Set // nil: none
	watch  *chunktest.Frozen
}

type entry struct {
	member   string
	score    float64
	deadline int64
}

func newModel(t *rapid.T) *model {
	m := &model{members: make(map[string]entry), now: 1000}
	m.mem.Max = rapid.SampledFrom([]int{1 << 10, 16 << 10, 64 << 10}).Draw(t, "max")
	m.mem.Limit = rapid.SampledFrom([]int{0, 0, 32 << 10}).Draw(t, "limit")
	m.names = rapid.SampledFrom([]int{20, 1000}).Draw(t, "names")
	m.scores = rapid.SampledFrom([][]float64{
		{7},
		{math.Inf(-1), -2.5, math.Copysign(0, -1), 0, 1e-300, 3, math.Inf(1)},
		nil,
	}).Draw(t, "scores")
	m.set = ordered.New(&m.mem, maphash.MakeSeed())
	return m
}

func (m *model) member(t *rapid.T) string {
	return fmt.Sprint(rapid.IntRange(0, m.names-1).Draw(t, "name"))
}

func (m *model) score(t *rapid.T) float64 {
	if m.scores == nil {
		return float64(rapid.IntRange(-2000, 2000).Draw(t, "score")) / 2
	}
	return rapid.SampledFrom(m.scores).Draw(t, "score")
}

func (m *model) deadline(t *rapid.T) int64 { return m.now + rapid.Int64Range(-5, 50).Draw(t, "ttl") }

func (m *model) alive(e entry) bool { return e.deadline == 0 || m.now <= e.deadline }

// living returns the living members in order.
func (m *model) living() []entry {
	var list []entry
	for _, e := range m.members {
		if m.alive(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, order)
	return list
}

func order(a, b entry) int {
	return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
}

func (m *model) put(t *rapid.T) {
	for range rapid.IntRange(1, 30).Draw(t, "n") {
		deadline := int64(0)
		switch rapid.IntRange(0, 3).Draw(t, "deadline") {
		case 0:
			deadline = m.deadline(t)
		case 1:
			deadline = ordered.Keep
		}
		m.store(t, entry{m.member(t), m.score(t), deadline})
	}
}

func (m *model) putMany(t *rapid.T) {
	from := rapid.IntRange(0, m.names-1).Draw(t, "from")
	ttl := rapid.Int64Range(0, 60).Draw(t, "ttl")
	score := m.score(t)
	for i := range rapid.IntRange(1, 500).Draw(t, "n") {
		e := entry{member: fmt.Sprint((from + i) % m.names), score: score}
		if m.scores == nil {
			e.score += float64(i)
		}
		if ttl > 30 {
			e.deadline = m.now + ttl - int64(i%7)
		}
		m.store(t, e)
	}
}

// put1 is Put, or what Put is made of.
func (m *model) put1(t *rapid.T, e entry) (dict.Outcome, error) {
	p := m.set.Look([]byte(e.member), m.now)
	switch {
	case rapid.Bool().Draw(t, "whole"):
	case !p.Found:
		return dict.Added, m.set.Add([]byte(e.member), e.score, max(e.deadline, 0))
	case p.Living && e.deadline == ordered.Keep:
		return dict.Replaced, m.set.Rescore(p, e.score)
	}
	return m.set.Put([]byte(e.member), e.score, e.deadline, m.now)
}

func (m *model) store(t *rapid.T, e entry) {
	got, err := m.put1(t, e)
	if err != nil {
		if m.mem.Limit == 0 || !errors.Is(err, ordered.ErrNoMemory) {
			t.Fatal(err)
		}
		return
	}
	old, found := m.members[e.member]
	want, kept := dict.Added, int64(0)
	switch {
	case found && m.alive(old):
		want, kept = dict.Replaced, old.deadline
	case found:
		want = dict.Revived
	}
	if e.deadline == ordered.Keep {
		e.deadline = kept
	}
	if got != want {
		t.Fatalf("Put(%v) = %d, want %d", e, got, want)
	}
	m.members[e.member] = e
}

func (m *model) delete(t *rapid.T) {
	from := rapid.IntRange(0, m.names-1).Draw(t, "from")
	for i := range rapid.IntRange(1, 400).Draw(t, "n") {
		member := fmt.Sprint((from + i) % m.names)
		e, want := m.members[member]
		found, living := m.set.Delete([]byte(member), m.now)
		if found != want || living != (want && m.alive(e)) {
			t.Fatalf("Delete(%q) = %v, %v, want %v of %v", member, found, living, want, e)
		}
		delete(m.members, member)
	}
}

func (m *model) setDeadline(t *rapid.T) {
	for range rapid.IntRange(1, 30).Draw(t, "n") {
		member, deadline := m.member(t), m.deadline(t)
		e, found := m.members[member]
		if rapid.IntRange(0, 3).Draw(t, "clear") == 0 {
			deadline = 0
			ok, had := m.set.ClearDeadline([]byte(member), m.now)
			if want := found && m.alive(e); ok != want || had != (want && e.deadline != 0) {
				t.Fatalf("ClearDeadline(%q) = %v, %v of %v", member, ok, had, e)
			}
		} else if ok, err := m.set.SetDeadline([]byte(member), deadline, m.now); err != nil {
			if m.mem.Limit == 0 {
				t.Fatal(err)
			}
			continue
		} else if ok != (found && m.alive(e)) {
			t.Fatalf("SetDeadline(%q) = %v of %v", member, ok, e)
		}
		if found && m.alive(e) {
			e.deadline = deadline
			m.members[member] = e
		}
	}
}

func (m *model) reap(t *rapid.T) {
	last := int64(0)
	m.set.Reap(m.now, rapid.IntRange(1, 300).Draw(t, "budget"), func(got ordered.Entry) {
		e, ok := m.members[string(got.Member)]
		if !ok || m.alive(e) || e.score != got.Score || e.deadline != got.Deadline || e.deadline < last {
			t.Fatalf("reaped %q, want %v at %d", got.Member, e, m.now)
		}
		last = e.deadline
		delete(m.members, e.member)
	})
}

// drawCut returns a cut and the number of living members before it.
func (m *model) drawCut(t *rapid.T, living []entry) (ordered.Cut, int) {
	score, member := m.score(t), m.member(t)
	count := func(before func(e entry) bool) (n int) {
		for _, e := range living {
			if before(e) {
				n++
			}
		}
		return n
	}
	kinds := 4
	if len(m.scores) == 1 {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "cut") {
	case 0:
		return ordered.Start, 0
	case 1:
		return ordered.End, len(living)
	case 2:
		return ordered.BeforeScore(score), count(func(e entry) bool { return e.score < score })
	case 3:
		return ordered.AfterScore(score), count(func(e entry) bool { return e.score <= score })
	case 4:
		return ordered.BeforeMember([]byte(member)), count(func(e entry) bool { return e.member < member })
	}
	return ordered.AfterMember([]byte(member)), count(func(e entry) bool { return e.member <= member })
}

func (m *model) deleteRange(t *rapid.T) {
	living := m.living()
	_, a := m.drawCut(t, living)
	_, b := m.drawCut(t, living)
	if a >= b {
		return
	}
	for _, e := range living[a:b] {
		delete(m.members, e.member)
	}
	m.set.CutRanks(a, b-a, m.now)
}

func (m *model) deleteInTheLoop(t *rapid.T) {
	living, i := m.living(), 0
	salt := rapid.IntRange(0, 2).Draw(t, "salt")
	for e := range m.set.Iter(m.now) {
		want := living[i]
		i++
		if string(e.Member) != want.member {
			t.Fatalf("Iter gives %q, want %v", e.Member, want)
		}
		if i%3 != salt {
			m.set.Delete([]byte(want.member), m.now)
			delete(m.members, want.member)
		}
	}
	if i != len(living) {
		t.Fatalf("Iter gave %d of %d", i, len(living))
	}
}

// same fails unless the sequence is want, backwards if so said.
func same(t *rapid.T, what string, got iter.Seq[ordered.Entry], want []entry, backwards bool) {
	i := 0
	for e := range got {
		if i >= len(want) {
			t.Fatalf("%s: more than %d entries", what, len(want))
		}
		w := want[i]
		if backwards {
			w = want[len(want)-1-i]
		}
		if string(e.Member) != w.member || math.Float64bits(e.Score) != math.Float64bits(w.score) || e.Deadline != w.deadline {
			t.Fatalf("%s: entry %d is %q %v %d, want %v", what, i, e.Member, e.Score, e.Deadline, w)
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%s: %d entries, want %d", what, i, len(want))
	}
}

func (m *model) check(t *rapid.T) {
	if err := m.set.Check(); err != nil {
		t.Fatal(err)
	}
	living := m.living()
	if m.set.Len(m.now) != len(living) || m.set.Count() != len(m.members) || m.set.Due(m.now) != len(m.members)-len(living) {
		t.Fatalf("Len %d, Count %d, want %d of %d", m.set.Len(m.now), m.set.Count(), len(living), len(m.members))
	}
	same(t, "Iter", m.set.Iter(m.now), living, false)
	for rank, e := range living {
		if rank%17 != 0 {
			continue
		}
		if got, ok := m.set.Rank([]byte(e.member), m.now); !ok || got != rank {
			t.Fatalf("Rank(%v) = %d, %v, want %d", e, got, ok, rank)
		}
		if got, ok := m.set.ByRank(rank, m.now); !ok || string(got.Member) != e.member {
			t.Fatalf("ByRank(%d) = %q, %v, want %v", rank, got.Member, ok, e)
		}
	}
	m.checkMember(t)
	m.checkRange(t, living)
	if m.frozen != nil {
		if err := m.watch.Check(); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *model) checkMember(t *rapid.T) {
	member := m.member(t)
	e, ok := m.members[member]
	ok = ok && m.alive(e)
	score, found := m.set.Score([]byte(member), m.now)
	if found != ok || ok && score != e.score {
		t.Fatalf("Score(%q) = %v, %v, want %v, %v", member, score, found, e, ok)
	}
	deadline, found := m.set.Deadline([]byte(member), m.now)
	if found != ok || ok && deadline != e.deadline {
		t.Fatalf("Deadline(%q) = %v, %v, want %v, %v", member, deadline, found, e, ok)
	}
	if _, found := m.set.Rank([]byte(member), m.now); found != ok {
		t.Fatalf("Rank(%q) found %v", member, found)
	}
}

func (m *model) checkRange(t *rapid.T, living []entry) {
	from, a := m.drawCut(t, living)
	_, b := m.drawCut(t, living)
	if got := m.set.Position(from, m.now); got != a {
		t.Fatalf("Position(%v) = %d, want %d", from, got, a)
	}
	var want []entry
	if a < b {
		want = living[a:b]
	}
	if len(want) > 0 {
		same(t, "WalkRanks", steps(m.set.WalkRanks(a, b-a, false, m.now)), want, false)
		same(t, "WalkRanks back", steps(m.set.WalkRanks(b-1, b-a, true, m.now)), want, true)
	}
	same(t, "WalkFrom", steps(m.set.WalkFrom(from, m.now)), living[a:], false)
}

// steps makes a sequence of a walk.
func steps(w ordered.Walk) iter.Seq[ordered.Entry] {
	return func(yield func(ordered.Entry) bool) {
		for w.Next() && w.Score() == w.Entry().Score && yield(w.Entry()) {
		}
	}
}

func (m *model) scan(t *rapid.T) {
	seen := make(map[string]bool)
	for cursor := uint64(0); ; {
		cursor = m.set.Scan(cursor, m.now, func(e ordered.Entry) { seen[string(e.Member)] = true })
		if cursor == 0 {
			break
		}
	}
	if len(seen) != m.set.Len(m.now) {
		t.Fatalf("Scan gives %d members of %d", len(seen), m.set.Len(m.now))
	}
	e, ok := m.set.Random(m.now, rand.New(rand.NewPCG(1, 2)))
	if ok != (len(seen) > 0) || ok && !seen[string(e.Member)] {
		t.Fatalf("Random = %q, %v", e.Member, ok)
	}
}

func TestSetIsASortedSliceWithDeadlines(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"put": m.put, "putMany": m.putMany, "delete": m.delete, "setDeadline": m.setDeadline, "reap": m.reap,
			"advance":     func(t *rapid.T) { m.now += rapid.Int64Range(0, 20).Draw(t, "ms") },
			"deleteRange": m.deleteRange, "deleteInTheLoop": m.deleteInTheLoop, "scan": m.scan,
			"compact": func(t *rapid.T) { m.set.Compact(rapid.IntRange(1, 200).Draw(t, "budget")) },
			"freeze":  m.freeze, "thaw": m.thaw,
			"": m.check,
		})
		if !rapid.Bool().Draw(t, "live one first") {
			m.thaw(t)
		}
		for !m.set.Free(2) {
		}
		m.thaw(t)
		if m.mem.Held() != 0 || m.mem.Taken() != 0 {
			t.Fatalf("%d bytes of chunks and %d outside not given back", m.mem.Held(), m.mem.Taken())
		}
	})
}
