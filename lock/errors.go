package lock

import (
	"errors"

	"github.com/ebbdb/ebb/internal/locking"
)

var (
	// ErrTaken says that another owner holds the lock. TryAcquire returns it at once, Acquire
	// after the whole wait.
	ErrTaken = locking.ErrTaken
	// ErrLost says that a lease is over or may be over: the backend said so, or did not reply in
	// time. It is then the cause of the Lease's Context. Work under the lock must stop.
	ErrLost = locking.ErrLost
	// ErrLater says that RunLater pushed the work to a queue.
	ErrLater = errors.New("another owner holds the lock; the work was pushed to the queue")
)

func isTaken(err error) bool { return errors.Is(err, ErrTaken) }
