package ginebb

import (
	"bufio"
	"io"
	"net"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

// Idempotent returns a handler that makes requests with the header field Idempotency-Key repeatable, as
// package lock/httpidem does: the handlers after it run once for a key, and each repetition gets the response of that
// run. The chain ends for a repetition and for a refused request.
//
// scope returns the caller of a request, such as the user that an earlier handler has authenticated, and
// replaces httpidem.Options.Scope; nil: that option decides. Two Options are a panic. The key in a handler is
// httpidem.Key(c.Request).
//
// The response is held back until it is kept, so handlers write to another gin.ResponseWriter than those before.
// After the chain those before see the status and the size that were sent.
func Idempotent(once *lock.OnceValue[httpidem.Response], scope func(c *gin.Context) string, opts ...httpidem.Options) gin.HandlerFunc {
	idempotent := httpidem.New(once, opts...)
	return func(c *gin.Context) {
		w, request, ran := c.Writer, c.Request, false
		r := request
		if scope != nil {
			r = httpidem.WithScope(r, scope(c))
		}
		idempotent(http.HandlerFunc(func(inner http.ResponseWriter, r *http.Request) {
			ran = true
			held := &writer{ResponseWriter: w, inner: inner, status: w.Status(), size: -1}
			c.Writer, c.Request = held, r
			defer func() { c.Writer, c.Request = w, request }()
			c.Next()
			held.WriteHeaderNow()
		})).ServeHTTP(w, r)
		if !ran {
			c.Abort()
		}
	}
}

// writer is the gin.ResponseWriter of the handlers. It writes to the one of httpidem. As gin's own it sends
// the status with the first byte, or when the handlers have returned.
type writer struct {
	gin.ResponseWriter // of the handlers before; for CloseNotify and Pusher
	inner              http.ResponseWriter

	status int
	size   int // of the body; -1 before the status is sent
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.inner.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if status > 0 && !w.Written() {
		w.status = status
	}
}

// WriteHeaderNow implements gin.ResponseWriter.
func (w *writer) WriteHeaderNow() {
	if !w.Written() {
		w.size = 0
		w.inner.WriteHeader(w.status)
	}
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeaderNow()
	n, err := w.inner.Write(p)
	w.size += n
	return n, err
}

// WriteString implements gin.ResponseWriter.
func (w *writer) WriteString(s string) (int, error) {
	w.WriteHeaderNow()
	n, err := io.WriteString(w.inner, s)
	w.size += n
	return n, err
}

// Status implements gin.ResponseWriter.
func (w *writer) Status() int { return w.status }

// Size implements gin.ResponseWriter.
func (w *writer) Size() int { return w.size }

// Written implements gin.ResponseWriter.
func (w *writer) Written() bool { return w.size >= 0 }

// Flush implements http.Flusher. The client then has the response before it is kept.
func (w *writer) Flush() {
	w.WriteHeaderNow()
	_ = http.NewResponseController(w.inner).Flush()
}

// Hijack implements http.Hijacker.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.inner).Hijack()
	if err == nil {
		w.size = max(w.size, 0)
	}
	return conn, rw, err
}

// Unwrap returns the ResponseWriter of httpidem, for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.inner }
