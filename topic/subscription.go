package topic

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Message is a value and the topic that it was published to.
type Message[T any] struct {
	Channel string // the topic's name
	Pattern string // the pattern that matched, with PSubscribe
	Value   T
}

// Subscription receives messages. One goroutine at a time may call Next or All; any goroutine
// may call Close.
type Subscription[T any] struct {
	what    string
	codec   conn.Codec[T]
	backlog int
	sub     *conn.Subscription
	prefix  string // the prefix of the Conn, which channels begin with

	stop   func()         // ends the pump
	pump   sync.WaitGroup // the goroutine that reads sub
	wakeup chan struct{}  // cap 1: there may be something

	mu     sync.Mutex // guards what follows
	queue  []item     // what waits, from head on
	head   int
	endErr error // why nothing more comes; nil while something may
}

// item is a message or an interruption, in the order in which they came.
type item struct {
	m   conn.Message
	err error
}

// start begins to receive.
func start[T any](what string, c *conn.Conn, sub *conn.Subscription, o Options[T]) *Subscription[T] {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Subscription[T]{what: what, codec: o.Codec, backlog: o.Backlog, sub: sub, prefix: c.Prefix(), stop: cancel}
	s.wakeup = make(chan struct{}, 1)
	s.pump.Go(func() { s.read(ctx) })
	return s
}

// read moves messages from the backend to the queue at once, so that the limit of the backend is not reached before Backlog. It ends when
// there are too many, or with the subscription.
func (s *Subscription[T]) read(ctx context.Context) {
	for {
		m, err := s.sub.Next(ctx)
		switch {
		case ctx.Err() != nil || errors.Is(err, conn.ErrClosed):
			s.end(conn.ErrClosed)
		case err == nil || errors.Is(err, conn.ErrInterrupted):
			if s.put(item{m, err}) {
				continue
			}
			s.end(fmt.Errorf("%w: more than %d messages were waiting", ErrSlow, s.backlog))
		default: // the embedded engine has a limit in bytes too
			s.end(fmt.Errorf("%w: %w", ErrSlow, err))
		}
		_ = s.sub.Close()
		return
	}
}

// put queues an item, and reports false if there are too many.
func (s *Subscription[T]) put(i item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue)-s.head >= s.backlog {
		return false
	}
	if len(s.queue) == cap(s.queue) && s.head > len(s.queue)/2 { // or each would be moved each time
		n := copy(s.queue, s.queue[s.head:])
		clear(s.queue[n:])
		s.queue, s.head = s.queue[:n], 0
	}
	s.queue = append(s.queue, i)
	s.wake()
	return true
}

func (s *Subscription[T]) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endErr = reason
	s.wake()
}

func (s *Subscription[T]) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// Next waits for a message. Errors: the context's; ebb.ErrInterrupted if the connection was
// lost or replaced, and messages may be missing; ebb.ErrValue for a message that the codec
// cannot decode, after which the next message follows; ErrSlow and ebb.ErrClosed, after which
// no message follows.
func (s *Subscription[T]) Next(ctx context.Context) (Message[T], error) {
	for {
		if ctx.Err() != nil {
			return Message[T]{}, fmt.Errorf("%s: waiting for a message: %w", s.what, ctx.Err())
		}
		if i, ok, err := s.take(); ok {
			return s.decode(i)
		} else if err != nil {
			return Message[T]{}, fmt.Errorf("%s: %w", s.what, err)
		}
		select {
		case <-s.wakeup:
		case <-ctx.Done():
		}
	}
}

// take returns the next item, or the reason why there will be none.
func (s *Subscription[T]) take() (i item, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.endErr, conn.ErrClosed) || s.head == len(s.queue) {
		return i, false, s.endErr
	}
	i = s.queue[s.head]
	s.queue[s.head] = item{}
	if s.head++; s.head == len(s.queue) {
		s.queue, s.head = s.queue[:0], 0
	}
	return i, true, nil
}

func (s *Subscription[T]) decode(i item) (Message[T], error) {
	if i.err != nil {
		return Message[T]{}, fmt.Errorf("%s: %w", s.what, i.err)
	}
	m := Message[T]{Channel: strings.TrimPrefix(i.m.Channel, s.prefix), Pattern: strings.TrimPrefix(i.m.Pattern, kit.Escape(s.prefix))}
	var err error
	if m.Value, err = s.codec.Decode([]byte(i.m.Payload)); err != nil {
		return m, fmt.Errorf("%s: a message on %q: %w", s.what, m.Channel, err)
	}
	return m, nil
}

// Err returns why the subscription has ended, ErrSlow or ebb.ErrClosed, even while messages
// wait; nil if the subscription has not ended.
func (s *Subscription[T]) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endErr == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.what, s.endErr)
}

// Waiting returns the number of messages that wait for Next.
func (s *Subscription[T]) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) - s.head
}

// All yields messages and the errors of Next, until the context ends or the subscription is
// closed; it does not yield that end. It continues after ebb.ErrInterrupted and ebb.ErrValue.
// ErrSlow is the last error.
func (s *Subscription[T]) All(ctx context.Context) iter.Seq2[Message[T], error] {
	return func(yield func(Message[T], error) bool) {
		for {
			m, err := s.Next(ctx)
			if kit.Ended(ctx, err) || errors.Is(err, conn.ErrClosed) {
				return
			}
			if !yield(m, err) || errors.Is(err, ErrSlow) {
				return
			}
		}
	}
}

// Close ends the subscription and drops waiting messages. It returns when the subscription's
// goroutines have ended. Further calls do nothing.
func (s *Subscription[T]) Close() error {
	s.stop()
	err := s.sub.Close()
	s.pump.Wait()
	s.end(conn.ErrClosed)
	return err
}
