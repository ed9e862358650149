package rueidisebb

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/routing"
)

func TestACallWhoseContextHasEndedSaysSoAtTheReadTimeout(t *testing.T) {
	d := &driver{}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if a := d.batchAnswer(canceled, "GET", rueidis.RedisResult{}, errSilent); !a.Ran || !errors.Is(a.Err, context.Canceled) {
		t.Errorf("cancelled: %+v", a)
	}
	if a := d.batchAnswer(t.Context(), "GET", rueidis.RedisResult{}, errSilent); !a.Ran || !errors.Is(a.Err, routing.ErrUnresponsive) {
		t.Errorf("not cancelled: %+v", a)
	}
}

// rueidis ends all calls on a connection when the deadline of one of them has passed.
func TestACallThatTheDeadlineOfAnotherEndsSaysThatTheServerIsSilent(t *testing.T) {
	err := unavailable(t.Context(), "GET", context.DeadlineExceeded)
	if !errors.Is(err, conn.ErrUnavailable) || !errors.Is(err, routing.ErrUnresponsive) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
