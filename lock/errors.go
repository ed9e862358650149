package lock

import (
	"errors"

	"github.com/ebbdb/ebb/conn"
)

var (
	// ErrTaken says that another owner holds the lock. TryAcquire returns it at once, Acquire
	// after the whole wait.
	ErrTaken = errors.New("another owner holds it")
	// ErrLost says that a lease is over or may be over: the backend said so, or did not reply in
	// time. It is then the cause of the Lease's Context. Work under the lock must stop.
	ErrLost = errors.New("the lease is lost")
	// ErrLater says that the work was pushed to a queue: see RunLater.
	ErrLater = errors.New("another owner holds it, the work was handed to the queue")
)

// certainlyNotRun reports whether a request with a temporary error has certainly not run: the backend itself replied that it is not
// ready.
func certainlyNotRun(err error) bool {
	var refused conn.ReplyError
	return errors.As(err, &refused) && !errors.Is(err, conn.ErrNotReplicated)
}

// isLost reports whether a renewal failed because there is no lease to renew.
func isLost(err error) bool {
	var refused conn.ReplyError
	return errors.As(err, &refused) && refused.Code() == "LOST"
}

func isTaken(err error) bool { return errors.Is(err, ErrTaken) }
