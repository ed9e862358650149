package engine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

// hashModel is an engine with hashes, and plain maps with their expected content.
type hashModel struct {
	containerModel
	tally
	keys map[string]map[string]entry
}

var (
	hashKeys   = []string{"a", "b", "{a}c", strings.Repeat("k", 40_000)}
	hashFields = []string{"", "f", "g", "12", "-7", "field", "0", strings.Repeat("long", 10), "x1", "x2", "x3", "x4", "x5", "x6"}
	hashValues = []string{"", "1", "9223372036854775807", "-5", "1.5", "text", "007", strings.Repeat("value", 20), strings.Repeat("V", 70_000)}
)

func TestHashesBehaveAsMapsWithDeadlines(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		m := &hashModel{containerModel: newContainerModel(), keys: map[string]map[string]entry{}}
		m.layout.HashEntries = rapid.SampledFrom([]int{0, 3, 8, 512}).Draw(t, "entries")
		m.layout.HashValue = rapid.SampledFrom([]int{4, 64, 100_000}).Draw(t, "longest")
		m.open()
		defer m.db.Close()
		m.setActive(m.db, rapid.Bool().Draw(t, "active"))
		t.Repeat(map[string]func(*rapid.T){
			"":             m.check,
			"hset":         m.hset,
			"hsetnx":       m.hsetnx,
			"hdel":         m.hdel,
			"hincrby":      m.hincrby,
			"hincrbyfloat": m.hincrbyfloat,
			"hexpire":      m.hexpire,
			"hpersist":     m.hpersist,
			"hsetex":       m.hsetex,
			"hgetex":       m.hgetex,
			"hgetdel":      m.hgetdel,
			"advance":      func(t *rapid.T) { m.advance(t); m.advanced() },
			"jump":         m.jump,
			"active":       func(t *rapid.T) { m.setActive(m.db, rapid.Bool().Draw(t, "active")) },
			"sample":       m.sample,
			"scan":         m.scan,
			"copy":         m.copy,
			"rename":       m.rename,
			"del":          m.del,
			"layout":       m.relayout,
		})
		m.settle(t, &m.containerModel, m.lookAtAll)
		m.replay(t)
	})
}

// of returns the living fields of a hash.
func (m *hashModel) of(key string) map[string]entry {
	h := m.keys[key]
	for f, e := range h {
		if e.expired(m.now()) {
			delete(h, f)
			m.died(key, 1)
		}
	}
	if h == nil {
		h = map[string]entry{}
		m.keys[key] = h
	}
	return h
}

func drawHashKey(t *rapid.T) string { return rapid.SampledFrom(hashKeys).Draw(t, "key") }
func drawField(t *rapid.T) string   { return rapid.SampledFrom(hashFields).Draw(t, "field") }
func drawHashVal(t *rapid.T) string { return rapid.SampledFrom(hashValues).Draw(t, "value") }

func (m *hashModel) hset(t *rapid.T) {
	key, n := drawHashKey(t), rapid.IntRange(1, 6).Draw(t, "pairs")
	h, want, args := m.of(key), 0, [][]byte(nil)
	for range n {
		f, v := drawField(t), drawHashVal(t)
		args = append(args, []byte(f), []byte(v))
		if _, ok := h[f]; !ok {
			want++
		}
		h[f] = entry{val: v}
	}
	m.do(func(tx *Tx) {
		if got, err := tx.HSet([]byte(key), args); got != want || err != nil {
			t.Fatalf("HSet = %d, %v, want %d", got, err, want)
		}
	})
}

func (m *hashModel) hsetnx(t *rapid.T) {
	key, f, v := drawHashKey(t), drawField(t), drawHashVal(t)
	h := m.of(key)
	_, there := h[f]
	if !there {
		h[f] = entry{val: v}
	}
	m.do(func(tx *Tx) {
		if got, err := tx.HSetNX([]byte(key), []byte(f), []byte(v)); got == there || err != nil {
			t.Fatalf("HSetNX = %v, %v", got, err)
		}
	})
}

func (m *hashModel) hdel(t *rapid.T) {
	key := drawHashKey(t)
	h, want, args := m.of(key), 0, [][]byte(nil)
	for range rapid.IntRange(1, 5).Draw(t, "fields") {
		f := drawField(t)
		args = append(args, []byte(f))
		if _, ok := h[f]; ok {
			want++
			delete(h, f)
		}
	}
	m.do(func(tx *Tx) {
		if got, err := tx.HDel([]byte(key), args); got != want || err != nil {
			t.Fatalf("HDel = %d, %v, want %d", got, err, want)
		}
		if len(h) == 0 && want > 0 && tx.Exists([]byte(key)) {
			t.Fatal("an empty hash is still there")
		}
	})
}

func (m *hashModel) hincrby(t *rapid.T) {
	key, f := drawHashKey(t), drawField(t)
	by := rapid.SampledFrom([]int64{1, -1, 1000, -9223372036854775808}).Draw(t, "by")
	h := m.of(key)
	e, there := h[f]
	old, err := parseInt([]byte(e.val))
	if there && err != nil {
		err = ErrFieldNotInteger
	} else if err = nil; overflows(old, by) {
		err = ErrOverflow
	}
	if err == nil {
		e.val = strconv.FormatInt(old+by, 10)
		h[f] = e
	}
	m.do(func(tx *Tx) {
		got, e := tx.HIncrBy([]byte(key), []byte(f), by)
		if e != err || err == nil && got != old+by {
			t.Fatalf("HIncrBy = %d, %v, want %v", got, e, err)
		}
	})
}

func (m *hashModel) hincrbyfloat(t *rapid.T) {
	key, f := drawHashKey(t), drawField(t)
	h := m.of(key)
	e, there := h[f]
	if !there {
		e.val = "0"
	}
	n, err := parseFloat([]byte(e.val))
	if err != nil {
		err = ErrFieldNotFloat
	} else {
		by, _ := parseFloat([]byte("0.25"))
		n, _ = addFloat(n, by)
		e.val = string(formatFloat(n))
		h[f] = e
	}
	m.do(func(tx *Tx) {
		got, er := tx.HIncrByFloat([]byte(key), []byte(f), []byte("0.25"))
		if er != err || err == nil && string(got) != e.val {
			t.Fatalf("HIncrByFloat = %q, %v, want %q, %v", got, er, e.val, err)
		}
	})
}

func (m *hashModel) del(t *rapid.T) {
	key := drawHashKey(t)
	m.of(key)
	m.lost(key)
	delete(m.keys, key)
	m.do(func(tx *Tx) { tx.Del([]byte(key)) })
}

func (m *hashModel) copy(t *rapid.T) {
	from, to := drawHashKey(t), drawHashKey(t)
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

func (m *hashModel) rename(t *rapid.T) {
	from, to := drawHashKey(t), drawHashKey(t)
	if len(m.of(from)) == 0 || from == to {
		return
	}
	m.of(to)
	m.moved(from, to)
	m.keys[to] = m.of(from)
	delete(m.keys, from)
	m.do(func(tx *Tx) {
		if ok, err := tx.Rename([]byte(from), []byte(to), false); !ok || err != nil {
			t.Fatal(ok, err)
		}
	})
}

func (m *hashModel) relayout(t *rapid.T) {
	m.layout.HashEntries = rapid.SampledFrom([]int{3, 512}).Draw(t, "entries")
	m.db.SetLayout(m.layout)
}

func (m *hashModel) view(key string, f func(*HashView)) {
	m.do(func(tx *Tx) {
		v, err := tx.Hash([]byte(key))
		if err != nil {
			panic(err)
		}
		f(&v)
	})
}

func (m *hashModel) sample(t *rapid.T) {
	key, n := drawHashKey(t), rapid.IntRange(0, 20).Draw(t, "n")
	h := m.of(key)
	m.view(key, func(v *HashView) {
		seen := map[string]bool{}
		drawn := 0
		pick := func(f, val []byte) {
			if e, ok := h[string(f)]; !ok || e.val != string(val) {
				t.Fatalf("picked %q = %.20q, which is not there", f, val)
			}
			drawn++
			seen[string(f)] = true
		}
		v.Sample(n, pick)
		if want := min(n, len(h)); len(seen) != want || drawn != want {
			t.Fatalf("a sample of %d of %d has %d, %d different", n, len(h), drawn, len(seen))
		}
		if f, val, ok := v.Random(); ok != (len(h) > 0) {
			t.Fatal("Random is wrong about whether there is a field")
		} else if ok {
			pick(f, val)
		}
		drawn = 0
		if v.Draw(n, pick); len(h) > 0 && drawn != n || len(h) == 0 && drawn != 0 {
			t.Fatalf("%d drawn of %d, want %d", drawn, len(h), n)
		}
	})
}

func (m *hashModel) scan(t *rapid.T) {
	key, count := drawHashKey(t), rapid.IntRange(1, 5).Draw(t, "count")
	m.view(key, func(v *HashView) {
		got := map[string]string{}
		for cursor := uint64(0); ; {
			cursor = v.Scan(cursor, count, func(f, val []byte) { got[string(f)] = string(val) })
			if cursor == 0 {
				break
			}
		}
		compareFields(t, got, m.of(key))
	})
}

func compareFields(t *rapid.T, got map[string]string, want map[string]entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d fields, want %d", len(got), len(want))
	}
	for f, e := range want {
		if v, ok := got[f]; !ok || v != e.val {
			t.Fatalf("field %q is %.20q, %v, want %.20q", f, v, ok, e.val)
		}
	}
}

// check compares all hashes with the model, and the layouts with the limits of the directives.
func (m *hashModel) check(t *rapid.T) {
	for _, key := range hashKeys {
		h := m.of(key)
		m.view(key, func(v *HashView) {
			if v.Len() != len(h) {
				t.Fatalf("Len of %q is %d, want %d", key, v.Len(), len(h))
			}
			got := map[string]string{}
			v.Each(func(f, val []byte) { got[string(f)] = string(val) })
			compareFields(t, got, h)
			for _, f := range hashFields {
				val, ok := v.Get([]byte(f))
				e, want := h[f]
				if ok != want || string(val) != e.val {
					t.Fatalf("Get(%q) = %.20q, %v, want %.20q", f, val, ok, e.val)
				}
				d := v.Deadline([]byte(f))
				if want && max(d, 0) != e.deadline || !want && d != NoKey {
					t.Fatalf("deadline of %q is %d, want %d", f, d, e.deadline)
				}
			}
			if v.large != nil {
				if err := v.large.Check(); err != nil {
					t.Fatal(err)
				}
			} else if v.small != nil {
				if err := packed.Validate(v.small); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// replay runs the effects in a second engine and compares the living fields.
func (m *hashModel) replay(t *rapid.T) {
	m.replayInto(t, replayHash, func(tx *Tx) {
		for _, key := range hashKeys {
			got := map[string]entry{}
			if k, ok := tx.Lookup([]byte(key)); ok {
				k.Items(func(x Item) {
					if e := (entry{val: string(x.Value), deadline: x.Deadline}); !e.expired(m.now()) {
						got[string(x.Key)] = e
					}
				})
			}
			if want := m.of(key); !maps.Equal(got, want) {
				t.Fatalf("replayed %q holds %.200v, want %.200v", key, got, want)
			}
		}
	})
}

// replayHash runs one effect on hashes.
func replayHash(tx *Tx, args [][]byte) (err error) {
	switch name, key := string(args[0]), args[1]; name {
	case "HSET":
		_, err = tx.HSet(key, args[2:])
	case "HDEL":
		_, err = tx.HDel(key, args[2:])
	case "HINCRBYFLOAT":
		_, err = tx.HIncrByFloat(key, args[2], args[3])
	case "HINCRBY":
		by, _ := parseInt(args[3])
		_, err = tx.HIncrBy(key, args[2], by)
	case "HPEXPIREAT":
		d, _ := parseInt(args[2])
		err = tx.HExpire(key, args[5:], d, 0, func(code int) {
			if code != ItemDone {
				err = fmt.Errorf("a field is not there")
			}
		})
	case "HPERSIST":
		err = tx.HPersist(key, args[4:], func(int) {})
	case "DEL":
		tx.Del(key)
	case "COPY":
		_, err = tx.Copy(key, args[2], 0, true)
	case "RENAME":
		_, err = tx.Rename(key, args[2], false)
	default:
		err = fmt.Errorf("unexpected effect")
	}
	return err
}

func TestHashConvertsAsTheLayoutSays(t *testing.T) {
	db := Open(Options{Clock: clock.NewManual(epoch)})
	defer db.Close()
	tx := db.BeginAll(0)
	defer tx.Commit()
	set := func(key string, pairs ...string) string {
		var args [][]byte
		for _, p := range pairs {
			args = append(args, []byte(p))
		}
		if _, err := tx.HSet([]byte(key), args); err != nil {
			t.Fatal(err)
		}
		return tx.Encoding([]byte(key))
	}
	for i := range 512 {
		if e := set("h", strconv.Itoa(i), "v"); e != "listpack" {
			t.Fatalf("%s after %d fields", e, i+1)
		}
	}
	if e := set("h", "511", "another"); e != "listpack" {
		t.Fatalf("%s after 512 fields", e)
	}
	if e := set("h", "512", "v"); e != "hashtable" {
		t.Fatalf("%s after 513 fields", e)
	}
	if e := set("long", "f", strings.Repeat("v", 64)); e != "listpack" {
		t.Fatal(e)
	}
	if e := set("long", "f", strings.Repeat("v", 65)); e != "hashtable" {
		t.Fatal(e)
	}
	if e := set("same", slices.Repeat([]string{"f", "v"}, 513)...); e != "hashtable" {
		t.Fatalf("%s after 513 pairs", e)
	}
}

func TestRandomFieldsAreUniform(t *testing.T) {
	for _, entries := range []int{0, 512} {
		db := Open(Options{Clock: clock.NewManual(epoch)})
		db.SetLayout(Layout{HashEntries: entries, HashValue: 64})
		tx := db.BeginAll(0)
		const fields, rounds = 40, 4000
		for i := range fields {
			f := fmt.Append(nil, i)
			_, _ = tx.HSet([]byte("h"), [][]byte{f, f})
		}
		v, _ := tx.Hash([]byte("h"))
		for name, pick := range map[string]func(visit func(f, v []byte)){
			"Random":   func(visit func(f, v []byte)) { f, val, _ := v.Random(); visit(f, val) },
			"Draw":     func(visit func(f, v []byte)) { v.Draw(3, visit) },
			"Sample":   func(visit func(f, v []byte)) { v.Sample(2, visit) },
			"Sample 9": func(visit func(f, v []byte)) { v.Sample(30, visit) },
		} {
			count, all := map[string]int{}, 0
			for range rounds {
				pick(func(f, _ []byte) { count[string(bytes.Clone(f))]++; all++ })
			}
			want, chi := float64(all)/fields, 0.0
			for i := range fields {
				d := float64(count[strconv.Itoa(i)]) - want
				chi += d * d / want
			}
			if chi > 90 { // 39 degrees of freedom: 1 in 100,000
				t.Errorf("%d entries, %s: chi square is %.0f", entries, name, chi)
			}
		}
		tx.Commit()
		db.Close()
	}
}
