package packed

import (
	"errors"
	"math"
	"testing"
)

// FuzzValidate: Validate panics on nothing, and what it lets through is safe
// for every method, which keep it valid.
func FuzzValidate(f *testing.F) {
	for _, kind := range []Kind{KindList, KindSet, KindHash, KindZSet} {
		p := New(nil, kind)
		f.Add([]byte(p))
		for i, key := range keys[:26] {
			var e Edit
			deadline := int64(i%3) * 500
			switch kind {
			case KindList:
				e = p.PushBack([]byte(key), deadline)
			case KindSet:
				e, _ = p.PutMember([]byte(key), deadline, 0)
			case KindHash:
				e, _ = p.PutField([]byte(key), []byte(keys[25-i]), deadline, 0)
			case KindZSet:
				e, _ = p.PutScore([]byte(key), float64(i)/4, deadline, 0)
			}
			p = e.Apply(make([]byte, e.Size()))
			if i%5 == 0 {
				f.Add([]byte(p))
			}
		}
		f.Add([]byte(p))
	}
	s := NewIntSet(nil)
	for _, v := range []int64{5, -9, 70000, 1 << 40} {
		e, _ := s.Add(v)
		s = e.Apply(make([]byte, e.Size()))
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := Validate(b); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("not ErrCorrupt: %v", err)
			}
			return
		}
		if Packed(b).Kind() == KindIntSet {
			useIntSet(t, b)
			return
		}
		usePacked(t, b)
	})
}

func useIntSet(t *testing.T, s IntSet) {
	for _, v := range []int64{0, 1 << 20, math.MinInt64} {
		if e, ok := s.Add(v); ok {
			s = e.Apply(make([]byte, e.Size()))
		}
	}
	for s.Len() > 0 {
		s = s.Delete(s.Len() / 2)
		if err := Validate(s); err != nil {
			t.Fatal(err)
		}
	}
}

// usePacked calls every method that can be called, and checks what is written.
func usePacked(t *testing.T, p Packed) {
	for _, now := range []int64{0, 700, MaxDeadline} {
		n, it := 0, p.Iter(now)
		for ; it.Next(); n++ {
			if _, ok := p.Find([]byte(it.Key().String()), now); !ok {
				t.Fatalf("%q is not found", it.Key())
			}
			it.Deadline()
			switch p.Kind() {
			case KindHash:
				it.Value().Len()
			case KindZSet:
				it.Score()
			}
		}
		for it.Prev() {
			n--
		}
		if n != 0 {
			t.Fatalf("%d items more one way than the other", n)
		}
		p.Rank([]byte("a"), now)
		p.Index(-1, now)
		p.Index(p.Len(now)/2, now)
	}
	write(t, p, func(p Packed) Packed { return p.Reap(700, nil) })
	for _, key := range []string{"a", "17", "new"} {
		write(t, p, func(p Packed) Packed { return put(p, key) })
	}
	if at, ok := p.Index(p.Count()/2, 0); ok {
		last, _ := p.Index(-1, 0)
		write(t, p, func(p Packed) Packed { return p.Delete(at) })
		write(t, p, func(p Packed) Packed { return p.DeleteRange(at, last) })
		for _, deadline := range []int64{0, 1, 900} {
			write(t, p, func(p Packed) Packed {
				e := p.SetDeadline(at, deadline)
				return e.Apply(make([]byte, e.Size()))
			})
		}
	}
}

func put(p Packed, key string) Packed {
	var e Edit
	switch p.Kind() {
	case KindList:
		e = p.PushFront([]byte(key), 600)
	case KindSet:
		e, _ = p.PutMember([]byte(key), 600, 700)
	case KindHash:
		e, _ = p.PutField([]byte(key), []byte("value"), Keep, 700)
	case KindZSet:
		e, _ = p.PutScore([]byte(key), 2.5, 600, 700)
	}
	return e.Apply(make([]byte, e.Size()))
}

func write(t *testing.T, p Packed, f func(Packed) Packed) {
	t.Helper()
	if err := Validate(f(append(Packed(nil), p...))); err != nil {
		t.Fatal(err)
	}
}
