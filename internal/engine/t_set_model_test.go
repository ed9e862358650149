package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"pgregory.net/rapid"
)

// setModel is an engine with sets, and plain maps from members to deadlines with their expected content.
type setModel struct {
	containerModel
	tally
	keys map[string]map[string]int64
}

var (
	setKeys    = []string{"a", "b", "{a}c", "{a}d"}
	setMembers = []string{"1", "2", "3", "4", "5", "-70000", "9223372036854775807", "60", "", "f", "007", "long" + strings.Repeat("g", 70),
		"x1", "x2", "x3", strings.Repeat("V", 70_000)}
)

func TestSetsBehaveAsMapsWithDeadlines(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &setModel{containerModel: newContainerModel(), keys: map[string]map[string]int64{}}
		m.drawLayout(t)
		m.open()
		defer m.db.Close()
		m.setActive(m.db, rapid.Bool().Draw(t, "active"))
		t.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"sadd":     m.sadd,
			"srem":     m.srem,
			"smove":    m.smove,
			"spop":     m.spop,
			"spopmany": m.spopMany,
			"store":    m.store,
			"combine":  m.combine,
			"sexpire":  m.sexpire,
			"spersist": m.spersist,
			"saddex":   m.saddex,
			"advance":  func(t *rapid.T) { m.advance(t); m.advanced() },
			"jump":     m.jump,
			"active":   func(t *rapid.T) { m.setActive(m.db, rapid.Bool().Draw(t, "active")) },
			"sample":   m.sample,
			"scan":     m.scan,
			"copy":     m.copy,
			"del":      m.del,
			"layout":   func(t *rapid.T) { m.drawLayout(t); m.db.SetLayout(m.layout) },
		})
		m.settle(t, &m.containerModel, m.lookAtAll)
		m.replay(t)
	})
}

func (m *setModel) drawLayout(t *rapid.T) {
	m.layout.SetIntegers = rapid.SampledFrom([]int{0, 3, 512}).Draw(t, "integers")
	m.layout.SetEntries = rapid.SampledFrom([]int{0, 4, 128}).Draw(t, "entries")
	m.layout.SetValue = rapid.SampledFrom([]int{3, 64, 100_000}).Draw(t, "longest")
}

// of returns the living members of a set.
func (m *setModel) of(key string) map[string]int64 {
	s := m.keys[key]
	maps.DeleteFunc(s, func(_ string, d int64) bool {
		dead := d != 0 && m.now() > d
		if dead {
			m.died(key, 1)
		}
		return dead
	})
	if s == nil {
		s = map[string]int64{}
		m.keys[key] = s
	}
	return s
}

func drawSetKey(t *rapid.T) string    { return rapid.SampledFrom(setKeys).Draw(t, "key") }
func drawSetMember(t *rapid.T) string { return rapid.SampledFrom(setMembers).Draw(t, "member") }

func drawSetMembers(t *rapid.T) (members []string, args [][]byte) {
	for range rapid.IntRange(1, 6).Draw(t, "members") {
		members = append(members, drawSetMember(t))
		args = append(args, []byte(members[len(members)-1]))
	}
	return members, args
}

func (m *setModel) sadd(t *rapid.T) {
	key := drawSetKey(t)
	s, want := m.of(key), 0
	members, args := drawSetMembers(t)
	for _, x := range members {
		if _, ok := s[x]; !ok {
			s[x] = 0
			want++
		}
	}
	m.do(func(tx *Tx) {
		if got, err := tx.SAdd([]byte(key), args); got != want || err != nil {
			t.Fatalf("SAdd = %d, %v, want %d", got, err, want)
		}
	})
}

func (m *setModel) srem(t *rapid.T) {
	key := drawSetKey(t)
	s, want := m.of(key), 0
	members, args := drawSetMembers(t)
	for _, x := range members {
		if _, ok := s[x]; ok {
			delete(s, x)
			want++
		}
	}
	m.do(func(tx *Tx) {
		if got, err := tx.SRem([]byte(key), args); got != want || err != nil {
			t.Fatalf("SRem = %d, %v, want %d", got, err, want)
		}
		m.goneIfEmpty(t, tx, key, want)
	})
}

func (m *setModel) goneIfEmpty(t *rapid.T, tx *Tx, key string, removed int) {
	t.Helper()
	if len(m.of(key)) == 0 && removed > 0 && tx.Exists([]byte(key)) {
		t.Fatal("an empty set is still there")
	}
}

func (m *setModel) smove(t *rapid.T) {
	from, to, x := drawSetKey(t), drawSetKey(t), drawSetMember(t)
	src, dst := m.of(from), m.of(to)
	deadline, want := src[x]
	removed := 0
	if want && from != to {
		removed = 1
		delete(src, x)
		if _, ok := dst[x]; !ok {
			dst[x] = deadline
		}
	}
	m.do(func(tx *Tx) {
		if got, err := tx.SMove([]byte(from), []byte(to), []byte(x)); got != want || err != nil {
			t.Fatalf("SMove = %v, %v, want %v", got, err, want)
		}
		m.goneIfEmpty(t, tx, from, removed)
	})
}

// take removes a member that was picked.
func (m *setModel) take(t *rapid.T, s map[string]int64, member []byte) {
	t.Helper()
	if _, ok := s[string(member)]; !ok {
		t.Fatalf("%.20q was picked, which is not there", member)
	}
	delete(s, string(member))
}

func (m *setModel) spop(t *rapid.T) {
	key := drawSetKey(t)
	s := m.of(key)
	m.do(func(tx *Tx) {
		got, ok, err := tx.SPop([]byte(key), []byte("before"))
		if ok != (len(s) > 0) || err != nil {
			t.Fatalf("SPop of %d: %v, %v", len(s), ok, err)
		}
		if ok {
			m.take(t, s, got[len("before"):])
			m.goneIfEmpty(t, tx, key, 1)
		}
	})
}

func (m *setModel) spopMany(t *rapid.T) {
	key, n := drawSetKey(t), rapid.IntRange(0, 12).Draw(t, "n")
	s := m.of(key)
	want := min(n, len(s))
	m.do(func(tx *Tx) {
		got, err := tx.SPopMany([]byte(key), n, func(x []byte) { m.take(t, s, x) })
		if got != want || err != nil {
			t.Fatalf("SPopMany = %d, %v, want %d", got, err, want)
		}
		m.goneIfEmpty(t, tx, key, want)
	})
}

// draw draws an operation with its keys, and returns its expected result.
func (m *setModel) draw(t *rapid.T) (o SetOperation, keys [][]byte, want map[string]int64) {
	o = SetOperation(rapid.IntRange(0, 2).Draw(t, "operation"))
	want = map[string]int64{}
	for i := range rapid.IntRange(1, 4).Draw(t, "keys") {
		key := drawSetKey(t)
		keys = append(keys, []byte(key))
		s := m.of(key)
		switch {
		case i == 0 || o == Union:
			for x := range s {
				want[x] = 0
			}
		case o == Difference:
			maps.DeleteFunc(want, func(x string, _ int64) bool { _, ok := s[x]; return ok })
		default:
			maps.DeleteFunc(want, func(x string, _ int64) bool { _, ok := s[x]; return !ok })
		}
	}
	return o, keys, want
}

func (m *setModel) combine(t *rapid.T) {
	o, keys, want := m.draw(t)
	limit := rapid.IntRange(1, 20).Draw(t, "limit")
	m.do(func(tx *Tx) {
		got := map[string]int64{}
		if err := tx.Combine(o, keys, func(x []byte) bool {
			if _, ok := got[string(x)]; ok {
				t.Fatalf("%.20q came twice", x)
			}
			got[string(x)] = 0
			return len(got) < limit
		}); err != nil {
			t.Fatal(err)
		}
		for x := range got {
			if _, ok := want[x]; !ok {
				t.Fatalf("%.20q does not belong there", x)
			}
		}
		if len(got) != min(len(want), limit) {
			t.Fatalf("%d members, want %d", len(got), len(want))
		}
	})
}

func (m *setModel) store(t *rapid.T) {
	dst := drawSetKey(t)
	o, keys, want := m.draw(t)
	m.of(dst)
	m.lost(dst)
	m.keys[dst] = want
	m.do(func(tx *Tx) {
		if rapid.Bool().Draw(t, "deadline") {
			tx.Expire([]byte(dst), m.now()+5, 0, 0)
		}
		got, err := tx.CombineStore(o, []byte(dst), keys)
		if got != len(want) || err != nil {
			t.Fatalf("CombineStore = %d, %v, want %d", got, err, len(want))
		}
		m.goneIfEmpty(t, tx, dst, 1)
	})
}

func (m *setModel) del(t *rapid.T) {
	key := drawSetKey(t)
	m.of(key)
	m.lost(key)
	delete(m.keys, key)
	m.do(func(tx *Tx) { tx.Del([]byte(key)) })
}

func (m *setModel) copy(t *rapid.T) {
	from, to := drawSetKey(t), drawSetKey(t)
	if len(m.of(from)) == 0 || from == to {
		return
	}
	m.of(to)
	m.lost(to)
	m.keys[to] = maps.Clone(m.of(from))
	m.do(func(tx *Tx) {
		if ok, err := tx.Copy([]byte(from), []byte(to), 0, true); !ok || err != nil {
			t.Fatal(ok, err)
		}
	})
}

func (m *setModel) view(key string, f func(*SetView)) {
	m.do(func(tx *Tx) {
		v, err := tx.Members([]byte(key))
		if err != nil {
			panic(err)
		}
		f(&v)
	})
}

func (m *setModel) sample(t *rapid.T) {
	key, n := drawSetKey(t), rapid.IntRange(0, 20).Draw(t, "n")
	s := m.of(key)
	m.view(key, func(v *SetView) {
		seen, drawn := map[string]bool{}, 0
		pick := func(x []byte) {
			if _, ok := s[string(x)]; !ok {
				t.Fatalf("picked %.20q, which is not there", x)
			}
			drawn++
			seen[string(x)] = true
		}
		v.Sample(n, pick)
		if want := min(n, len(s)); len(seen) != want || drawn != want {
			t.Fatalf("a sample of %d of %d has %d, %d different", n, len(s), drawn, len(seen))
		}
		if x, ok := v.Random(); ok != (len(s) > 0) {
			t.Fatal("Random is wrong about whether there is a member")
		} else if ok {
			pick(x)
		}
		drawn = 0
		if v.Draw(n, pick); len(s) > 0 && drawn != n || len(s) == 0 && drawn != 0 {
			t.Fatalf("%d drawn of %d, want %d", drawn, len(s), n)
		}
	})
}

func (m *setModel) scan(t *rapid.T) {
	key, count := drawSetKey(t), rapid.IntRange(1, 5).Draw(t, "count")
	m.view(key, func(v *SetView) {
		got := map[string]bool{}
		for cursor := uint64(0); ; {
			if cursor = v.Scan(cursor, count, func(x []byte) { got[string(x)] = true }); cursor == 0 {
				break
			}
		}
		m.compare(t, got, key)
	})
}

func (m *setModel) compare(t *rapid.T, got map[string]bool, key string) {
	t.Helper()
	want := m.of(key)
	if len(got) != len(want) {
		t.Fatalf("%d members of %q, want %d", len(got), key, len(want))
	}
	for x := range want {
		if !got[x] {
			t.Fatalf("%.20q is missing in %q", x, key)
		}
	}
}

func (m *setModel) check(t *rapid.T) {
	for _, key := range setKeys {
		s := m.of(key)
		m.view(key, func(v *SetView) {
			if v.Len() != len(s) {
				t.Fatalf("Len of %q is %d, want %d", key, v.Len(), len(s))
			}
			got := map[string]bool{}
			v.Each(func(x []byte) { got[string(x)] = true })
			m.compare(t, got, key)
			for _, x := range setMembers {
				if _, want := s[x]; v.Has([]byte(x)) != want {
					t.Fatalf("Has(%.20q) is not %v", x, want)
				}
			}
			twice, i := make([][]byte, 2*len(setMembers)), 0
			for k := range twice {
				twice[k] = []byte(setMembers[k%len(setMembers)])
			}
			v.HasEach(twice, func(has bool) {
				if _, want := s[string(twice[i])]; has != want {
					t.Fatalf("HasEach(%.20q) is not %v", twice[i], want)
				}
				i++
			})
			if i != len(twice) {
				t.Fatalf("HasEach has called visit %d times", i)
			}
			switch {
			case v.large != nil:
				if err := v.large.Check(); err != nil {
					t.Fatal(err)
				}
			case v.small != nil:
				if err := packed.Validate(v.small); err != nil {
					t.Fatal(err)
				}
			case v.ints != nil:
				if err := packed.Validate(packed.Packed(v.ints)); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// replay runs the effects in a second engine and compares the living members.
func (m *setModel) replay(t *rapid.T) {
	m.replayInto(t, replaySet, func(tx *Tx) {
		for _, key := range setKeys {
			got := map[string]int64{}
			if k, ok := tx.Lookup([]byte(key)); ok {
				k.Items(func(x Item) {
					if x.Deadline == 0 || m.now() <= x.Deadline {
						got[string(x.Key)] = x.Deadline
					}
				})
			}
			if want := m.of(key); !maps.Equal(got, want) {
				t.Fatalf("replayed %q holds %.200v, want %.200v", key, got, want)
			}
		}
	})
}

// replaySet runs one effect on sets.
func replaySet(tx *Tx, args [][]byte) (err error) {
	operations := []string{"SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE"}
	switch name, key := string(args[0]), args[1]; name {
	case "SADD":
		_, err = tx.SAdd(key, args[2:])
	case "SREM":
		_, err = tx.SRem(key, args[2:])
	case "SMOVE":
		_, err = tx.SMove(key, args[2], args[3])
	case "SINTERSTORE", "SUNIONSTORE", "SDIFFSTORE":
		_, err = tx.CombineStore(SetOperation(slices.Index(operations, name)), key, args[2:])
	case "SPEXPIREAT":
		d, _ := parseInt(args[2])
		err = tx.SExpire(key, args[5:], d, 0, func(code int) {
			if code != ItemDone {
				err = fmt.Errorf("a member is not there")
			}
		})
	case "SPERSIST":
		err = tx.SPersist(key, args[4:], func(int) {})
	case "PEXPIREAT":
		d, _ := parseInt(args[2])
		tx.Expire(key, d, 0, 0)
	case "DEL":
		tx.Del(key)
	case "COPY":
		_, err = tx.Copy(key, args[2], 0, true)
	default:
		err = fmt.Errorf("unexpected effect")
	}
	return err
}

func TestRandomMembersAreUniform(t *testing.T) {
	tier.Sequential(t)
	const members, rounds = 40, 3000
	for form, l := range map[string]Layout{"intset": {SetIntegers: 512}, "listpack": {SetEntries: 512, SetValue: 64}, "hashtable": {}} {
		db := Open(Options{Clock: clock.NewManual(epoch)})
		db.SetLayout(l)
		tx := db.BeginAll(0)
		for i := range members {
			_, _ = tx.SAdd([]byte("s"), [][]byte{fmt.Append(nil, i)})
		}
		if e := tx.Encoding([]byte("s")); e != form {
			t.Fatalf("%s, want %s", e, form)
		}
		v, _ := tx.Members([]byte("s"))
		popped := func(n int) func(func([]byte)) {
			return func(visit func([]byte)) {
				_, _ = tx.Copy([]byte("s"), []byte("t"), 0, true)
				_, _ = tx.SPopMany([]byte("t"), n, visit)
			}
		}
		for name, pick := range map[string]func(visit func(x []byte)){
			"Random": func(visit func(x []byte)) { x, _ := v.Random(); visit(x) },
			"Draw":   func(visit func(x []byte)) { v.Draw(3, visit) },
			"Sample": func(visit func(x []byte)) { v.Sample(2, visit) },
			"SPop": func(visit func(x []byte)) {
				_, _ = tx.Copy([]byte("s"), []byte("t"), 0, true)
				x, _, _ := tx.SPop([]byte("t"), nil)
				visit(x)
			},
			"SPopMany 3": popped(3), "SPopMany 38": popped(38),
		} {
			count, all := map[string]int{}, 0
			for range rounds {
				pick(func(x []byte) { count[string(x)]++; all++ })
			}
			want, chi := float64(all)/members, 0.0
			for i := range members {
				d := float64(count[strconv.Itoa(i)]) - want
				chi += d * d / want
			}
			if chi > 90 { // 39 degrees of freedom: 1 in 100,000
				t.Errorf("%s of %s: chi square is %.0f", name, form, chi)
			}
		}
		tx.Commit()
		db.Close()
	}
}

// The expected forms were observed with Redis 8.0.2.
func TestStoredSetsHaveTheFormsThatRedisGivesThem(t *testing.T) {
	members := func(s string) (out [][]byte) {
		for _, f := range strings.Fields(s) {
			out = append(out, []byte(f))
		}
		return out
	}
	for _, c := range []struct {
		integers, entries, longest int
		o                          SetOperation
		members, want              string
	}{
		{5, 128, 64, Intersection, "-60890 0 1 2 4 5 7 8 x0", "listpack"},
		{5, 128, 64, Intersection, "0 1 10 12 4 5", "listpack"},
		{5, 2, 64, Intersection, "0 1 10 12", "intset"},
		{2, 8, 3, Intersection, "13 4 8", "listpack"},
		{0, 3, 64, Union, "7 8", "hashtable"},
		{0, 3, 64, Union, "x y", "listpack"},
		{0, 128, 3, Difference, "3", "hashtable"},
		{5, 8, 64, Difference, "1 2 3", "intset"},
		{5, 8, 64, Union, "1 2 3 x", "listpack"},
		{5, 8, 2, Union, "1 2 xyz", "hashtable"},
	} {
		db := Open(Options{Clock: clock.NewManual(epoch)})
		db.SetLayout(Layout{})
		tx := db.BeginAll(0)
		if _, err := tx.SAdd([]byte("large"), members(c.members)); err != nil {
			t.Fatal(err)
		}
		db.SetLayout(Layout{SetIntegers: c.integers, SetEntries: c.entries, SetValue: c.longest})
		if _, err := tx.CombineStore(c.o, []byte("dst"), members("large")); err != nil {
			t.Fatal(err)
		}
		if got := tx.Encoding([]byte("dst")); got != c.want {
			t.Errorf("%s of %s with %d, %d, %d: %s, want %s", c.o.command(), c.members, c.integers, c.entries, c.longest, got, c.want)
		}
		tx.Commit()
		db.Close()
	}
}
