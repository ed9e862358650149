package lua

import (
	"fmt"
	"math/rand"
	"testing"
)

func TestARecordIsTheTableThatSettingItsKeysMakes(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for n := range 3000 {
		s := New()
		want := s.NewTable(0, 0)
		kvs := make([]Value, 0, 2*n)
		for range n % 90 {
			k, v := String(fmt.Sprint("k", r.Intn(1+n%130))), Int(r.Intn(100))
			kvs = append(kvs, k, v)
			if err := want.Set(k, v); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.NewRecord(kvs)
		if err != nil {
			t.Fatal(err)
		}
		// Then both grow on, which shows the free nodes.
		for i := range 5 {
			compareTables(t, got, want)
			k := String(fmt.Sprint("more", i))
			if err := got.Set(k, True); err != nil {
				t.Fatal(err)
			}
			if err := want.Set(k, True); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// compareTables fails the test unless two tables have the same entries at the same
// positions.
func compareTables(t *testing.T, got, want *Table) {
	t.Helper()
	if len(got.hash()) != len(want.hash()) || got.lastFree != want.lastFree {
		t.Fatalf("%d nodes, %d free; want %d, %d", len(got.hash()), got.lastFree, len(want.hash()), want.lastFree)
	}
	for i, j := 0, 0; i >= 0; {
		var gk, gv, wk, wv Value
		gk, gv, i = got.Entry(i)
		wk, wv, j = want.Entry(j)
		if i != j || !Equal(gk, wk) || !Equal(gv, wv) {
			t.Fatalf("position %d: %v = %v, want position %d: %v = %v", i, gk, gv, j, wk, wv)
		}
	}
}
