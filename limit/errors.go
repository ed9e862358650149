package limit

import (
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/conn"
)

var (
	// ErrTooMuch is in the chain of errors about a request for more than a full
	// limiter allows at once: it could never be served.
	ErrTooMuch = errors.New("more than can ever be allowed at once")
	// ErrLate is in the chain of errors about a turn that comes later than the
	// caller can wait. A context whose deadline is too early is in the chain as
	// context.DeadlineExceeded.
	ErrLate = errors.New("the turn comes too late")
	// ErrTaken is returned by TryAcquire when all slots are taken.
	ErrTaken = errors.New("all slots are taken")
	// ErrLost is the cause of the end of a slot's context when its lease could not
	// be renewed in time: another owner may have the slot.
	ErrLost = errors.New("the lease of the slot is lost")
	// ErrNoRate is returned by Redisson's methods before a rate was set.
	ErrNoRate = errors.New("the rate limiter has no rate yet: TrySetRate sets it")
)

// argument returns an error about an argument, in the chain of which is
// ebb.ErrArgument.
func argument(format string, args ...any) error {
	return fmt.Errorf("%w: %s", conn.ErrArgument, fmt.Sprintf(format, args...))
}

// failed is an error of an operation on a bucket.
func (l *Limiter) failed(doing, key string, err error) error {
	return fmt.Errorf("limit %q: %s %q: %w", l.name, doing, key, err)
}
