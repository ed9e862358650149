package session

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/reactor"
)

// The server sends long values without copying them: the transport writes from the engine's memory, which
// does not change meanwhile (engine.Tx.Lend), or takes over the buffer of a command that ran in the
// background. So a client that does not read costs the memory of its replies only once, and several clients
// with the same value share it.

const (
	// bulkyFrom is the number of bytes of a connection's large buffers above which it is worthwhile to release
	// them after use.
	bulkyFrom = 8 << 20
)

// Share implements reactor.Sharer.
func (c *connection) Share() { c.shares = true }

// TakeShared implements reactor.Sharer.
func (c *connection) TakeShared() []reactor.Piece {
	if len(c.pieces) == 0 {
		return nil
	}
	p := c.pieces
	c.pieces = nil
	return p
}

// dropPieces drops the pieces after a position in the output, whose replies were taken back.
func (c *connection) dropPieces(at int) {
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

// releaseMemory makes the collector release large buffers that the connection no longer needs.
func (c *connection) releaseMemory() {
	if c.bulky >= bulkyFrom {
		c.host.scheduleRelease()
	}
	c.bulky = 0
}

// mayShare reports whether the output may have pieces outside its buffer.
func (c *Session) mayShare() bool { return c.shares && !c.mayHold && !c.held.on && c.coroutine == nil }

// share replies with a long value that the engine lends, or that has no other owner, and reports
// whether it did.
func (c *Session) share(v []byte, uses *atomic.Int32) bool {
	if c.replyTooLong(len(v)) {
		return false
	}
	at := c.out.BulkAround(len(v))
	c.pieces = append(c.pieces, reactor.Piece{At: at, Bytes: v, Uses: uses})
	c.lent += len(v)
	c.turn = 0 // one call of Serve sends no more than this reply
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
