package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// streamModel is a stream with one group, and a plain slice and map with the expected content.
type streamModel struct {
	db      *DB
	clock   *clock.Manual
	entries []modelEntry
	last    StreamID
	pending map[StreamID]XPending
	read    StreamID // the group's last id
}

type modelEntry struct {
	id    StreamID
	value string
}

var (
	streamKey   = []byte("s")
	streamGroup = []byte("g")
)

func (m *streamModel) tx(f func(*Tx)) {
	tx := m.db.Begin(0, streamKey)
	f(tx)
	tx.Commit()
}

func (m *streamModel) now() int64 { return m.clock.Micros() / 1000 }

func valueOf(e *StreamEntry) string {
	var b strings.Builder
	for range e.Fields() {
		name, value := e.Field()
		fmt.Fprintf(&b, "%s=%s;", name, value)
	}
	return b.String()
}

func (m *streamModel) add(t *rapid.T) {
	f := rapid.SampledFrom([]string{"f", "g"}).Draw(t, "field")
	v := rapid.SampledFrom([]string{"1", "", "text", strings.Repeat("long", 50)}).Draw(t, "value")
	x := XAdd{Auto: true, Pairs: [][]byte{[]byte(f), []byte(v)}}
	if rapid.Bool().Draw(t, "explicit") {
		x.Auto, x.ID = false, StreamID{Ms: uint64(m.now()), Seq: rapid.Uint64Range(0, 1<<40).Draw(t, "seq")}
	}
	m.tx(func(tx *Tx) {
		id, ok, err := tx.XAdd(streamKey, &x)
		if !x.Auto && !m.last.Less(x.ID) {
			if err != ErrStreamOrder {
				t.Fatalf("adding %v after %v: %v", x.ID, m.last, err)
			}
			return
		}
		if err != nil || !ok || !m.last.Less(id) || !x.Auto && id != x.ID {
			t.Fatalf("added %v: %v %v", id, ok, err)
		}
		m.last = id
		m.entries = append(m.entries, modelEntry{id, f + "=" + v + ";"})
	})
}

// some draws ids, mostly of existing entries.
func (m *streamModel) some(t *rapid.T) (ids []StreamID) {
	for range rapid.IntRange(1, 5).Draw(t, "ids") {
		if n := len(m.entries); n > 0 && rapid.IntRange(0, 5).Draw(t, "known") > 0 {
			ids = append(ids, m.entries[rapid.IntRange(0, n-1).Draw(t, "at")].id)
		} else {
			ids = append(ids, StreamID{Ms: uint64(m.now()), Seq: rapid.Uint64Range(0, 3).Draw(t, "seq")})
		}
	}
	return ids
}

func (m *streamModel) has(id StreamID) (modelEntry, bool) {
	i := slices.IndexFunc(m.entries, func(e modelEntry) bool { return e.id == id })
	if i < 0 {
		return modelEntry{}, false
	}
	return m.entries[i], true
}

func (m *streamModel) del(t *rapid.T) {
	ids := m.some(t)
	n := 0
	for _, id := range ids {
		if _, ok := m.has(id); ok {
			m.entries = slices.DeleteFunc(m.entries, func(e modelEntry) bool { return e.id == id })
			n++
		}
	}
	m.tx(func(tx *Tx) {
		if got, err := tx.XDel(streamKey, ids); err != nil || got != n {
			t.Fatalf("deleted %d, want %d: %v", got, n, err)
		}
	})
}

func (m *streamModel) trim(t *rapid.T) {
	k := rapid.IntRange(0, len(m.entries)).Draw(t, "keep")
	m.tx(func(tx *Tx) {
		if n, err := tx.XTrim(streamKey, StreamTrim{Len: uint64(k)}); err != nil || n != len(m.entries)-k {
			t.Fatalf("trimmed %d of %d: %v", n, len(m.entries), err)
		}
	})
	m.entries = m.entries[len(m.entries)-k:]
}

func drawConsumer(t *rapid.T) string {
	return rapid.SampledFrom([]string{"alice", "bob", "carol"}).Draw(t, "consumer")
}

func (m *streamModel) deliver(t *rapid.T) {
	c, count := drawConsumer(t), rapid.IntRange(0, 3).Draw(t, "count")
	noAck := rapid.IntRange(0, 4).Draw(t, "noack") == 0
	var want []modelEntry
	for _, e := range m.entries {
		if m.read.Less(e.id) && (count == 0 || len(want) < count) {
			want = append(want, e)
		}
	}
	var got []modelEntry
	x := XReadGroup{Group: streamGroup, Consumer: []byte(c), New: true, Count: count, NoAck: noAck, Begin: func() {},
		Visit: func(e *StreamEntry) { got = append(got, modelEntry{e.ID(), valueOf(e)}) }}
	m.tx(func(tx *Tx) {
		if served, err := tx.XReadGroup(streamKey, &x); err != nil || served != (len(want) > 0) || !slices.Equal(got, want) {
			t.Fatalf("delivered %v, want %v: %v", got, want, err)
		}
	})
	for _, e := range want {
		m.read = e.id
		if !noAck {
			m.pending[e.id] = XPending{ID: e.id, Consumer: c, Time: m.now(), Count: 1}
		}
	}
}

func (m *streamModel) ack(t *rapid.T) {
	ids := m.some(t)
	n := 0
	for _, id := range ids {
		if _, ok := m.pending[id]; ok {
			delete(m.pending, id)
			n++
		}
	}
	m.tx(func(tx *Tx) {
		if got, err := tx.XAck(streamKey, streamGroup, ids); err != nil || got != n {
			t.Fatalf("acknowledged %d, want %d: %v", got, n, err)
		}
	})
}

func (m *streamModel) claim(t *rapid.T) {
	x := XClaim{Group: streamGroup, Consumer: []byte(drawConsumer(t)), IDs: m.some(t), Time: -1, Count: -1}
	x.MinIdle = rapid.SampledFrom([]int64{0, 0, 10}).Draw(t, "idle")
	x.Force, x.JustID = rapid.Bool().Draw(t, "force"), rapid.Bool().Draw(t, "justid")
	var want, got []StreamID
	for _, id := range x.IDs {
		p, pending := m.pending[id]
		if _, ok := m.has(id); !ok {
			delete(m.pending, id)
			continue
		}
		if !pending && !x.Force || pending && x.MinIdle > 0 && m.now()-p.Time < x.MinIdle {
			continue
		}
		if !pending {
			p.Count = 1
		}
		if !x.JustID {
			p.Count++
		}
		m.pending[id] = XPending{ID: id, Consumer: string(x.Consumer), Time: m.now(), Count: p.Count}
		want = append(want, id)
	}
	m.tx(func(tx *Tx) {
		if err := tx.XClaim(streamKey, &x, func(e *StreamEntry) { got = append(got, e.ID()) }); err != nil || !slices.Equal(got, want) {
			t.Fatalf("claimed %v, want %v: %v", got, want, err)
		}
	})
}

func (m *streamModel) autoclaim(t *rapid.T) {
	x := XAutoClaim{Group: streamGroup, Consumer: []byte(drawConsumer(t)), Count: 1000, JustID: true}
	x.MinIdle = rapid.SampledFrom([]int64{0, 10}).Draw(t, "idle")
	for id, p := range m.pending {
		if _, ok := m.has(id); !ok {
			delete(m.pending, id)
		} else if m.now()-p.Time >= x.MinIdle {
			p.Consumer, p.Time = string(x.Consumer), m.now()
			m.pending[id] = p
		}
	}
	m.tx(func(tx *Tx) {
		if next, _, err := tx.XAutoClaim(streamKey, &x, func(*StreamEntry) {}); err != nil || !next.IsZero() {
			t.Fatalf("claimed up to %v: %v", next, err)
		}
	})
}

// state shows the whole content of the stream.
func state(tx *Tx) string {
	var b strings.Builder
	_, _ = tx.XRange(streamKey, XRange{Last: MaxStreamID}, func(e *StreamEntry) { fmt.Fprintln(&b, e.ID(), valueOf(e)) })
	all := XPendingRange{Last: MaxStreamID, Count: 1 << 30}
	_ = tx.XPending(streamKey, streamGroup, &all, func(p XPending) { fmt.Fprintln(&b, p) })
	if x, err := tx.XInfo(streamKey); err == nil {
		fmt.Fprintln(&b, x.Length, x.Last, x.MaxDeleted, x.First, x.Added)
		for _, g := range x.Groups() {
			fmt.Fprintln(&b, g.Name, g.Last, g.Read, g.Lag, g.Consumers, g.Pending)
		}
	}
	return b.String()
}

func (m *streamModel) check(t *rapid.T) {
	m.tx(func(tx *Tx) {
		_, s, err := tx.stream(streamKey)
		if err != nil || s == nil {
			t.Fatal(err)
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		var got, back []modelEntry
		_, _ = tx.XRange(streamKey, XRange{Last: MaxStreamID}, func(e *StreamEntry) { got = append(got, modelEntry{e.ID(), valueOf(e)}) })
		_, _ = tx.XRange(streamKey, XRange{Last: MaxStreamID, Reverse: true}, func(e *StreamEntry) { back = append(back, modelEntry{e.ID(), valueOf(e)}) })
		slices.Reverse(back)
		if !slices.Equal(got, m.entries) || !slices.Equal(back, m.entries) {
			t.Fatalf("holds %v, backward %v, want %v", got, back, m.entries)
		}
		n := 0
		all := XPendingRange{Last: MaxStreamID, Count: 1 << 30}
		_ = tx.XPending(streamKey, streamGroup, &all, func(p XPending) {
			n++
			if m.pending[p.ID] != p {
				t.Fatalf("pending %v, want %v", p, m.pending[p.ID])
			}
		})
		if n != len(m.pending) {
			t.Fatalf("%d pending, want %d", n, len(m.pending))
		}
	})
}

func TestStreamsBehaveAsSlicesAndTheirGroupsAsMaps(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &streamModel{clock: clock.NewManual(epoch), pending: map[StreamID]XPending{}}
		m.db = Open(Options{Databases: 1, Shards: 4, Clock: m.clock, RecordEffects: true})
		defer m.db.Close()
		m.tx(func(tx *Tx) {
			if err := tx.XGroupCreate(streamKey, streamGroup, XGroup{Last: true, Read: -1, Create: true}); err != nil {
				t.Fatal(err)
			}
		})
		t.Repeat(map[string]func(*rapid.T){
			"":          m.check,
			"add":       m.add,
			"del":       m.del,
			"trim":      m.trim,
			"deliver":   m.deliver,
			"ack":       m.ack,
			"claim":     m.claim,
			"autoclaim": m.autoclaim,
			"advance": func(t *rapid.T) {
				m.clock.Advance(time.Duration(rapid.IntRange(1, 20).Draw(t, "ms")) * time.Millisecond)
			},
			"copy": m.copy,
		})
	})
}

// copy copies the stream; the model continues with the copy.
func (m *streamModel) copy(t *rapid.T) {
	other := []byte("{s}2")
	tx := m.db.Begin(0, streamKey, other)
	defer tx.Commit()
	before := state(tx)
	for _, c := range [][2][]byte{{streamKey, other}, {other, streamKey}} {
		if ok, err := tx.Copy(c[0], c[1], 0, true); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	tx.Del(other)
	if after := state(tx); after != before {
		t.Fatalf("copied:\n%s\nwant:\n%s", after, before)
	}
}
