package limiter_test

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/limiter"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// grant is a grant of the model. id is that of a reservation, 0 for another grant.
type grant struct{ at, cost, id int64 }

// model is the image of a limiter, and the grants that made it. It decides by walks over all grants.
type model struct {
	p      limiter.Params
	now    int64
	grants []grant // by instant
	ids    int64   // the last id of a reservation
	img    []byte
}

func newModel(t *rapid.T) *model {
	m := &model{now: rapid.Int64Range(1, 1<<40).Draw(t, "now")}
	m.p = limiter.Params{Algo: limiter.Algo(rapid.IntRange(0, int(limiter.Algos)-1).Draw(t, "algo")),
		Limit: rapid.Int64Range(1, 20).Draw(t, "limit"), Period: rapid.Int64Range(1000, 5000).Draw(t, "period")}
	if m.p.Algo == limiter.GCRA {
		m.p.Burst = rapid.Int64Range(0, 40).Draw(t, "burst")
	}
	if err := m.p.Check(); err != nil {
		t.Fatal(err)
	}
	var s limiter.State
	s.New(m.p.Algo, m.now)
	s.Adopt(m.now, m.p)
	m.save(&s)
	return m
}

// state returns the limiter at an instant, in memory of its own.
func (m *model) state(at int64) *limiter.State { return load(m.img, at, m.p) }

func load(img []byte, at int64, p limiter.Params) *limiter.State {
	s := new(limiter.State)
	s.Load(bytes.Clone(img))
	s.Adopt(at, p)
	return s
}

func (m *model) save(s *limiter.State) {
	m.img = make([]byte, s.Size())
	s.Save(m.img)
}

// add adds a grant behind those that are not later.
func (m *model) add(g grant) {
	i := len(m.grants)
	for i > 0 && m.grants[i-1].at > g.at {
		i--
	}
	m.grants = slices.Insert(m.grants, i, g)
}

// taken returns the cost of the grants from an instant on, and before another one.
func (m *model) taken(from, before int64) (n int64) {
	for _, g := range m.grants {
		if g.at >= from && g.at < before {
			n += g.cost
		}
	}
	return n
}

// allows reports whether the rule of the algorithm has room for a cost at an instant.
func (m *model) allows(at, cost int64) bool {
	switch m.p.Algo {
	case limiter.GCRA:
		return m.conforms(at, cost)
	case limiter.Log:
		return m.taken(at-m.p.Period+1, at+1)+cost <= m.p.Limit
	}
	start := at - at%m.p.Period
	n := m.taken(start, at+1)
	if m.p.Algo == limiter.Window {
		share := m.taken(start-m.p.Period, start) * (start + m.p.Period - at)
		n += (share + m.p.Period - 1) / m.p.Period
	}
	return n+cost <= m.p.Limit
}

// conforms reports whether a grant conforms, and each later reservation after it. It counts time in us / limit, so that no step rounds.
func (m *model) conforms(at, cost int64) bool {
	tat, room, placed := int64(0), m.p.Burst*m.p.Period, false
	take := func(at, cost int64) bool {
		tat = max(tat, at*m.p.Limit) + cost*m.p.Period
		return tat <= at*m.p.Limit+room
	}
	for _, g := range m.grants {
		if !placed && g.at > at {
			if placed = true; !take(at, cost) {
				return false
			}
		}
		if !take(g.at, g.cost) && placed {
			return false
		}
	}
	return placed || take(at, cost)
}

// cost draws a cost up to the capacity.
func (m *model) cost(t *rapid.T) int64 {
	return rapid.Int64Range(1, m.state(m.now).Capacity()).Draw(t, "cost")
}

// take takes a cost if there is room for it, and may give it back at once.
func (m *model) take(t *rapid.T) {
	cost, s := m.cost(t), m.state(m.now)
	allowed := s.Earliest(m.now, cost) == m.now
	if allowed != m.allows(m.now, cost) {
		t.Fatalf("%+v at %d after %v: a cost of %d is allowed: %v", m.p, m.now, m.grants, cost, allowed)
	}
	if !allowed {
		return
	}
	s.Take(m.now, cost)
	g := s.Granted(m.now, cost)
	m.save(s)
	if !rapid.Bool().Draw(t, "undo") {
		m.add(grant{m.now, cost, 0})
		return
	}
	s = m.state(m.now)
	if _, ok := s.Undo(m.now, g, nil); !ok {
		t.Fatalf("%+v at %d after %v: a cost of %d cannot be given back", m.p, m.now, m.grants, cost)
	}
	m.save(s)
}

// earliest compares the first instant that has room, and reserves it.
func (m *model) earliest(t *rapid.T) {
	cost, s := m.cost(t), m.state(m.now)
	at := s.Earliest(m.now, cost)
	if at < m.now || !m.allows(at, cost) {
		t.Fatalf("%+v at %d after %v: %d has no room for %d", m.p, m.now, m.grants, at, cost)
	}
	if at == m.now {
		return
	}
	if before := rapid.Int64Range(m.now, at-1).Draw(t, "before"); m.allows(before, cost) {
		t.Fatalf("%+v at %d after %v: %d has room for %d, and Earliest says %d", m.p, m.now, m.grants, before, cost, at)
	}
	if m.p.Algo == limiter.GCRA {
		m.ids++
		if _, err := s.Reserve(limiter.Reservation{ID: m.ids, Cost: cost, Due: at}, nil); err != nil {
			t.Fatal(err)
		}
		m.save(s)
		m.add(grant{at, cost, m.ids})
	}
}

// cancel cancels the reservation that is due last.
func (m *model) cancel(t *rapid.T) {
	n := len(m.grants) - 1
	if n < 0 || m.grants[n].id == 0 || m.grants[n].at <= m.now {
		return
	}
	s, id := m.state(m.now), m.grants[n].id
	if r, ok := s.Reserved(id); !ok || r.Due != m.grants[n].at || r.Cost != m.grants[n].cost {
		t.Fatalf("the reservation %d is %+v, %v; want %+v", id, r, ok, m.grants[n])
	}
	s.Cancel(id, nil)
	m.save(s)
	m.grants = m.grants[:n]
}

func (m *model) advance(t *rapid.T) { m.now += rapid.Int64Range(0, 2*m.p.Period).Draw(t, "us") }

// check compares what the limiter says of itself, and a copy that went through a file.
func (m *model) check(t *rapid.T) {
	s := m.state(m.now)
	left := s.Remaining(m.now)
	if left > 0 && !m.allows(m.now, left) || m.allows(m.now, left+1) {
		t.Fatalf("%+v at %d after %v: %d remain", m.p, m.now, m.grants, left)
	}
	full := s.Full(m.now)
	if then := m.state(max(m.now, full)); then.Remaining(max(m.now, full)) != then.Capacity() {
		t.Fatalf("%+v at %d after %v: it is not full at %d", m.p, m.now, m.grants, full)
	}
	if then := m.state(full - 1); full > m.now && then.Remaining(full-1) == then.Capacity() {
		t.Fatalf("%+v at %d after %v: it is full before %d", m.p, m.now, m.grants, full)
	}
	img, ok := limiter.Restore(limiter.Compact(bytes.Clone(m.img)))
	if !ok {
		t.Fatalf("%+v at %d after %v: a file's image is refused", m.p, m.now, m.grants)
	}
	if c := load(img, m.now, m.p); c.Remaining(m.now) != left || c.Full(m.now) != full {
		t.Fatalf("%+v at %d after %v: the copy of a file has %d, not %d", m.p, m.now, m.grants, c.Remaining(m.now), left)
	}
}

func TestALimiterAllowsWhatItsGrantsLeaveRoomFor(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){"take": m.take, "earliest": m.earliest, "cancel": m.cancel, "advance": m.advance, "": m.check})
	})
}
