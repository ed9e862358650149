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

// A replica that goes while its snapshot waits for its turn gets no reader at the
// cut: a reader without a replica would keep the whole stream in memory.
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
