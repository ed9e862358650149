package lock

import (
	"context"
	"reflect"
	"time"

	"github.com/ebbdb/ebb/internal/locking"
)

// PauseWork makes the work of an OnceValue see the clock as it is after a pause of the process, before the
// work's timer has fired.
func PauseWork[T any](ctx context.Context, d time.Duration) {
	t := ctx.(workContext[T]).t
	t.renewed(locking.Instant(time.Time(t.sent).Add(-d)))
}

// Pause makes the lease of a lock see the clock as it is after a pause of the process, before the lease's
// timers have fired.
func (l *Leases) Pause(lock int, d time.Duration) {
	requested := (*locking.Instant)(reflect.ValueOf(l.leases[lock].lease()).Elem().FieldByName("requested").Addr().UnsafePointer())
	*requested = locking.Instant(time.Time(*requested).Add(-d))
}
