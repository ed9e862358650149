package adminhttp

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// connections bounds the connections of the admin pages, so that the server keeps file descriptors for its clients and files. A
// new one beyond the bound takes the place of the oldest one on which no request is answered: clients that open connections and
// send nothing, or a request or a body without its end, lose those first.
type connections struct {
	limit  int
	closed atomic.Int64 // because of the bound

	mu  sync.Mutex // guards what follows
	all map[net.Conn]*client
	new int64 // the number of the latest one
}

// client is a connection.
type client struct {
	nc      net.Conn
	number  int64
	answers atomic.Int32 // requests that a handler answers, and whose body it does not wait for
}

// awaited is the body of a request: its connection is not protected while a handler waits for the client to send more of it.
type awaited struct {
	io.ReadCloser
	one *client
}

// Read implements io.Reader.
func (b *awaited) Read(p []byte) (int, error) {
	b.one.answers.Add(-1)
	defer b.one.answers.Add(1)
	return b.ReadCloser.Read(p)
}

// clientKey is the key of the client in the context of a request.
type clientKey struct{}

// enter counts a new connection. It is http.Server.ConnContext.
func (c *connections) enter(ctx context.Context, nc net.Conn) context.Context {
	c.mu.Lock()
	if c.all == nil {
		c.all = map[net.Conn]*client{}
	}
	c.new++
	one := &client{nc: nc, number: c.new}
	c.all[nc] = one
	var close net.Conn
	if len(c.all) > c.limit {
		oldest := one // all others are busy
		for _, other := range c.all {
			if other.answers.Load() == 0 && other.number < oldest.number {
				oldest = other
			}
		}
		close = oldest.nc
		delete(c.all, close)
	}
	c.mu.Unlock()
	if close != nil {
		c.closed.Add(1)
		_ = close.Close()
	}
	return context.WithValue(ctx, clientKey{}, one)
}

// state is http.Server.ConnState.
func (c *connections) state(nc net.Conn, s http.ConnState) {
	if s == http.StateClosed || s == http.StateHijacked {
		c.mu.Lock()
		delete(c.all, nc)
		c.mu.Unlock()
	}
}

// busy is a handler that protects the connection of a request while next answers it.
func (c *connections) busy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if one, ok := r.Context().Value(clientKey{}).(*client); ok {
			one.answers.Add(1)
			defer one.answers.Add(-1)
			if r.Body != nil && r.Body != http.NoBody {
				r.Body = &awaited{r.Body, one}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// open returns the number of connections.
func (c *connections) open() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int64(len(c.all))
}
