package queue

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

const (
	// lookAgain is the longest time after which a waiting consumer looks without a wake-up:
	// messages are lost when a master is replaced.
	lookAgain = 5 * time.Second
	// subscribeFirst and subscribeMost are the pauses between tries to subscribe. A waiting
	// consumer looks at each, so they bound the delay where SUBSCRIBE is not allowed.
	subscribeFirst, subscribeMost = 10 * time.Millisecond, 500 * time.Millisecond
)

// bell is the wake-up dispatcher of the consumers that wait in this program, on backends
// without commands that wait:
//
//	scripts: PUBLISH wake -> reader -> a waiting consumer -> the next ...
//
// It wakes one consumer at a time, which wakes the next when it leaves, with a job or without
// one. However many wait, they send as many requests as there are jobs, and no consumer sleeps
// while a job is ready. Invariant: one of the waiting consumers has looked
// since the last message, or has a wake-up pending.
//
// There is one subscription for all, from the first hold to the last release.
type bell struct {
	c       *conn.Conn
	channel string

	mu      sync.Mutex // guards what follows
	holders int
	waiting []chan struct{} // first come first; each has space for one wake-up
	end     context.CancelFunc
	reader  *sync.WaitGroup
}

func (b *bell) init(c *conn.Conn, channel string) { b.c, b.channel = c, channel }

// hold keeps the subscription until release.
func (b *bell) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders++
	if b.holders > 1 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	b.end, b.reader = cancel, new(sync.WaitGroup)
	b.reader.Go(func() { b.read(ctx) })
}

// release gives up a hold. The last one waits until the subscription is closed.
func (b *bell) release() {
	b.mu.Lock()
	b.holders--
	var reader *sync.WaitGroup
	if b.holders == 0 {
		b.end()
		reader = b.reader
	}
	b.mu.Unlock()
	if reader != nil {
		reader.Wait()
	}
}

// read wakes a consumer for every message until ctx ends.
func (b *bell) read(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		sub, err := b.c.Subscribe(ctx, b.channel)
		if err != nil {
			b.ring()
			_ = kit.Sleep(ctx, kit.Backoff(subscribeFirst, subscribeMost, n))
			continue
		}
		n = 0
		for {
			b.ring() // also for what came before
			if _, err = sub.Next(ctx); err != nil && !isInterrupted(err) {
				break
			}
		}
		_ = sub.Close()
	}
}

// enter adds a waiting consumer: its wake-ups go to the channel from now on, until leave.
func (b *bell) enter() chan struct{} {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = append(b.waiting, c)
	return c
}

// leave removes a consumer and wakes the next, which has to find out what this one knew, such as
// when the next job is due.
func (b *bell) leave(c chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	b.ringLocked()
}

// ring wakes the consumer that has waited longest of those without a wake-up.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ringLocked()
}

func (b *bell) ringLocked() {
	for _, c := range b.waiting {
		select {
		case c <- struct{}{}:
			return
		default:
		}
	}
}
