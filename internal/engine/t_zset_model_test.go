package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"pgregory.net/rapid"
)

// zmember is a member in the model.
type zmember struct {
	name     string
	score    float64
	deadline int64
}

// zsetModel is an engine with sorted sets, and plain maps with their expected content.
type zsetModel struct {
	containerModel
	keys   map[string]map[string]zmember
	scores []float64
}

var (
	zsetKeys    = []string{"a", "b", "{a}c"}
	zsetMembers = []string{"", "m", "12", "-7", "member", "0", "x1", "x2", "x3", "x4", "x5", "x6", strings.Repeat("long", 10), strings.Repeat("M", 70_000)}
)

func TestSortedSetsBehaveAsSortedSlicesWithDeadlines(t *testing.T) {
	tier.Sequential(t)
	draw.Check(t, func(t *rapid.T) {
		m := &zsetModel{containerModel: newContainerModel(), keys: map[string]map[string]zmember{}}
		m.layout.ZSetEntries = rapid.SampledFrom([]int{0, 3, 8, 128}).Draw(t, "entries")
		m.layout.ZSetValue = rapid.SampledFrom([]int{4, 64, 100_000}).Draw(t, "longest")
		m.scores = rapid.SampledFrom([][]float64{{0}, {1, 2, 3.5, -1e300}, {math.Inf(-1), -3, 0, 0.1, 1e20, math.Inf(1)}}).Draw(t, "scores")
		m.open()
		defer m.db.Close()
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"zadd":     m.zadd,
			"zaddMany": m.zaddMany,
			"zincrby":  m.zincrby,
			"zrem":     m.zrem,
			"zremrank": m.zremRange,
			"zpop":     m.zpop,
			"store":    m.store,
			"combine":  m.combine,
			"deadline": m.deadline,
			"persist":  m.persist,
			"zaddex":   m.zaddex,
			"advance":  m.advance,
			"reclaim":  m.reclaim,
			"sample":   m.sample,
			"scan":     m.scan,
			"copy":     m.copy,
			"rename":   m.rename,
			"restore":  m.restore,
		})
		if err := m.db.Check(); err != nil {
			t.Fatal(err)
		}
		m.replay(t)
	})
}

// of returns the living members of a set.
func (m *zsetModel) of(key string) map[string]zmember {
	z := m.keys[key]
	now := m.now()
	for name, e := range z {
		if e.deadline != 0 && now > e.deadline {
			delete(z, name)
		}
	}
	if z == nil {
		z = map[string]zmember{}
		m.keys[key] = z
	}
	return z
}

// list returns the living members of a set in order.
func (m *zsetModel) list(key string) []zmember {
	return slices.SortedFunc(maps.Values(m.of(key)), func(a, b zmember) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.name, b.name))
	})
}

func drawZSet(t *rapid.T) string    { return rapid.SampledFrom(zsetKeys).Draw(t, "key") }
func drawZMember(t *rapid.T) string { return rapid.SampledFrom(zsetMembers).Draw(t, "member") }
func (m *zsetModel) drawScore(t *rapid.T) float64 {
	return rapid.SampledFrom(m.scores).Draw(t, "score")
}
func drawZAdd(t *rapid.T) (o ZAddOptions) {
	return zaddOptions[rapid.IntRange(0, len(zaddOptions)-1).Draw(t, "options")]
}
func (m *zsetModel) put(key, name string, s float64, d int64) { m.of(key)[name] = zmember{name, s, d} }

var zaddOptions = []ZAddOptions{{}, {}, {IfAbsent: true}, {IfExists: true}, {IfGreater: true}, {IfLess: true}, {IfExists: true, IfGreater: true}}

// addOne adds a member to the model, and returns the expected result of ZAdd.
func (m *zsetModel) addOne(key, name string, score float64, o ZAddOptions) zoutcome {
	old, there := m.of(key)[name]
	switch {
	case !there && o.IfExists, there && o.IfAbsent, there && o.IfGreater && score <= old.score, there && o.IfLess && score >= old.score:
		return zRefused
	case there && old.score == score:
		return zSame
	}
	m.put(key, name, score, old.deadline)
	if there {
		return zUpdated
	}
	return zAdded
}

func (m *zsetModel) zadd(t *rapid.T) {
	key, o := drawZSet(t), drawZAdd(t)
	var items []Scored
	added, updated := 0, 0
	for range rapid.IntRange(1, 6).Draw(t, "pairs") {
		name, score := drawZMember(t), m.drawScore(t)
		items = append(items, Scored{score, []byte(name)})
		switch m.addOne(key, name, score, o) {
		case zAdded:
			added++
		case zUpdated:
			updated++
		}
	}
	m.do(func(tx *Tx) {
		if a, u, err := tx.ZAdd([]byte(key), items, o); a != added || u != updated || err != nil {
			t.Fatalf("ZAdd %v: %d, %d, %v, want %d, %d", items, a, u, err, added, updated)
		}
	})
}

func (m *zsetModel) zaddMany(t *rapid.T) {
	key, from := drawZSet(t), rapid.IntRange(0, 50).Draw(t, "from")
	var items []Scored
	for i := range rapid.IntRange(1, 40).Draw(t, "n") {
		name, score := fmt.Sprint("many", from+i), m.drawScore(t)
		items = append(items, Scored{score, []byte(name)})
		m.addOne(key, name, score, ZAddOptions{})
	}
	m.do(func(tx *Tx) { _, _, _ = tx.ZAdd([]byte(key), items, ZAddOptions{}) })
}

func (m *zsetModel) zincrby(t *rapid.T) {
	key, name, by, o := drawZSet(t), drawZMember(t), m.drawScore(t), drawZAdd(t)
	old, there := m.of(key)[name]
	score := by
	if there {
		score += old.score
	}
	m.do(func(tx *Tx) {
		got, done, err := tx.ZIncrBy([]byte(key), []byte(name), by, o)
		if math.IsNaN(score) && !(there && o.IfAbsent) {
			if err != ErrScoreNaN {
				t.Fatalf("ZIncrBy to NaN: %v", err)
			}
			return
		}
		want := !(there && o.IfAbsent) && m.addOne(key, name, score, o) != zRefused
		if done != want || err != nil || done && got != score {
			t.Fatalf("ZIncrBy %q %v: %v, %v, %v, want %v, %v", name, by, got, done, err, score, want)
		}
	})
}

func (m *zsetModel) zrem(t *rapid.T) {
	key, want := drawZSet(t), 0
	var names [][]byte
	for range rapid.IntRange(1, 5).Draw(t, "n") {
		name := drawZMember(t)
		names = append(names, []byte(name))
		if _, ok := m.of(key)[name]; ok {
			want++
			delete(m.of(key), name)
		}
	}
	m.do(func(tx *Tx) {
		if n, err := tx.ZRem([]byte(key), names); n != want || err != nil {
			t.Fatalf("ZRem: %d, %v, want %d", n, err, want)
		}
	})
}

// drawRange draws a range and returns the members of list in it, in its order.
func (m *zsetModel) drawRange(t *rapid.T, list []zmember, uniform bool) (r ZRange, want []zmember) {
	r.Rev = rapid.Bool().Draw(t, "rev")
	by := rapid.IntRange(0, 2).Draw(t, "by")
	if by == 2 && !uniform {
		by = 1
	}
	if r.By = ZOrder(by); r.By == ByRank {
		r.Start, r.Stop = rapid.Int64Range(-9, 9).Draw(t, "start"), rapid.Int64Range(-9, 9).Draw(t, "stop")
		want = slices.Clone(list)
		if r.Rev {
			slices.Reverse(want)
		}
		at := func(i int64) int {
			if i < 0 {
				i += int64(len(want))
			}
			return int(i)
		}
		from, to := max(at(r.Start), 0), min(at(r.Stop)+1, len(want))
		return r, want[min(from, len(want)):max(to, min(from, len(want)))]
	}
	r.Min = ScoreBound{m.drawScore(t), rapid.Bool().Draw(t, "open")}
	r.Max = ScoreBound{m.drawScore(t), rapid.Bool().Draw(t, "open")}
	r.MinLex = LexBound{[]byte(drawZMember(t)), LexKind(rapid.IntRange(0, 3).Draw(t, "kind"))}
	r.MaxLex = LexBound{[]byte(drawZMember(t)), LexKind(rapid.IntRange(0, 3).Draw(t, "kind"))}
	for _, e := range list {
		if r.By == ByScore && (e.score < r.Min.Score || e.score == r.Min.Score && r.Min.Open || e.score > r.Max.Score || e.score == r.Max.Score && r.Max.Open) {
			continue
		}
		if r.By == ByLex && (r.MinLex.outside(packed.Str{B: []byte(e.name)}, -1) || r.MaxLex.outside(packed.Str{B: []byte(e.name)}, +1)) {
			continue
		}
		want = append(want, e)
	}
	if r.Rev {
		slices.Reverse(want)
	}
	if r.Limited = rapid.Bool().Draw(t, "limited"); r.Limited {
		r.Offset, r.Count = rapid.Int64Range(-1, 5).Draw(t, "offset"), rapid.Int64Range(-1, 5).Draw(t, "count")
		switch {
		case r.Offset < 0:
			want = nil
		default:
			want = want[min(int(r.Offset), len(want)):]
		}
		if r.Count >= 0 {
			want = want[:min(int(r.Count), len(want))]
		}
	}
	return r, want
}

func (m *zsetModel) zremRange(t *rapid.T) {
	key := drawZSet(t)
	r, want := m.drawRange(t, m.list(key), len(m.scores) == 1)
	if r.Limited || r.Rev {
		return
	}
	for _, e := range want {
		delete(m.of(key), e.name)
	}
	m.do(func(tx *Tx) {
		if n, err := tx.ZRemRange([]byte(key), &r); n != len(want) || err != nil {
			t.Fatalf("ZRemRange %+v: %d, %v, want %d", r, n, err, len(want))
		}
	})
}

func (m *zsetModel) zpop(t *rapid.T) {
	key, n, highest := drawZSet(t), rapid.IntRange(0, 4).Draw(t, "n"), rapid.Bool().Draw(t, "highest")
	want := m.list(key)
	if highest {
		slices.Reverse(want)
	}
	want = want[:min(n, len(want))]
	m.do(func(tx *Tx) {
		var got []zmember
		_, err := tx.ZPop([]byte(key), n, highest, func(n int) {
			if n != len(want) {
				t.Fatalf("ZPop begins with %d, want %d", n, len(want))
			}
		}, func(member []byte, score float64) { got = append(got, zmember{string(member), score, 0}) })
		if err != nil {
			t.Fatal(err)
		}
		sameMembers(t, "ZPop", got, want)
	})
	for _, e := range want {
		delete(m.of(key), e.name)
	}
}

func sameMembers(t *rapid.T, what string, got, want []zmember) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b zmember) bool { return a.name == b.name && a.score == b.score }) {
		t.Fatalf("%s: %.300v, want %.300v", what, got, want)
	}
}

func (m *zsetModel) store(t *rapid.T) {
	src, dst := drawZSet(t), drawZSet(t)
	r, want := m.drawRange(t, m.list(src), len(m.scores) == 1)
	m.do(func(tx *Tx) {
		if n, err := tx.ZRangeStore([]byte(dst), []byte(src), &r); n != len(want) || err != nil {
			t.Fatalf("ZRangeStore: %d, %v, want %d", n, err, len(want))
		}
	})
	m.replace(dst, want)
}

func (m *zsetModel) replace(key string, list []zmember) {
	m.keys[key] = map[string]zmember{}
	for _, e := range list {
		m.put(key, e.name, e.score, 0)
	}
}

func (m *zsetModel) combine(t *rapid.T) {
	c := ZCombination{Operation: ZOperation(rapid.IntRange(0, 2).Draw(t, "op")), Aggregate: Aggregate(rapid.IntRange(1, 2).Draw(t, "aggregate"))}
	var names []string
	for range rapid.IntRange(1, 3).Draw(t, "keys") {
		names = append(names, drawZSet(t))
		c.Keys = append(c.Keys, []byte(names[len(names)-1]))
	}
	counts, best := map[string]int{}, map[string]zmember{}
	for i, key := range names {
		for _, e := range m.list(key) {
			b, there := best[e.name]
			switch {
			case c.Operation == ZDiff && i > 0:
				delete(best, e.name)
				continue
			case there && c.Aggregate == Min:
				e.score = min(b.score, e.score)
			case there:
				e.score = max(b.score, e.score)
			}
			best[e.name] = e
			counts[e.name]++
		}
	}
	m.keys["want"] = best
	if c.Operation == ZInter {
		for name := range best {
			if counts[name] < len(names) {
				delete(best, name)
			}
		}
	}
	want, dst := m.list("want"), drawZSet(t)
	delete(m.keys, "want")
	m.do(func(tx *Tx) {
		if c.Operation == ZInter {
			if n, err := tx.ZInterCard(c.Keys, 2); n != min(len(want), 2) || err != nil {
				t.Fatalf("ZInterCard: %d, %v, want %d of 2", n, err, len(want))
			}
		}
		if n, err := tx.ZCombineStore([]byte(dst), &c); n != len(want) || err != nil {
			t.Fatalf("ZCombineStore %+v: %d, %v, want %d", c, n, err, len(want))
		}
	})
	m.replace(dst, want)
}

// names draws some members.
func (m *zsetModel) names(t *rapid.T) (names []string, args [][]byte) {
	for range rapid.IntRange(1, 4).Draw(t, "n") {
		name := drawZMember(t)
		names, args = append(names, name), append(args, []byte(name))
	}
	return names, args
}

func (m *zsetModel) deadline(t *rapid.T) {
	key, c := drawZSet(t), condition(t)
	names, args := m.names(t)
	d := m.now() + rapid.Int64Range(-2, 30).Draw(t, "ttl")
	var want, got []int
	for _, name := range names {
		e, ok := m.of(key)[name]
		switch {
		case !ok:
			want = append(want, ItemMissing)
		case !c.allows(e.deadline, d):
			want = append(want, ItemRefused)
		case d <= m.now():
			delete(m.of(key), name)
			want = append(want, ItemOutlived)
		default:
			m.put(key, name, e.score, d)
			want = append(want, ItemDone)
		}
	}
	m.do(func(tx *Tx) {
		err := tx.ZExpire([]byte(key), args, d, c, func(code int) { got = append(got, code) })
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("ZExpire: %v, %v, want %v", got, err, want)
		}
	})
}

func (m *zsetModel) persist(t *rapid.T) {
	key := drawZSet(t)
	names, args := m.names(t)
	var want, got []int
	for _, name := range names {
		e, ok := m.of(key)[name]
		switch {
		case !ok:
			want = append(want, ItemMissing)
		case e.deadline == 0:
			want = append(want, ItemUntimed)
		default:
			m.put(key, name, e.score, 0)
			want = append(want, ItemDone)
		}
	}
	m.do(func(tx *Tx) {
		err := tx.ZPersist([]byte(key), args, func(code int) { got = append(got, code) })
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("ZPersist: %v, %v, want %v", got, err, want)
		}
	})
}

func (m *zsetModel) zaddex(t *rapid.T) {
	key, o := drawZSet(t), drawZAdd(t)
	times := ItemOptions{Keep: rapid.Bool().Draw(t, "keep"), Max: rapid.IntRange(0, 12).Draw(t, "max")}
	if !times.Keep && rapid.Bool().Draw(t, "timed") {
		times.Deadline = m.now() + rapid.Int64Range(-1, 30).Draw(t, "ttl")
	}
	names, args := m.names(t)
	var items []Scored
	fresh := map[string]bool{}
	for i := range names {
		items = append(items, Scored{m.drawScore(t), args[i]})
		if _, there := m.of(key)[names[i]]; !there && !o.IfExists {
			fresh[names[i]] = true
		}
	}
	past := times.Deadline != 0 && times.Deadline <= m.now()
	full := !past && times.Max > 0 && len(fresh) > 0 && len(m.of(key))+len(fresh) > times.Max
	added, updated := 0, 0
	for i, name := range names {
		if full {
			break
		}
		switch m.addOneEx(key, name, items[i].Score, o, times, past) {
		case zAdded:
			added++
		case zUpdated:
			updated++
		}
	}
	m.do(func(tx *Tx) {
		a, u, err := tx.ZAddEx([]byte(key), items, o, times)
		switch {
		case errors.As(err, new(*BoundError)) != full, err != nil && !full:
			t.Fatalf("ZAddEx: %v, want full: %v", err, full)
		case !past && (a != added || u != updated):
			t.Fatalf("ZAddEx %v: %d, %d, want %d, %d", items, a, u, added, updated)
		}
	})
}

// addOneEx does the work of addOne for a member that gets a deadline, or is removed if the deadline is past.
func (m *zsetModel) addOneEx(key, name string, score float64, o ZAddOptions, times ItemOptions, past bool) zoutcome {
	done := m.addOne(key, name, score, o)
	switch {
	case done == zRefused:
	case past:
		delete(m.of(key), name)
	case !times.Keep:
		m.put(key, name, m.of(key)[name].score, times.Deadline)
	}
	return done
}

func (m *zsetModel) reclaim(t *rapid.T) { m.db.SetActiveExpiry(rapid.Bool().Draw(t, "active")) }

func (m *zsetModel) rename(t *rapid.T) {
	from, to := drawZSet(t), drawZSet(t)
	m.do(func(tx *Tx) {
		if ok, _ := tx.Rename([]byte(from), []byte(to), false); ok != (len(m.of(from)) > 0) {
			t.Fatalf("Rename: %v", ok)
		}
		if len(m.of(from)) > 0 && from != to {
			m.keys[to] = m.of(from)
			delete(m.keys, from)
		}
	})
}

func (m *zsetModel) restore(t *rapid.T) {
	from, to := drawZSet(t), drawZSet(t)
	m.do(func(tx *Tx) {
		payload, ok := tx.Dump(nil, []byte(from))
		if ok != (len(m.of(from)) > 0) {
			t.Fatalf("Dump: %v, of %d members", ok, len(m.of(from)))
		}
		if !ok {
			return
		}
		if err := tx.Restore([]byte(to), payload, RestoreOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
		m.keys[to] = maps.Clone(m.of(from))
	})
}

func (m *zsetModel) sample(t *rapid.T) {
	key, n := drawZSet(t), rapid.IntRange(0, 20).Draw(t, "n")
	z := m.of(key)
	m.do(func(tx *Tx) {
		v, _ := tx.ZSet([]byte(key), true)
		seen := map[string]bool{}
		v.Sample(n, func(member []byte, score float64) {
			if e, ok := z[string(member)]; !ok || e.score != score || seen[string(member)] {
				t.Fatalf("Sample gives %q %v", member, score)
			}
			seen[string(member)] = true
		})
		if len(seen) != min(n, len(z)) {
			t.Fatalf("Sample gives %d of %d", len(seen), n)
		}
		member, _, ok := v.Random()
		if _, there := z[string(member)]; ok != (len(z) > 0) || ok && !there {
			t.Fatalf("Random gives %q, %v", member, ok)
		}
	})
}

func (m *zsetModel) scan(t *rapid.T) {
	key := drawZSet(t)
	z := m.of(key)
	m.do(func(tx *Tx) {
		v, _ := tx.ZSet([]byte(key), false)
		seen := map[string]bool{}
		for cursor := uint64(0); ; {
			cursor = v.Scan(cursor, 5, func(member []byte, score float64) {
				if z[string(member)].score != score {
					t.Fatalf("Scan gives %q %v", member, score)
				}
				seen[string(member)] = true
			})
			if cursor == 0 {
				break
			}
		}
		if len(seen) != len(z) {
			t.Fatalf("Scan gives %d of %d", len(seen), len(z))
		}
	})
}

func (m *zsetModel) copy(t *rapid.T) {
	from, to := drawZSet(t), drawZSet(t)
	m.do(func(tx *Tx) {
		v, _ := tx.ZSet([]byte(from), false)
		if ok, err := tx.Copy([]byte(from), []byte(to), 0, true); ok != (v.Len() > 0 && from != to) || err != nil {
			t.Fatalf("Copy: %v, %v", ok, err)
		}
	})
	if len(m.of(from)) > 0 {
		m.keys[to] = maps.Clone(m.of(from))
	}
}

func (m *zsetModel) check(t *rapid.T) {
	for _, key := range zsetKeys {
		list := m.list(key)
		m.do(func(tx *Tx) { m.checkSet(t, tx, key, list) })
	}
}

func (m *zsetModel) checkSet(t *rapid.T, tx *Tx, key string, list []zmember) {
	ranks := rapid.Bool().Draw(t, "reap")
	v, err := tx.ZSet([]byte(key), ranks)
	if err != nil || v.Len() != len(list) {
		t.Fatalf("%s: %d members, %v, want %d", key, v.Len(), err, len(list))
	}
	var got []zmember
	for w := v.Range(&ZRange{Stop: -1}); w.Next(); {
		got = append(got, zmember{string(w.Member()), w.Score(), w.Deadline()})
	}
	sameMembers(t, key, got, list)
	for i, e := range list {
		if got[i].deadline != e.deadline {
			t.Fatalf("%s: %q has deadline %d, want %d", key, e.name, got[i].deadline, e.deadline)
		}
		if rank, score, ok := v.Rank([]byte(e.name)); rank != i || score != e.score || !ok {
			t.Fatalf("Rank of %q: %d, %v, %v, want %d", e.name, rank, score, ok, i)
		}
	}
	name := drawZMember(t)
	want, there := m.of(key)[name]
	if score, ok := v.Score([]byte(name)); ok != there || ok && score != want.score {
		t.Fatalf("Score of %q: %v, %v, want %v, %v", name, score, ok, want.score, there)
	}
	r, in := m.drawRange(t, list, len(m.scores) == 1)
	if n := v.Count(&r); n != len(in) {
		t.Fatalf("Count %+v = %d, want %d", r, n, len(in))
	}
	got = got[:0]
	for w := v.Range(&r); w.Next(); {
		got = append(got, zmember{string(w.Member()), w.Score(), 0})
	}
	sameMembers(t, fmt.Sprintf("%+v", r), got, in)
	if h := tx.find([]byte(key)); h.r != nil {
		if b := h.box(); b != nil {
			err = b.(zsetTree).Check()
		} else {
			err = h.image().Check()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// replay runs the effects in a second engine, whose living members must then be the same.
func (m *zsetModel) replay(t *rapid.T) {
	m.replayInto(t, replayZSet, func(tx *Tx) {
		for _, key := range zsetKeys {
			var got []zmember
			if k, ok := tx.Lookup([]byte(key)); ok {
				k.Items(func(x Item) {
					if x.Deadline == 0 || x.Deadline >= m.now() {
						got = append(got, zmember{string(x.Key), x.Score, x.Deadline})
					}
				})
			}
			if want := m.list(key); !slices.Equal(got, want) {
				t.Fatalf("%s is replayed as %.300v, want %.300v", key, got, want)
			}
		}
	})
}

func replayZSet(tx *Tx, args [][]byte) (err error) {
	key, none := args[1], func(int) {}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(string(args[i]), 10, 64)
		return n
	}
	switch name := string(args[0]); name {
	case "ZADD":
		_, _, err = tx.ZAdd(key, replayScored(args[2:]), ZAddOptions{})
	case "ZADDEX":
		var o ItemOptions
		if string(args[2]) == "PXAT" {
			o.Deadline = number(3)
			args = args[2:]
		}
		_, _, err = tx.ZAddEx(key, replayScored(args[4:]), ZAddOptions{}, o)
	case "ZREM":
		_, err = tx.ZRem(key, args[2:])
	case "ZREMRANGEBYRANK":
		_, err = tx.ZRemRange(key, &ZRange{Start: number(2), Stop: number(3)})
	case "ZREMRANGEBYSCORE":
		_, err = tx.ZRemRange(key, &ZRange{By: ByScore, Min: replayScore(args[2]), Max: replayScore(args[3])})
	case "ZREMRANGEBYLEX":
		_, err = tx.ZRemRange(key, &ZRange{By: ByLex, MinLex: replayLex(args[2]), MaxLex: replayLex(args[3])})
	case "ZPOPMIN", "ZPOPMAX":
		_, err = tx.ZPop(key, int(number(2)), name == "ZPOPMAX", func(int) {}, func([]byte, float64) {})
	case "ZPEXPIREAT":
		err = tx.ZExpire(key, args[5:], number(2), 0, none)
	case "ZPERSIST":
		err = tx.ZPersist(key, args[4:], none)
	default:
		return replayKey(tx, args)
	}
	return err
}

func replayScored(args [][]byte) (items []Scored) {
	for i := 0; i < len(args); i += 2 {
		score, _ := strconv.ParseFloat(string(args[i]), 64)
		items = append(items, Scored{score, args[i+1]})
	}
	return items
}

func replayScore(a []byte) (b ScoreBound) {
	if a[0] == '(' {
		b.Open, a = true, a[1:]
	}
	b.Score, _ = strconv.ParseFloat(string(a), 64)
	return b
}

func replayLex(a []byte) LexBound {
	return LexBound{a[1:], LexKind(strings.IndexByte("-+[(", a[0]))}
}
