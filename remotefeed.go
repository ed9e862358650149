package ebb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// feedQuiet is how long a remote subscription hears nothing before it asks
	// whether the server is still there. A connection that is lost without a
	// word is noticed within twice that.
	feedQuiet = 15 * time.Second
	// feedAgain is the pause before another attempt to connect; it doubles up
	// to feedAgainMax.
	feedAgain    = 50 * time.Millisecond
	feedAgainMax = 2 * time.Second
)

// remoteFeed is the feed of a server. One goroutine reads the connection, and
// reads no further while nobody takes its messages: the server's own limit on
// slow subscribers holds.
type remoteFeed struct {
	ps     *redis.PubSub
	out    chan feedItem
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	reader sync.WaitGroup
	once   sync.Once
}

type feedItem struct {
	m   Message
	err error
}

func (b *remote) subscribe(ctx context.Context, pattern bool, names []string) (feed, error) {
	var ps *redis.PubSub
	if pattern {
		ps = b.client.PSubscribe(ctx, names...)
	} else {
		ps = b.client.Subscribe(ctx, names...)
	}
	for range names { // the server confirms each
		if _, err := ps.Receive(ctx); err != nil {
			_ = ps.Close()
			if v, ok := errorValue(err); ok {
				return nil, v.Err()
			}
			if errors.Is(err, redis.ErrClosed) {
				return nil, ErrClosed
			}
			return nil, unavailable(ctx, "subscribe", err)
		}
	}
	f := &remoteFeed{ps: ps, out: make(chan feedItem)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.reader.Go(f.read)
	return f, nil
}

// read receives until the feed is closed.
func (f *remoteFeed) read() {
	asked, pause := false, feedAgain
	for f.ctx.Err() == nil {
		x, err := f.ps.ReceiveTimeout(f.ctx, feedQuiet)
		switch {
		case err == nil:
			asked, pause = false, feedAgain
			if m, ok := x.(*redis.Message); ok {
				f.give(feedItem{m: Message{Channel: m.Channel, Pattern: m.Pattern, Payload: m.Payload}})
			}
		case errors.Is(err, os.ErrDeadlineExceeded) && !asked:
			asked = true
			_ = f.ps.Ping(f.ctx)
		default:
			asked = false
			f.give(feedItem{err: fmt.Errorf("%w: %w", ErrInterrupted, err)})
			f.wait(pause)
			pause = min(2*pause, feedAgainMax)
		}
	}
}

// give hands an item to Next.
func (f *remoteFeed) give(i feedItem) {
	select {
	case f.out <- i:
	case <-f.ctx.Done():
	}
}

func (f *remoteFeed) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-f.ctx.Done():
	}
}

func (f *remoteFeed) next(ctx context.Context) (Message, error) {
	if ctx.Err() != nil {
		return Message{}, ended(ctx, "subscription")
	}
	select {
	case i := <-f.out:
		return i.m, i.err
	case <-f.ctx.Done():
		return Message{}, ErrClosed
	case <-ctx.Done():
		return Message{}, ended(ctx, "subscription")
	}
}

func (f *remoteFeed) close() error {
	f.once.Do(func() {
		f.cancel()
		_ = f.ps.Close() // ends a read that waits
		f.reader.Wait()
	})
	return nil
}
