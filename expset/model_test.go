package expset

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/expirytest"
)

// TestModel compares each implementation with a Go map and a clock, in virtual time.
func TestModel(t *testing.T) {
	expirytest.Play(t, []way{asItIs, scripts, redisson}, model)
}

// world is a set and its model, on one clock.
type world struct {
	expirytest.Model[bool]
	s *Set[string]
}

func model(t *rapid.T, b *ebbtest.Backend, name string, w way) map[string]func(*rapid.T) {
	o := Options[string]{MaxLen: rapid.Int64Range(0, 3).Draw(t, "maxlen")}
	create := New[string]
	if w == redisson {
		create = newRedisson[string]
	}
	s, err := create(b.Conn, name, o)
	if err != nil {
		t.Fatal(err)
	}
	s.scripts = w == scripts
	x := &world{s: s, Model: expirytest.Model[bool]{Backend: b, Of: s, Delete: s.Remove, MaxLen: o.MaxLen, Sharp: w == redisson}}
	return x.Steps(map[string]func(*rapid.T){"add": x.add, "": x.compare})
}

func (x *world) add(t *rapid.T) {
	some, ttl, nx := rapid.SliceOfN(expirytest.Keys, 1, 3).Draw(t, "members"), expirytest.TTLs.Draw(t, "ttl"), rapid.Bool().Draw(t, "nx")
	fresh := map[string]bool{}
	for _, m := range some {
		if _, there := x.Get(m); !there {
			fresh[m] = true
		}
	}
	add := x.s.Add
	if nx {
		add = x.s.AddNX
	}
	n, err := add(t.Context(), ttl, some...)
	if x.Full(len(fresh)) {
		expirytest.Check(t, "add", errors.Is(err, ErrFull), true, nil)
		return
	}
	expirytest.Check(t, "add", n, int64(len(fresh)), err)
	for _, m := range some {
		if fresh[m] || !nx {
			x.Put(m, true, ttl)
		}
	}
}

// compare compares the results of all reads.
func (x *world) compare(t *rapid.T) {
	members, err := x.s.Members(t.Context())
	expirytest.Check(t, "members", len(members), x.Len(), err)
	all := map[string]bool{}
	for _, m := range members {
		there, err := x.s.Contains(t.Context(), m)
		expirytest.Check(t, "contains", there, true, err)
		all[m] = there
	}
	x.Compare(t, all)
}
