package conn

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestSettleWaitsForAllThatIsUnderWay(t *testing.T) {
	waited := 0
	under := func(err error) error {
		return UnderWay(err, func(context.Context) (Value, bool) {
			waited++
			return Value{Int: int64(waited)}, true
		})
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{ErrNil, 0},
		{under(ErrNil), 1},
		{fmt.Errorf("acquire: %w", under(context.Canceled)), 1},
		{fmt.Errorf("%w; before that: %w", under(context.Canceled), fmt.Errorf("again: %w", under(ErrUnavailable))), 2},
		{errors.Join(ErrClosed, under(ErrNil)), 1},
	} {
		waited = 0
		late, ok := Settle(t.Context(), c.err)
		if waited != c.want || ok != (c.want > 0) || late.Int != int64(c.want) {
			t.Errorf("%v: waited for %d, want %d; the answer is %v, %v", c.err, waited, c.want, late, ok)
		}
	}
	err := fmt.Errorf("acquire: %w", under(context.Canceled))
	if Again(err, func(context.Context) {}) {
		t.Error("a call that has its answer is to be taken back again")
	}
	planned := 0
	lost := fmt.Errorf("%w; before that: %w", err, Unanswered(ErrUnavailable, func(fn func(context.Context)) { fn(t.Context()) }))
	if !Again(lost, func(context.Context) { planned++ }) || planned != 1 {
		t.Errorf("what a call without an answer did is taken back again %d times, want once", planned)
	}
	if !errors.Is(err, context.Canceled) || err.Error() != "acquire: context canceled" {
		t.Errorf("%v", err)
	}
}
