package drivers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb/resp"
)

var (
	errNil         = errors.New("nil")
	errUnavailable = errors.New("unavailable")
	errClosed      = errors.New("closed")
)

func TestAwaitReplyWaitsForEachPendingReply(t *testing.T) {
	waited := 0
	pending := func(err error) error {
		return PendingReply(err, func(context.Context) (resp.Value, bool) {
			waited++
			return resp.Value{Int: int64(waited)}, true
		})
	}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errNil, 0},
		{pending(errNil), 1},
		{fmt.Errorf("acquire: %w", pending(context.Canceled)), 1},
		{fmt.Errorf("%w; before that: %w", pending(context.Canceled), fmt.Errorf("again: %w", pending(errUnavailable))), 2},
		{errors.Join(errClosed, pending(errNil)), 1},
	} {
		waited = 0
		late, ok := AwaitReply(t.Context(), c.err)
		if waited != c.want || ok != (c.want > 0) || late.Int != int64(c.want) {
			t.Errorf("%v: waited for %d, want %d; the answer is %v, %v", c.err, waited, c.want, late, ok)
		}
	}
	err := fmt.Errorf("acquire: %w", pending(context.Canceled))
	if RepeatLater(err, func(context.Context) {}) {
		t.Error("a call that has its answer is to be taken back again")
	}
	planned := 0
	lost := fmt.Errorf("%w; before that: %w", err, NoReply(errUnavailable, func(fn func(context.Context)) { fn(t.Context()) }))
	if !RepeatLater(lost, func(context.Context) { planned++ }) || planned != 1 {
		t.Errorf("what a call without an answer did is taken back again %d times, want once", planned)
	}
	if !errors.Is(err, context.Canceled) || err.Error() != "acquire: context canceled" {
		t.Errorf("%v", err)
	}
}
