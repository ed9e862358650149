package limit

import (
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/conn"
)

var (
	// ErrTooMuch is in the chain of errors about a request for more than a full bucket allows at
	// once. No wait makes such a request possible.
	ErrTooMuch = errors.New("more than can ever be allowed at once")
	// ErrLate is in the chain of errors about a request that becomes possible later than the caller can wait. If
	// the deadline of a context is too early, context.DeadlineExceeded is in the chain too.
	ErrLate = errors.New("the wait would be too long")
	// ErrTaken is the error of TryAcquire if all slots are taken.
	ErrTaken = errors.New("all slots are taken")
	// ErrLost is the cause with which a slot's context ends when its lease could not be renewed in
	// time. Another owner may have the slot.
	ErrLost = errors.New("the lease of the slot is lost")
)

// argument returns an error about an argument, with ebb.ErrArgument in its chain.
func argument(format string, args ...any) error {
	return fmt.Errorf("%w: %s", conn.ErrArgument, fmt.Sprintf(format, args...))
}

// failed returns the error of an operation on a bucket.
func (l *Limiter) failed(doing, key string, err error) error {
	return fmt.Errorf("limit %q: %s %q: %w", l.name, doing, key, err)
}
