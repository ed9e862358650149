package stream_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/stream"
)

// noDeadline hides from rapid that the test has a deadline, which must not be asked
// for in a bubble.
type noDeadline struct{ rapid.TB }

func TestAGroupIsItsModel(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		round := 0
		draw.Check(noDeadline{t}, func(r *rapid.T) {
			round++
			m := &model{t: t, b: b, ctx: b.Context(), pending: map[int]*entry{}}
			m.s = newStream(t, b.Conn, b.Name(fmt.Sprint("m", round)), stream.Options[int]{})
			m.g = newGroup(t, m.s, "g", stream.GroupOptions{ClaimAfter: modelClaim, MaxDeliveries: modelMost})
			r.Repeat(map[string]func(*rapid.T){
				"add": m.add, "take": m.take, "ack": m.ack, "nack": m.nack, "extend": m.extend, "pass": m.pass,
			})
			m.finish(r)
		})
	})
}

const (
	modelClaim = time.Minute
	modelMost  = 3
)

// model of a group: entries are new, pending with a number of deliveries and an
// instant at which they come again, done or dead.
type model struct {
	t   *testing.T
	b   *backends.Backend
	ctx context.Context
	s   *stream.Stream[int]
	g   *stream.Group[int]

	fresh            []int          // in their order
	pending          map[int]*entry // by value
	next, dead, done int
}

// entry is one that is pending.
type entry struct {
	deliveries int
	again      time.Time
	handed     bool // back, by Nack
	d          *stream.Delivery[int]
}

// due counts the entries that may be taken again, and buries those that may not.
func (m *model) due() (n int) {
	for v, e := range m.pending {
		switch {
		case time.Now().Before(e.again):
		case e.deliveries >= modelMost:
			delete(m.pending, v)
			m.dead++
		default:
			n++
		}
	}
	return n
}

// one draws an entry that is pending.
func (m *model) one(r *rapid.T) (int, *entry) {
	if len(m.pending) == 0 {
		r.Skip("nothing is pending")
	}
	v := rapid.SampledFrom(slices.Sorted(maps.Keys(m.pending))).Draw(r, "entry")
	return v, m.pending[v]
}

func (m *model) add(*rapid.T) {
	add(m.t, m.ctx, m.s, m.next)
	m.fresh = append(m.fresh, m.next)
	m.next++
}

func (m *model) take(r *rapid.T) {
	n := m.due()
	if n == 0 && len(m.fresh) == 0 {
		r.Skip("nothing is there")
	}
	d := take(m.t, m.ctx, m.g, rapid.SampledFrom([]string{"a", "b"}).Draw(r, "consumer"), 1)[0]
	e := m.pending[d.Value]
	if n == 0 {
		if e != nil || d.Value != m.fresh[0] || d.Deliveries != 1 {
			r.Fatal("want the new entry", m.fresh[0], "got", d.Value, d.Deliveries)
		}
		m.fresh = m.fresh[1:]
		e = &entry{}
		m.pending[d.Value] = e
	} else if e == nil || time.Now().Before(e.again) || d.Deliveries != e.deliveries+1 {
		r.Fatal("want one that is due, got", d.Value, d.Deliveries)
	}
	e.deliveries, e.again, e.d, e.handed = d.Deliveries, time.Now().Add(modelClaim), d, false
}

func (m *model) ack(r *rapid.T) {
	v, e := m.one(r)
	if err := e.d.Ack(m.ctx); err != nil {
		r.Fatal(err)
	}
	if !e.handed { // else it does nothing
		delete(m.pending, v)
		m.done++
	}
}

func (m *model) nack(r *rapid.T) {
	v, e := m.one(r)
	delay := time.Duration(rapid.IntRange(0, 120).Draw(r, "s")) * time.Second
	if err := e.d.Nack(m.ctx, delay); err != nil {
		r.Fatal(err)
	}
	switch {
	case e.handed: // it changes nothing
	case e.deliveries >= modelMost:
		delete(m.pending, v)
		m.dead++
	default:
		e.again, e.handed = time.Now().Add(delay), true
	}
}

func (m *model) extend(r *rapid.T) {
	_, e := m.one(r)
	err := e.d.Extend(m.ctx)
	if e.handed != errors.Is(err, stream.ErrLost) || !e.handed && err != nil {
		r.Fatal(e.handed, err)
	}
	if !e.handed {
		e.again = time.Now().Add(modelClaim)
	}
}

func (m *model) pass(r *rapid.T) {
	m.b.Pass(time.Duration(rapid.IntRange(1, 90).Draw(r, "s")) * time.Second)
}

// finish takes the remaining entries: in the end everything is done or dead, and nothing comes.
func (m *model) finish(r *rapid.T) {
	for len(m.fresh)+len(m.pending) > 0 {
		m.b.Pass(3 * time.Minute)
		if m.due() == 0 && len(m.fresh) == 0 {
			break
		}
		d := take(m.t, m.ctx, m.g, "end", 1)[0]
		ack(m.t, m.ctx, d)
		if m.pending[d.Value] == nil {
			m.fresh = m.fresh[1:]
		}
		delete(m.pending, d.Value)
		m.done++
	}
	short, cancel := context.WithTimeout(m.ctx, 5*time.Second)
	defer cancel()
	for d, err := range m.g.Consume(short, "end") {
		r.Fatal("one too many", d, err)
	}
	letters, err := m.g.DeadLetters(m.ctx, "", 1000)
	if err != nil || len(letters) != m.dead || m.done+m.dead != m.next {
		r.Fatal(len(letters), "dead", m.dead, "done", m.done, "of", m.next, err)
	}
}
