package conn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/ebbdb/ebb/resp"
)

var (
	// ErrNil says that there is nothing: no such key, or no such element. The
	// typed methods return it; Do returns a Value whose IsNull is true.
	ErrNil = errors.New("ebb: nil")
	// ErrNotSet is returned by Set when its condition, NX or XX, did not hold.
	ErrNotSet = errors.New("ebb: not set: the condition does not hold")
	// ErrConflict is returned by Watched.Tx when a watched key has changed:
	// nothing was done, and it can be tried again.
	ErrConflict = errors.New("ebb: a watched key has changed")
	// ErrClosed is returned by what is called after Close.
	ErrClosed = errors.New("ebb: closed")
	// ErrUnavailable is in the chain of every error that comes from not
	// reaching the backend, or from a backend that is not ready: it loads, fails
	// over, or moves the key. In the latter case there is a ReplyError in the chain
	// too, and the command has not run.
	ErrUnavailable = errors.New("the backend cannot be reached")
	// ErrNotReplicated is in the chain of the errors of a Replicated view's call
	// that has run, but is not on as many replicas as the view wants: if the master is
	// lost, it may be. ErrUnavailable is in the chain too, unless WAIT is refused.
	ErrNotReplicated = errors.New("ebb: it has run, but is not on enough replicas")
	// ErrInterrupted is returned by Subscription.Next when its connection was lost,
	// and again when the subscription was made anew: messages sent in between are lost.
	// A message that is missing is missing where this error stands, and nowhere else.
	ErrInterrupted = errors.New("ebb: the subscription was interrupted, messages may be lost")
	// ErrURL is in the chain of errors about a URL that Open does not take.
	ErrURL = errors.New("ebb: cannot open this URL")
	// ErrStateful is returned by Do and batches for commands that change the
	// connection they are sent on, which is borrowed for one call.
	ErrStateful = errors.New("ebb: the command changes its connection")
	// ErrArgument is in the chain of errors about what the caller has passed: an
	// argument of a type that has no obvious text, such as a time.Duration, keys of
	// several slots in one transaction, or a number, a name or an option that a method
	// or an object of the toolkit does not take. The call has sent nothing.
	ErrArgument = errors.New("ebb: unusable argument")
	// ErrValue is in the chain of errors about stored data that a Codec, or an
	// object, cannot read: another program's, or of another version.
	ErrValue = errors.New("ebb: stored data that cannot be read")
	// ErrRemote is returned where an embedded engine is needed and the
	// connection leads to a server.
	ErrRemote = errors.New("ebb: not an embedded engine")
)

// ReplyError is an error reply, as errors.As finds it: its code is the first
// word.
type ReplyError = resp.ReplyError

// Unavailable returns the error of a Driver whose backend did not answer while it was
// doing something. Where the
// context has ended that is the reason, and the backend is not to blame. Where it has
// not, a context's error is not in the chain: package net has it there for a connection
// that was not made within the client's own timeout.
func Unavailable(ctx context.Context, doing string, err error) error {
	if c := ctx.Err(); c != nil {
		return fmt.Errorf("ebb: %s: %w", doing, c)
	}
	if d, ok := ctx.Deadline(); ok && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)) && time.Until(d) <= 0 {
		return fmt.Errorf("ebb: %s: %w", doing, context.DeadlineExceeded) // the context's own timer is late
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("ebb: %s: %w: %v", doing, ErrUnavailable, err) //nolint:errorlint // hidden on purpose
	}
	return fmt.Errorf("ebb: %s: %w: %w", doing, ErrUnavailable, err)
}

// Ended returns the error of a call whose context has ended: before it began, or while it
// waited.
func Ended(ctx context.Context, doing string) error {
	return fmt.Errorf("ebb: %s: %w", doing, ctx.Err())
}

// Temporary reports whether an error may go away by itself, and the same call is worth
// another try: the backend cannot be reached, starts, changes roles, moves the key, has
// no room, or is busy with a script. Whether a call that ended so has done its work is
// another question: see ErrUnavailable. The end of a context is not temporary.
func Temporary(err error) bool {
	if errors.Is(err, ErrUnavailable) {
		return true
	}
	var refused ReplyError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code() {
	case "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "UNBLOCKED", "FAILOVER",
		"NOREPLICAS", "BUSY", "MISCONF", "OOM":
		return true
	}
	return false
}
