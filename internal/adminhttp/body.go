package adminhttp

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// bodyTime is the time in which the body of a request must arrive. The largest one has 1 MiB.
const bodyTime = 30 * time.Second

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// body is the body of a request, of which the rest must arrive within some time. http.Server has a bound for that, ReadTimeout, but it
// would end answers that last, too. A client that sends the headers alone would hold a connection, and a place among the viewer's requests.
type body struct {
	io.ReadCloser
	conn *http.ResponseController

	mu    sync.Mutex // guards what follows
	timer *time.Timer
	over  bool // the body has arrived, or the handler has returned
}

// boundBody makes the reads of a request's body fail after some time. The caller calls end when the handler has returned.
func boundBody(w http.ResponseWriter, r *http.Request, within time.Duration) (end func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	b := &body{ReadCloser: r.Body, conn: http.NewResponseController(w)}
	b.mu.Lock() // finish may run before AfterFunc returns
	b.timer = time.AfterFunc(within, func() { b.finish(true) })
	b.mu.Unlock()
	r.Body = b
	return func() { b.finish(true) } // the server would wait for what the handler has not read
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.finish(false)
	}
	return n, err
}

// finish ends the bound, and with cut the reads of the connection. It does nothing after the first time.
func (b *body) finish(cut bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return
	}
	b.over = true
	b.timer.Stop()
	if cut {
		_ = b.conn.SetReadDeadline(longAgo) // not every ResponseWriter can
	}
}
