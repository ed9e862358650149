package replication

import (
	"errors"
	"net"
	"time"
)

// What tests of this package need that play a master to a server with sessions.

const RetryAfter = retryAfter

var ErrReplaced = errReplaced

// TestLink is a link to a master that a test plays.
type TestLink struct{ l *link }

// NewTestLink returns a link that is not the server's.
func NewTestLink(r *Node) *TestLink { return &TestLink{newLink(r, "127.0.0.1", 1)} }

// Follow makes the link the server's, without its goroutine.
func (x *TestLink) Follow() { x.l.r.follows.Store(x.l) }

// Stop ends the link.
func (x *TestLink) Stop() {
	x.l.r.follows.CompareAndSwap(x.l, nil)
	x.l.stop()
}

// NoteRefusal is link.noteRefusal, and returns for how long the link pauses.
func (x *TestLink) NoteRefusal(err error) (time.Duration, bool) {
	ok := x.l.noteRefusal(err)
	return x.l.wait, ok
}

// Stream returns what applies the stream that arrives on conn.
func (x *TestLink) Stream(conn net.Conn) *TestStream {
	return &TestStream{newFollower(x.l, newMasterConn(x.l, conn))}
}

// TestStream applies a stream.
type TestStream struct{ f *follower }

func (x *TestStream) Run() error                  { return x.f.runSafely() }
func (x *TestStream) Apply(b []byte) (int, error) { return x.f.apply(b) }
func (x *TestStream) Begun() bool                 { return x.f.tx.Begun() }
func (x *TestStream) Close()                      { x.f.close() }

// Refusal returns what a link's error says of a command that was refused.
func Refusal(err error) (offset int64, why string, ok bool) {
	var refused *refusedError
	if !errors.As(err, &refused) {
		return 0, "", false
	}
	return refused.offset, refused.why, true
}
