package lua

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestFilled does random things to tables, in programs and by the API, and
// compares what a table says of its array part with what is there.
func TestFilled(t *testing.T) {
	const text = `return function(t, what, i)
		if what == 0 then t[#t+1] = i
		elseif what == 1 then t[#t] = nil
		elseif what == 2 then t[i] = true
		elseif what == 3 then t[i] = nil
		elseif what == 4 then table.insert(t, i)
		elseif what == 5 and #t > 0 then table.insert(t, 1 + i % #t, i)
		elseif what == 6 and #t > 0 then table.remove(t, 1 + i % #t)
		elseif what == 7 then table.remove(t)
		elseif what == 8 then setmetatable(t, {}) t[i] = i setmetatable(t, nil)
		elseif what == 9 then table.sort(t, function(a, b) return tostring(a) < tostring(b) end)
		end
	end`
	s := machine(new(strings.Builder))
	f, err := s.Main().Call1(load(t, s, text))
	if err != nil {
		t.Fatal(err)
	}
	known := 0
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var items []Value
		for range r.IntN(20) {
			items = append(items, Int(1))
		}
		h, err := s.NewArray(items)
		if err != nil {
			t.Fatal(err)
		}
		least := r.IntN(10)
		for range 100 {
			what := least + r.IntN(10-least)
			if r.IntN(3) > 0 {
				what = r.IntN(2) * 4
			}
			if _, err := s.Main().Call(f, TableValue(h), Int(what), Int(1+r.IntN(40))); err != nil {
				t.Fatal(err)
			}
			said := h.filled
			length := h.Len()
			if h.filled = -1; h.Len() != length {
				t.Fatalf("after %d #t is %d, and with a search %d", what, length, h.Len())
			}
			h.survey()
			if said >= 0 && said != h.filled {
				t.Fatalf("after %d filled is %d, should be %d", what, said, h.filled)
			}
			if said >= 0 {
				known++
			}
			h.filled = said
		}
	}
	if known < 1000 {
		t.Errorf("filled was known %d times", known)
	}
}
