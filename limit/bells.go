package limit

import (
	"context"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// bells is the wake-up dispatcher of the calls in this process that wait for a slot of one
// Concurrency, on servers without SEM.ACQUIRE. The scripts publish the owner whose turn it is
// on one channel for all keys, and one subscription receives it for all calls. It is open
// while a call waits. After a lost message a call asks again at its next refresh.
type bells struct {
	c       *conn.Conn
	channel string

	mu     sync.Mutex               // guards what follows
	owners map[string]chan struct{} // each has space for one wake-up
	end    context.CancelFunc       // of the reader; there is one while there are owners
	reader *sync.WaitGroup
}

// join adds an owner and returns its channel; the caller calls leave in the end. The channel
// gets a wake-up when the subscription begins, because a message may have come before.
func (b *bells) join(owner string) <-chan struct{} {
	bell := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.owners) == 0 {
		ctx, cancel := context.WithCancel(context.Background())
		b.owners, b.end, b.reader = map[string]chan struct{}{}, cancel, new(sync.WaitGroup)
		b.reader.Go(func() { b.read(ctx) })
	} else {
		ring(bell)
	}
	b.owners[owner] = bell
	return bell
}

// leave removes an owner. The last one waits until the subscription is closed.
func (b *bells) leave(owner string) {
	b.mu.Lock()
	delete(b.owners, owner)
	var reader *sync.WaitGroup
	if len(b.owners) == 0 {
		b.end()
		reader = b.reader
	}
	b.mu.Unlock()
	if reader != nil {
		reader.Wait()
	}
}

// read wakes the owner that a message names, until ctx ends. Without a subscription waiting
// calls ask at every refresh, and read tries to subscribe again as often.
func (b *bells) read(ctx context.Context) {
	for ctx.Err() == nil {
		if sub, err := b.c.Subscribe(ctx, b.channel); err == nil {
			b.listen(ctx, sub)
		}
		_ = kit.Sleep(ctx, refresh)
	}
}

// listen reads a subscription until it ends. Its errors are messages that may have
// been lost.
func (b *bells) listen(ctx context.Context, sub *conn.Subscription) {
	b.call("")
	for m, err := range sub.All(ctx) {
		if err == nil {
			b.call(m.Payload)
		} else {
			b.call("")
		}
	}
	_ = sub.Close()
}

// call wakes an owner; "": all owners.
func (b *bells) call(owner string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if owner != "" {
		if bell := b.owners[owner]; bell != nil {
			ring(bell)
		}
		return
	}
	for _, bell := range b.owners {
		ring(bell)
	}
}

func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default: // it has not heard the last one yet
	}
}
