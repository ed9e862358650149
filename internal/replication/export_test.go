package replication

import (
	"errors"
	"net"
	"time"
)

// Functions for tests of this package that act as the master of a server with sessions.

const RetryAfter = retryAfter

var ErrReplaced = errReplaced

// TestLink is a link to a master that the test simulates.
type TestLink struct{ l *link }

// NewTestLink returns a link that the server does not use.
func NewTestLink(r *Node) *TestLink { return &TestLink{newLink(r, "127.0.0.1", 1)} }

// Follow makes the server use the link, without the link's goroutine.
func (x *TestLink) Follow() { x.l.r.follows.Store(x.l) }

// Stop ends the link.
func (x *TestLink) Stop() {
	x.l.r.follows.CompareAndSwap(x.l, nil)
	x.l.stop()
}

// NoteRefusal calls link.noteRefusal, and returns the link's pause.
func (x *TestLink) NoteRefusal(err error) (time.Duration, bool) {
	ok := x.l.noteRefusal(err)
	return x.l.wait, ok
}

// Stream returns an applier of the stream that arrives on conn.
func (x *TestLink) Stream(conn net.Conn) *TestStream {
	return &TestStream{newFollower(x.l, newMasterConn(x.l, conn))}
}

// TestStream applies a stream.
type TestStream struct{ f *follower }

func (x *TestStream) Run() error                  { return x.f.runSafely() }
func (x *TestStream) Apply(b []byte) (int, error) { return x.f.apply(b) }
func (x *TestStream) Begun() bool                 { return x.f.tx.Begun() }
func (x *TestStream) Close()                      { x.f.close() }

// Refusal returns the refused command's offset and reason from a link's error.
func Refusal(err error) (offset int64, why string, ok bool) {
	var refused *refusedError
	if !errors.As(err, &refused) {
		return 0, "", false
	}
	return refused.offset, refused.why, true
}
