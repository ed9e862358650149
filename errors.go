package ebb

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
	// reaching the backend rather than from what it replied.
	ErrUnavailable = errors.New("the backend cannot be reached")
	// ErrInterrupted is returned once by Subscription.Next after its connection
	// was lost and made again: messages sent in between are lost.
	ErrInterrupted = errors.New("ebb: the subscription was interrupted, messages may be lost")
	// ErrURL is in the chain of errors about a URL that Open does not take.
	ErrURL = errors.New("ebb: cannot open this URL")
	// ErrStateful is returned by Do and batches for commands that change the
	// connection they are sent on, which is borrowed for one call.
	ErrStateful = errors.New("ebb: the command changes its connection")
	// ErrArgument is in the chain of errors about an argument of a type that
	// has no obvious text, such as a time.Duration.
	ErrArgument = errors.New("ebb: unusable argument")
	// ErrRemote is returned where an embedded engine is needed and the
	// connection leads to a server.
	ErrRemote = errors.New("ebb: not an embedded engine")
)

// ReplyError is an error reply, as errors.As finds it: its code is the first
// word.
type ReplyError = resp.ReplyError

// unavailable wraps the error of a backend that did not answer. Where the
// context has ended that is the reason, and the backend is not to blame.
func unavailable(ctx context.Context, doing string, err error) error {
	if c := ctx.Err(); c != nil {
		return fmt.Errorf("ebb: %s: %w", doing, c)
	}
	if d, ok := ctx.Deadline(); ok && errors.Is(err, os.ErrDeadlineExceeded) && time.Until(d) <= 0 {
		return fmt.Errorf("ebb: %s: %w", doing, context.DeadlineExceeded) // the context's own timer is late
	}
	return fmt.Errorf("ebb: %s: %w: %w", doing, ErrUnavailable, err)
}

// ended is the error of a call whose context had ended before it began.
func ended(ctx context.Context, doing string) error {
	return fmt.Errorf("ebb: %s: %w", doing, ctx.Err())
}
