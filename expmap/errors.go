package expmap

import (
	"context"
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/conn"
)

var (
	// ErrFull is in the chain of the error of an operation that would exceed the MaxLen of the
	// map. The operation changed nothing.
	ErrFull = errors.New("the map is full")
	// ErrNotNumber is in the chain of the error of Increment and IncrementFloat for an entry whose
	// value is not a number of that kind. The operation changed nothing.
	ErrNotNumber = errors.New("the entry's value is not a number")
	// ErrOverflow is in the chain of the error of Increment and IncrementFloat if the sum is out of range. The
	// operation changed nothing.
	ErrOverflow = errors.New("the sum is out of range")
	// ErrNoEvents is in the chain of the error of OnExpired on a map without Options.Events.
	ErrNoEvents = errors.New("the map was made without Options.Events")
)

// failed adds the map and the operation to an error.
func (m *Map[K, V]) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, conn.ErrUnavailable) {
		m.feed.Forget()
	}
	if r, ok := errors.AsType[conn.ReplyError](err); ok && r.Code() == "FULL" {
		return fmt.Errorf("expmap %q: %s: %w: it has MaxLen (%d) entries", m.key, doing, ErrFull, m.o.MaxLen)
	}
	return fmt.Errorf("expmap %q: %s: %w", m.key, doing, err)
}

// ended reports whether an error is the end of a context.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
