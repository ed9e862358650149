package chunktest

import (
	"errors"
	"fmt"
	"slices"
)

// Container is a container of chunks that can be frozen; C is its own type.
type Container[C any] interface {
	Freeze() C
	Free(budget int) (done bool)
	Check() error
}

// TB has the methods of testing.TB and rapid.T that the tests of containers need.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Thaw ends the freeze that a test has begun with Watch, and frees the copy in small parts.
func Thaw[C Container[C]](t TB, f *Frozen, copied C) {
	t.Helper()
	if err := f.End(); err != nil {
		t.Fatal(err)
	}
	for !copied.Free(3) {
	}
}

// GoesOn has a large container grow and shrink by n changes, freezes it each time,
// and lets it go on beside the copy, which stays what it was. churn makes changes, by
// which the container grows or shrinks on the whole; text is what is in it.
func GoesOn[C Container[C]](t TB, mem *Memory, c C, n int, churn func(n int, grow bool), text func(C) []string) {
	t.Helper()
	for turn := range 6 {
		churn(n, turn%2 == 0)
		want, f := text(c), c.Freeze()
		watch := Watch(mem, func() error {
			if got := text(f); !slices.Equal(got, want) {
				return fmt.Errorf("%d items, want %d, or others", len(got), len(want))
			}
			return f.Check()
		})
		for range 5 {
			churn(n/6, turn%2 != 0)
			if err := errors.Join(watch.Check(), c.Check()); err != nil {
				t.Fatal(err)
			}
		}
		Thaw(t, watch, f)
	}
}

// FirstChanges freezes a large container of n changes again and again, and makes a few
// changes each time: the first after a freeze copy what the later ones only write to.
func FirstChanges[C Container[C]](t TB, mem *Memory, c C, n int, churn func(n int, grow bool)) {
	t.Helper()
	churn(n, true)
	for turn := range 400 {
		f := c.Freeze()
		watch := Watch(mem, f.Check)
		churn(10, turn < 50)
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		Thaw(t, watch, f)
	}
}
