package expset

import (
	"errors"
	"fmt"

	"github.com/ebbdb/ebb/conn"
)

var (
	// ErrFull is in the chain of the error of an operation that would exceed the MaxLen of the
	// set. The operation changed nothing.
	ErrFull = errors.New("the set is full")
	// ErrNoEvents is in the chain of the error of OnExpired on a set without Options.Events.
	ErrNoEvents = errors.New("the set was made without Options.Events")
)

// failed adds the set and the operation to an error.
func (s *Set[T]) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, conn.ErrUnavailable) {
		s.feed.Forget()
	}
	if r, ok := errors.AsType[conn.ReplyError](err); ok && r.Code() == "FULL" {
		return s.full(doing)
	}
	return fmt.Errorf("expset %q: %s: %w", s.key, doing, err)
}

func (s *Set[T]) full(doing string) error {
	return fmt.Errorf("expset %q: %s: %w: it has MaxLen (%d) members", s.key, doing, ErrFull, s.o.MaxLen)
}
