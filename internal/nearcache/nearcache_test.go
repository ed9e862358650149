package nearcache

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// tracked runs a test in virtual time with a cache whose keys are tracked.
func tracked(t *testing.T, max int, test func(b *ebbtest.Backend, n *Cache)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		n := New(b.Conn, max, nil, "")
		defer n.Close()
		n.End(n.Begin(""), false, "", "", 0, 0)
		synctest.Wait()
		if _, ok := n.Len(); !ok {
			t.Fatal("the keys are not tracked")
		}
		test(b, n)
	})
}

func (n *Cache) put(key, field, body string, ttl time.Duration) {
	n.End(n.Begin(key), true, field, body, ttl, time.Second)
}

func wants(t *testing.T, n *Cache, key, field, want string) {
	t.Helper()
	if got, ok := n.Get(key, field); got != want || ok != (want != "") {
		t.Errorf("%s %s: %q %v, want %q", key, field, got, ok, want)
	}
}

func TestACopyLivesAsLongAsItsValue(t *testing.T) {
	tracked(t, 10, func(_ *ebbtest.Backend, n *Cache) {
		r := n.Begin("k")
		time.Sleep(time.Second) // the read takes a second
		n.End(r, true, "a", "1", 10*time.Second, time.Second)
		n.put("k", "ever", "2", conn.Forever)
		n.put("k", "over", "3", 0)
		time.Sleep(9*time.Second - 1)
		wants(t, n, "k", "a", "1")
		wants(t, n, "k", "over", "")
		time.Sleep(time.Nanosecond)
		wants(t, n, "k", "a", "")
		wants(t, n, "k", "ever", "2")
	})
}

func TestAChangeForgetsTheCopiesOfItsKeyAndOfReadsUnderWay(t *testing.T) {
	tracked(t, 10, func(b *ebbtest.Backend, n *Cache) {
		n.put("k", "a", "1", conn.Forever)
		n.put("k", "b", "1", conn.Forever)
		n.put("other", "a", "1", conn.Forever)
		early, other := n.Begin("k"), n.Begin("other")
		b.Data.Do("SET", "k", "2")
		synctest.Wait()
		late := n.Begin("k")
		n.End(late, true, "a", "2", conn.Forever, 0)
		n.End(early, true, "b", "1", conn.Forever, 0)
		n.End(other, true, "b", "1", conn.Forever, 0)
		wants(t, n, "k", "a", "2")
		wants(t, n, "k", "b", "")
		wants(t, n, "other", "a", "1")
		wants(t, n, "other", "b", "1")
		b.Data.Do("FLUSHALL")
		synctest.Wait()
		if copies, ok := n.Len(); copies != 0 || !ok {
			t.Error("after a flush:", copies, ok)
		}
	})
}

func TestOfTwoReadsAtATimeTheOlderValueIsNotKept(t *testing.T) {
	tracked(t, 10, func(_ *ebbtest.Backend, n *Cache) {
		for _, last := range []string{"new", "old"} {
			a, b := n.Begin("k"), n.Begin("k")
			first := map[string]string{"new": "old", "old": "new"}[last]
			n.End(a, true, "f", first, conn.Forever, 0)
			wants(t, n, "k", "f", first)
			n.End(b, true, "f", last, conn.Forever, 0)
			wants(t, n, "k", "f", "")
		}
		n.put("k", "f", "1", conn.Forever)
		n.put("k", "f", "2", conn.Forever) // one after the other
		wants(t, n, "k", "f", "2")
	})
}

func TestWithoutTrackingACopyLivesForItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		n := New(conn.New(plain{b.Conn.Driver()}), 10, nil, "")
		defer n.Close()
		n.End(n.Begin(""), false, "", "", 0, 0)
		synctest.Wait()
		n.put("k", "ever", "1", conn.Forever)
		n.put("k", "long", "1", time.Hour)
		n.put("k", "short", "1", time.Millisecond)
		time.Sleep(time.Millisecond)
		wants(t, n, "k", "short", "")
		time.Sleep(time.Second - time.Millisecond - 1)
		wants(t, n, "k", "ever", "1")
		wants(t, n, "k", "long", "1")
		time.Sleep(time.Nanosecond)
		wants(t, n, "k", "ever", "")
		wants(t, n, "k", "long", "")
		n.Close()
		n.put("k", "ever", "1", conn.Forever)
		wants(t, n, "k", "ever", "")
	})
}

// plain is a driver that cannot track.
type plain struct{ conn.Driver }

func TestAHitAllocatesNothing(t *testing.T) {
	tracked(t, 10, func(_ *ebbtest.Backend, n *Cache) {
		n.put("k", "a", "1", conn.Forever)
		if got := testing.AllocsPerRun(100, func() { n.Get("k", "a") }); got != 0 {
			t.Error(got, "allocations")
		}
	})
}

// check verifies the invariants.
func (n *Cache) check() error {
	listed, chained := 0, 0
	for e := n.uses.next; e != &n.uses; e = e.next {
		if n.entries[e.id] != e || e.next.prev != e || e.prev.next != e {
			return fmt.Errorf("%v in the list of uses", e.id)
		}
		listed++
	}
	for key, first := range n.chains {
		for e := first; e != nil; e = e.then {
			if e.key != key || n.entries[e.id] != e || e.then != nil && e.then.before != e || (e.before == nil) != (e == first) {
				return fmt.Errorf("%v in the chain of %q", e.id, key)
			}
			chained++
		}
	}
	if len(n.entries) != listed || len(n.entries) != chained || len(n.entries) > n.max {
		return fmt.Errorf("%d copies, %d of them listed, %d chained, at most %d", len(n.entries), listed, chained, n.max)
	}
	return nil
}

// TestModel compares the copies with a list of them, the last used first.
func TestModel(t *testing.T) {
	draw.Check(t, func(t *rapid.T) {
		n := New(nil, rapid.IntRange(1, 4).Draw(t, "max"), nil, "")
		n.once.Do(func() {}) // no goroutine
		n.state = covered
		type copied struct{ key, field, body string }
		var model []copied
		evicted := int64(0)
		keys, fields := rapid.SampledFrom([]string{"a", "b"}), rapid.SampledFrom([]string{"1", "2", "3"})
		take := func(key, field string) (copied, bool) {
			for i, c := range model {
				if c.key == key && c.field == field {
					model = slices.Delete(model, i, i+1)
					return c, true
				}
			}
			return copied{}, false
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				c := copied{keys.Draw(t, "key"), fields.Draw(t, "field"), rapid.StringMatching("[x-z]").Draw(t, "body")}
				n.put(c.key, c.field, c.body, conn.Forever)
				take(c.key, c.field)
				model = slices.Insert(model, 0, c)
				if len(model) > n.max {
					model = model[:n.max]
					evicted++
				}
			},
			"get": func(t *rapid.T) {
				key, field := keys.Draw(t, "key"), fields.Draw(t, "field")
				body, ok := n.Get(key, field)
				c, there := take(key, field)
				if there {
					model = slices.Insert(model, 0, c)
				}
				if body != c.body || ok != there {
					t.Fatalf("%s %s: %q %v, want %q %v", key, field, body, ok, c.body, there)
				}
			},
			"change": func(t *rapid.T) {
				key := keys.Draw(t, "key")
				n.Changed(key)
				model = slices.DeleteFunc(model, func(c copied) bool { return c.key == key })
			},
			"": func(t *rapid.T) {
				if err := n.check(); err != nil || len(n.entries) != len(model) || len(n.flights) != 0 {
					t.Fatal(err, len(n.entries), len(model), n.flights)
				}
				if n.Evicted() != evicted {
					t.Fatalf("%d copies were evicted, want %d", n.Evicted(), evicted)
				}
			},
		})
	})
}
