package lock

import (
	"context"
	"reflect"
	"time"

	"github.com/ebbdb/ebb/internal/locking"
)

// PauseWork has the work of an OnceValue see the clock that it sees after a pause of the process, before its timer has fired.
func PauseWork[T any](ctx context.Context, d time.Duration) {
	t := ctx.(workContext[T]).t
	t.renewed(locking.Instant(time.Time(t.sent).Add(-d)))
}

// Pause has the lease of a lock see the clock that it sees after a pause of the process, before its timers have fired.
func (l *Leases) Pause(lock int, d time.Duration) {
	requested := (*locking.Instant)(reflect.ValueOf(l.leases[lock].lease()).Elem().FieldByName("requested").Addr().UnsafePointer())
	*requested = locking.Instant(time.Time(*requested).Add(-d))
}
