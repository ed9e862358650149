package locking

import (
	"errors"

	"github.com/ebbdb/ebb/conn"
)

// The errors of package lock, which documents them.
var (
	ErrTaken = errors.New("another owner holds it")
	ErrLost  = errors.New("the lease is lost")
)

// CertainlyNotRun reports whether a request with a temporary error has certainly not run: the backend itself replied that it is not
// ready.
func CertainlyNotRun(err error) bool {
	var refused conn.ReplyError
	return errors.As(err, &refused) && !errors.Is(err, conn.ErrNotReplicated)
}

// isLost reports whether a renewal failed because there is no lease to renew.
func isLost(err error) bool {
	var refused conn.ReplyError
	return errors.As(err, &refused) && refused.Code() == "LOST"
}
