package conn_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/ebbdb/ebb"
)

func TestWhatIsTemporary(t *testing.T) {
	for _, code := range []string{
		"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "UNBLOCKED", "MOVED", "ASK", "FAILOVER",
		"NOREPLICAS", "BUSY", "MISCONF", "OOM",
	} {
		if !ebb.Temporary(fmt.Errorf("pop: %w", ebb.ReplyError(code+" for now"))) {
			t.Errorf("%s is for good", code)
		}
	}
	if !ebb.Temporary(fmt.Errorf("pop: %w", ebb.ErrUnavailable)) {
		t.Error("a backend that cannot be reached is not temporary")
	}
	for _, err := range []error{
		nil, ebb.ReplyError("WRONGTYPE it is a hash"), ebb.ReplyError("NOPERM"), ebb.ErrArgument, ebb.ErrClosed, context.Canceled,
		context.DeadlineExceeded,
	} {
		if ebb.Temporary(err) {
			t.Errorf("%v is temporary", err)
		}
	}
}
