package wheel

import (
	"slices"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// model is a wheel beside a map that says what it must hold.
type model struct {
	w    *Wheel
	r    records
	free []uint32
	held map[uint32]int64 // reference to deadline
	now  int64            // the latest instant that the wheel has received
}

func TestWheelBehavesAsASetOfDeadlines(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &model{
			r:    make(records, 400),
			held: map[uint32]int64{},
			now:  rapid.SampledFrom([]int64{0, 1, 255, 65535, start, start &^ 0xffffff, 1<<40 - 3}).Draw(t, "start"),
		}
		for ref := range m.r {
			if ref > 0 {
				m.free = append(m.free, uint32(ref))
			}
		}
		m.w = New(m.now, m.r)
		t.Repeat(map[string]func(*rapid.T){
			"":        m.check,
			"add":     m.add,
			"addMany": m.addMany,
			"remove":  m.remove,
			"move":    m.move,
			"sync":    m.sync,
			"advance": m.advance,
			"wake":    m.wake,
			"change":  m.advanceChanging,
			"due":     m.due,
			"rewind":  m.rewind,
		})
	})
}

// distance draws milliseconds of every magnitude the wheel has a level for, and
// the neighbours of the levels' edges.
func distance(t *rapid.T, label string) int64 {
	shift := rapid.IntRange(0, 44).Draw(t, label+" magnitude")
	d := rapid.Int64Range(0, 1<<shift).Draw(t, label)
	if edge := rapid.SampledFrom([]int64{0, 0, 0, 1 << 8, 1 << 9, 1 << 16, 1 << 24, 1 << 32}).Draw(t, label+" edge"); edge > 0 {
		d = edge + d%5 - 2
	}
	return d
}

func (m *model) take(t *rapid.T) uint32 {
	if len(m.free) == 0 {
		t.Skip("no free record")
	}
	i := rapid.IntRange(0, len(m.free)-1).Draw(t, "free")
	ref := m.free[i]
	m.free = slices.Delete(m.free, i, i+1)
	return ref
}

func (m *model) pick(t *rapid.T) uint32 {
	if len(m.held) == 0 {
		t.Skip("empty")
	}
	refs := make([]uint32, 0, len(m.held))
	for ref := range m.held {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	return rapid.SampledFrom(refs).Draw(t, "held")
}

func (m *model) put(ref uint32, d int64) {
	d = min(max(d, 0), MaxDeadline)
	m.w.Add(ref, d)
	m.held[ref] = d
}

func (m *model) drop(ref uint32) {
	delete(m.held, ref)
	m.free = append(m.free, ref)
}

// expired counts the deadlines before now, by the map.
func (m *model) expired(now int64) (n int) {
	for _, d := range m.held {
		if d < now {
			n++
		}
	}
	return n
}

func (m *model) add(t *rapid.T) {
	d := m.now + distance(t, "ttl")
	if rapid.IntRange(0, 9).Draw(t, "past") == 0 {
		d = m.now - distance(t, "ago")
	}
	m.put(m.take(t), d)
}

func (m *model) addMany(t *rapid.T) {
	d, width := m.now+distance(t, "ttl"), rapid.SampledFrom([]int64{1, 3, 300, 100_000}).Draw(t, "width")
	for i := range rapid.Int64Range(1, 60).Draw(t, "n") {
		m.put(m.take(t), d+i*7919%width)
	}
}

func (m *model) remove(t *rapid.T) {
	ref := m.pick(t)
	m.w.Remove(ref)
	m.drop(ref)
}

func (m *model) move(t *rapid.T) {
	from, to := m.pick(t), m.take(t)
	m.r[to] = m.r[from]
	m.r[from] = Entry{^uint32(0), ^uint32(0), 0, 0, 7} // poison
	m.w.Move(from, to)
	m.held[to] = m.held[from]
	m.drop(from)
}

func (m *model) step(t *rapid.T) int64 {
	now := m.now + distance(t, "step")
	if rapid.IntRange(0, 9).Draw(t, "back") == 0 {
		now = m.now - distance(t, "back by")
	}
	m.now = max(m.now, now)
	return now
}

func (m *model) sync(t *rapid.T) {
	now, budget := m.step(t), rapid.IntRange(0, 100).Draw(t, "budget")
	moved := m.w.Sync(now, budget)
	if moved > budget {
		t.Fatalf("moved %d of %d", moved, budget)
	}
	if next, ok := m.w.NextCascade(); now == m.now && moved < budget && (m.w.Time() != m.now || ok && next <= m.now) {
		t.Fatalf("Sync stopped at %d of %d, more to move at %d", m.w.Time(), m.now, next)
	}
}

// advance fires some of the due, never more, each once, and, if it stops short of
// its budget, all of those before the wheel's time.
func (m *model) advance(t *rapid.T) {
	now, budget := m.step(t), rapid.IntRange(0, 100).Draw(t, "budget")
	fired := m.w.Advance(now, budget, func(ref uint32) { m.fired(t, ref) })
	if fired > budget || fired < budget && m.expired(m.w.Time()) > 0 {
		t.Fatalf("fired %d of a budget of %d, %d left", fired, budget, m.expired(m.w.Time()))
	}
}

func (m *model) fired(t *rapid.T, ref uint32) {
	d, ok := m.held[ref]
	if !ok || d >= m.w.Time() || m.r[ref].Linked() || m.r[ref].Deadline() != d {
		t.Fatalf("fired %d of deadline %d (held %v) at %d", ref, d, ok, m.now)
	}
	m.drop(ref)
}

// wake goes to where Next says, and there must be something to do.
func (m *model) wake(t *rapid.T) {
	next, ok := m.w.Next()
	if !ok {
		t.Skip("empty")
	}
	m.now = max(m.now, next)
	if fired := m.w.Advance(next, 1000, func(ref uint32) { m.fired(t, ref) }); fired == 0 {
		if again, ok := m.w.Next(); ok && again <= next {
			t.Fatalf("Advance at %d did nothing, and Next is %d", next, again)
		}
	}
}

// advanceChanging removes, adds and moves entries while they fire.
func (m *model) advanceChanging(t *rapid.T) {
	now := m.step(t)
	adds := rapid.SliceOfN(rapid.Int64Range(-1000, 100_000), 0, 10).Draw(t, "adds")
	removes := rapid.IntRange(0, 10).Draw(t, "removes")
	m.w.Advance(now, 100, func(ref uint32) {
		m.fired(t, ref)
		if len(adds) > 0 {
			m.put(m.take(t), m.now+adds[0])
			adds = adds[1:]
		}
		if removes > 0 && len(m.held) > 0 {
			removes--
			m.remove(t)
		}
		if len(m.held) > 0 && len(m.free) > 0 {
			m.move(t)
		}
	})
}

// due does not belong to check: it may lower slots, and what others do before counts too.
func (m *model) due(t *rapid.T) {
	at := m.now
	if rapid.Bool().Draw(t, "future") {
		at += distance(t, "ahead")
	}
	if got, want := m.w.Due(at), m.expired(at); got != want {
		t.Fatalf("%d due at %d, want %d", got, at, want)
	}
}

// rewind sets the time back, and entries that are not due then are due no longer.
func (m *model) rewind(t *rapid.T) {
	was, now := m.w.Time(), max(0, m.now-distance(t, "back by"))
	if m.w.Rewind(now); m.w.Time() != min(was, now) {
		t.Fatalf("the time is %d after Rewind(%d) at %d", m.w.Time(), now, was)
	}
	m.now = min(m.now, now)
	if got, want := m.w.Ripe(), m.expired(m.w.Time()); got != want {
		t.Fatalf("%d are due at %d, want %d", got, m.w.Time(), want)
	}
}

func (m *model) check(t *rapid.T) {
	if err := m.w.Check(); err != nil {
		t.Fatal(err)
	}
	if m.w.Len() != len(m.held) {
		t.Fatalf("Len %d, want %d", m.w.Len(), len(m.held))
	}
	nearest, seen := int64(MaxDeadline+1), 0
	for _, d := range m.held {
		nearest = min(nearest, d)
	}
	m.w.Each(func(ref uint32) {
		if d, ok := m.held[ref]; !ok || d != m.r[ref].Deadline() {
			t.Fatalf("holds %d of deadline %d, want %d, %v", ref, m.r[ref].Deadline(), d, ok)
		}
		seen++
	})
	next, ok := m.w.Next()
	if seen != len(m.held) || ok != (seen > 0) {
		t.Fatalf("Each saw %d of %d, Next says %v", seen, len(m.held), ok)
	}
	if ok && next > max(nearest+1, m.w.Time()) {
		t.Fatalf("Next is %d, after %d is due", next, nearest)
	}
}
