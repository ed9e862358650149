package replication

import (
	"context"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/oplog"
)

// A link that loses the stream dials at once, but not again within a second: a master that
// says +CONTINUE and closes would get hundreds of requests a second.
func TestALinkDialsAtOnceOnceInASecond(t *testing.T) {
	clock := clock.NewManual(time.UnixMilli(1_700_000_000_000))
	db := engine.Open(engine.Options{Clock: clock})
	defer db.Close()
	l := &link{r: &Node{db: db}}
	for i, c := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {0, false}, {999 * time.Millisecond, false}, {time.Millisecond, true}, {0, false}, {time.Hour, true}} {
		if clock.Advance(c.after); l.atOnce() != c.want {
			t.Errorf("%d: at once: %v", i, !c.want)
		}
	}
}

func TestALinkThatWasRefusedWaitsLongerAndDialsAtOnceWhenTheGroupHasChanged(t *testing.T) {
	r := &Node{group: &struct{ LinkEvents }{}}
	l := &link{r: r, ctx: t.Context(), hurry: make(chan struct{}, 1), wait: retryAfter}
	for i, want := range []time.Duration{50, 100, 200, 400, 800, 1600, 3200, 3200} {
		if got := l.retryIn(); got != want*time.Millisecond {
			t.Errorf("after %d refusals it waits for %v, want %v ms", i, got, int64(want))
		}
		l.noteDenial(&deniedError{"no"})
	}
	r.follows.Store(l)
	r.RetryLink()
	l.pause(time.Hour)
	if got := l.retryIn(); got != retryInGroup {
		t.Errorf("when the group has changed it waits for %v", got)
	}
	l.noteDenial(&deniedError{"no"})
	l.noteDenial(errReplaced)
	if l.denied != 0 {
		t.Error("another error counts as a refusal")
	}
}

// A replica that disconnects while its snapshot waits gets no reader at the cut: a reader without a replica would
// keep the whole stream in memory.
func TestAReplicaThatIsGoneHoldsNoStream(t *testing.T) {
	log := oplog.New(0)
	for _, f := range []*Replica{
		{announced: Announced{ip: "gone"}, left: true},
		{announced: Announced{ip: "rdb-only", rdbOnly: true}},
	} {
		f.m = new(master)
		_, f.stop = context.WithCancel(t.Context())
		f.attach(log, 0)
		if f.stop(); f.reader != nil {
			t.Errorf("%s: has a reader", f.announced.ip)
		}
	}
}
