package limit

import (
	"context"
	"sync"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// bells calls those who wait for a slot of one Concurrency in this process, on servers
// without SEM.ACQUIRE: the scripts name the owner whose turn it is on one channel,
// whatever the key, and one subscription hears it for all. It is open while a call
// waits. A message that is lost costs a refresh.
type bells struct {
	c       *conn.Conn
	channel string

	mu     sync.Mutex               // guards what follows
	owners map[string]chan struct{} // each has room for one ring
	end    context.CancelFunc       // of the reader; there is one while there are owners
	reader *sync.WaitGroup
}

// join adds an owner, who leaves in the end, and returns its bell. It rings at once
// when the subscription begins: it may have been called just before.
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

// read calls who is named until ctx ends. Where there is no subscription to be had
// those who wait ask every refresh, and the reader tries again as often.
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
