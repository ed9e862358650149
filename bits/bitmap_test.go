package bits_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bits"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

func bitmap(t rapid.TB, c *ebb.Conn, name string) *bits.Bitmap {
	t.Helper()
	m, err := bits.New(c, name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMain(m *testing.M) { backends.Main(m) }

func want[T comparable](t *testing.T, what string, got T, err error, want T) {
	t.Helper()
	if got != want || err != nil {
		t.Errorf("%s: %v (%v), want %v", what, got, err, want)
	}
}

func TestBitsAreSetCountedAndFound(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		m := bitmap(t, b.Conn, b.Name("m"))
		p, err := m.Pos(ctx, false, 5)
		want(t, "the first 0 of nothing", p, err, 5)
		was, err := m.Set(ctx, 100_000, true)
		want(t, "set", was, err, false)
		was, err = m.Set(ctx, 100_000, true)
		want(t, "again", was, err, true)
		n, err := m.SetMany(ctx, 3, 5, 7, 7, 100_000)
		want(t, "changed", n, err, 3)
		yes, err := m.Get(ctx, 5)
		want(t, "get 5", yes, err, true)
		yes, err = m.Get(ctx, 6)
		want(t, "get 6", yes, err, false)
		n, err = m.Count(ctx)
		want(t, "count", n, err, 4)
		n, err = m.CountRange(ctx, 4, 7)
		want(t, "count 4-7", n, err, 2)
		n, err = m.CountRange(ctx, -8, -1)
		want(t, "count the last byte", n, err, 1)
		p, err = m.Pos(ctx, true, 6)
		want(t, "the first 1 from 6", p, err, 7)
		p, err = m.Pos(ctx, true, 100_001)
		want(t, "the first 1 after all", p, err, -1)
		n, err = m.Len(ctx)
		want(t, "len", n, err, 100_008)
		var all []int64
		for i, err := range m.All(ctx, 5) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, i)
		}
		if !slices.Equal(all, []int64{5, 7, 100_000}) {
			t.Error(all)
		}
		if err := m.Delete(ctx); err != nil {
			t.Error(err)
		}
		n, err = m.Count(ctx)
		want(t, "count of nothing", n, err, 0)
	})
}

func TestAllGoesAcrossItsReads(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		m := bitmap(t, b.Conn, b.Name("m"))
		set := []int64{8*(16<<10) - 1, 8 * (16 << 10), 2*8*(16<<10) - 1, 2 * 8 * (16 << 10)} // 16 KiB each
		if _, err := m.SetMany(ctx, set...); err != nil {
			t.Fatal(err)
		}
		for _, from := range []int64{0, 3, set[0]} {
			var all []int64
			for i, err := range m.All(ctx, from) {
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, i)
			}
			if !slices.Equal(all, set) {
				t.Error(from, all)
			}
		}
	})
}

func TestTheFirst0BeyondTheEnd(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		m := bitmap(t, b.Conn, b.Name("m"))
		if err := b.Set(ctx, b.Name("m"), "\xff\xff"); err != nil {
			t.Fatal(err)
		}
		for from, first := range map[int64]int64{0: 16, 9: 16, 16: 16, 40: 40} {
			p, err := m.Pos(ctx, false, from)
			want(t, fmt.Sprint("from ", from), p, err, first)
		}
	})
}

func TestOps(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		name := func(s string) *bits.Bitmap { return bitmap(t, b.Conn, "{"+b.Name("op")+"}"+s) }
		x, y, to := name("x"), name("y"), name("to")
		for m, set := range map[*bits.Bitmap][]int64{x: {0, 1, 2}, y: {1, 2, 3, 20}} {
			if _, err := m.SetMany(ctx, set...); err != nil {
				t.Fatal(err)
			}
		}
		for op, n := range map[bits.Op]int64{bits.And: 2, bits.Or: 5, bits.Xor: 3} {
			long, err := to.Op(ctx, op, x, y)
			want(t, "length", long, err, 24)
			got, err := to.Count(ctx)
			want(t, string(op), got, err, n)
		}
		if _, err := to.Op(ctx, bits.Not, x); err != nil {
			t.Error(err)
		}
		got, err := to.Count(ctx)
		want(t, "not", got, err, 5)
		if _, err := to.Op(ctx, bits.Not, x, y); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
		if _, err := to.Op(ctx, bits.And); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	})
}

func TestFields(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		m := bitmap(t, b.Conn, b.Name("m"))
		field := func(kind bits.Type, at int64) *bits.Field {
			f, err := m.Field(kind, at)
			if err != nil {
				t.Fatal(err)
			}
			return f
		}
		level, score := field(bits.Uint(4), 3), field(bits.Int(64), 16)
		n, err := level.Set(ctx, 14)
		want(t, "was", n, err, 0)
		n, err = level.Add(ctx, 1, bits.Fail)
		want(t, "14+1", n, err, 15)
		if _, err = level.Add(ctx, 1, bits.Fail); !errors.Is(err, bits.ErrOverflow) {
			t.Error(err)
		}
		n, err = level.Add(ctx, 5, bits.Saturate)
		want(t, "at the end", n, err, 15)
		n, err = level.Add(ctx, 2, bits.Wrap)
		want(t, "around", n, err, 1)
		n, err = score.Add(ctx, math.MinInt64, bits.Fail)
		want(t, "a large one", n, err, math.MinInt64)
		n, err = score.Get(ctx)
		want(t, "get", n, err, math.MinInt64)
		n, err = level.Get(ctx)
		want(t, "the neighbour", n, err, 1)
	})
	m := bitmap(t, new(ebb.Conn), "x")
	for _, bad := range []struct {
		t  bits.Type
		at int64
	}{{bits.Uint(64), 0}, {bits.Uint(0), 0}, {bits.Int(65), 0}, {bits.Int(8), -1}, {bits.Int(8), bits.Max - 6}} {
		if _, err := m.Field(bad.t, bad.at); !errors.Is(err, ebb.ErrArgument) {
			t.Error(bad, err)
		}
	}
}

func TestManySetAtOnce(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		m := bitmap(t, b.Conn, b.Name("m"))
		var mu sync.Mutex
		var wg sync.WaitGroup
		first := int64(0)
		for range 4 {
			wg.Go(func() {
				for i := range int64(20) {
					n, err := m.SetMany(ctx, 10*i, 10*i+3, 10*i+9)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					first += n
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		n, err := m.Count(ctx)
		want(t, "count", n, err, 60)
		if first != 60 {
			t.Error(first, "were set first")
		}
	})
}

func TestCallsEndWithTheContext(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		m := bitmap(t, b.Conn, b.Name("m"))
		if _, err := m.Set(ctx, 1, true); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for _, err := range m.All(ctx, 0) {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

func TestNumbersThatNoBitHasAreRefused(t *testing.T) {
	m := bitmap(t, new(ebb.Conn), "x")
	for _, i := range []int64{-1, bits.Max + 1} {
		if _, err := m.Set(t.Context(), i, true); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
		if _, err := m.Get(t.Context(), i); !errors.Is(err, ebb.ErrArgument) {
			t.Error(err)
		}
	}
}

// The model of a bitmap is a slice of booleans.
func TestABitmapIsASlice(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	round := 0
	draw.Check(t, func(t *rapid.T) {
		round++
		ctx := context.Background()
		m := bitmap(t, c, fmt.Sprint("model", round))
		var model [300]bool
		at := rapid.Int64Range(0, int64(len(model)-1))
		check := func(err error, ok bool, args ...any) {
			if err != nil || !ok {
				t.Fatal(append(args, err)...)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, to := at.Draw(t, "i"), rapid.Bool().Draw(t, "to")
				was, err := m.Set(ctx, i, to)
				check(err, was == model[i], "set", i, was)
				model[i] = to
			},
			"count": func(t *rapid.T) {
				from, to := at.Draw(t, "from"), at.Draw(t, "to")
				n := int64(0)
				for i := from; i <= to; i++ {
					if model[i] {
						n++
					}
				}
				if l, err := m.Len(ctx); err != nil || from >= l {
					return // as a negative span
				}
				got, err := m.CountRange(ctx, from, to)
				check(err, got == n, "count", from, to, got, n)
			},
			"pos": func(t *rapid.T) {
				from, bit := at.Draw(t, "from"), rapid.Bool().Draw(t, "bit")
				first := int64(-1)
				for i := from; i < int64(len(model)); i++ {
					if model[i] == bit {
						first = i
						break
					}
				}
				if first < 0 && !bit {
					return
				}
				got, err := m.Pos(ctx, bit, from)
				check(err, got == first, "pos", bit, from, got, first)
			},
			"all": func(t *rapid.T) {
				from := at.Draw(t, "from")
				i := from
				for got, err := range m.All(ctx, from) {
					for i < got && !model[i] {
						i++
					}
					check(err, i == got, "all", got, i)
					i++
				}
			},
		})
	})
}
