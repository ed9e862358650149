package session

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/reactor"
)

// Long values leave without being copied: the transport writes from the engine's memory,
// which stays as it is meanwhile (engine.Tx.Lend), or takes over the buffer of a command
// that ran in the background. So a client that does not read costs what it was sent once,
// and clients that were sent the same value share it.

const (
	// bulkyFrom is how many bytes of large buffers of one connection make it worthwhile to
	// give memory back, once they are used no more.
	bulkyFrom = 8 << 20
)

// Share implements reactor.Sharer.
func (c *Session) Share() { c.shares = true }

// TakeShared implements reactor.Sharer.
func (c *Session) TakeShared() []reactor.Piece {
	if len(c.pieces) == 0 {
		return nil
	}
	p := c.pieces
	c.pieces = nil
	return p
}

// dropPieces lets go of pieces behind a place in the output, whose replies were taken back.
func (c *Session) dropPieces(at int) {
	for n := len(c.pieces); n > 0 && c.pieces[n-1].At > at; n-- {
		c.pieces[n-1].Done()
		c.pieces = c.pieces[:n-1]
	}
}

func pieceBytes(pieces []reactor.Piece) (n int) {
	for i := range pieces {
		n += len(pieces[i].Bytes)
	}
	return n
}

// releaseMemory has the collector give back the memory of large buffers that the connection
// needs no more.
func (c *Session) releaseMemory() {
	if c.bulky >= bulkyFrom {
		c.svc.scheduleRelease()
	}
	c.bulky = 0
}

// mayShare reports whether output may have pieces that are not in its buffer.
func (c *Session) mayShare() bool { return c.shares && !c.mayHold && !c.held.on && c.coroutine == nil }

// share replies a long value that the engine lends, or that has no other owner, and
// reports whether it did.
func (c *Session) share(v []byte, uses *atomic.Int32) bool {
	if c.replyTooLong(len(v)) {
		return false
	}
	at := c.out.BulkAround(len(v))
	c.pieces = append(c.pieces, reactor.Piece{At: at, Bytes: v, Uses: uses})
	c.lent += len(v)
	c.turn = 0 // it is enough for one call of Serve
	return true
}

// mayShareFor reports whether a long reply of x may be a piece of its own.
func (c *Session) mayShareFor(x *command.Ctx) bool {
	return x.Out == &c.out && c.parked == nil && c.reply == replyOn && c.mayShare()
}

// ReplyLent implements Host.
func (c *Session) ReplyLent(x *command.Ctx, key, v []byte) bool {
	if !c.mayShareFor(x) {
		return false
	}
	uses := x.Tx.Lend(key)
	if uses == nil {
		return false
	}
	if !c.share(v, uses) {
		uses.Add(-1)
	}
	return true
}

// ReplyOwned implements Host.
func (c *Session) ReplyOwned(x *command.Ctx, v []byte) bool {
	if !c.mayShareFor(x) {
		return false
	}
	c.share(v, nil)
	c.bulky += cap(v)
	return true
}
