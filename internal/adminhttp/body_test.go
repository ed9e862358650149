package adminhttp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestTheBodyOfARequestMustArrive: a client that sends the headers alone holds a connection for a bounded time.
func TestTheBodyOfARequestMustArrive(t *testing.T) {
	for _, x := range []struct {
		name     string
		patience time.Duration
		sent     string // of a body of 10 bytes
		reads    bool   // the handler
		closed   bool   // the server closes the connection after the answer
	}{
		{"a part, read", time.Millisecond, "12345", true, true},
		{"nothing, read", time.Millisecond, "", true, true},
		{"nothing, and the handler does not read", time.Hour, "", false, true},
		{"all, read", time.Hour, "1234567890", true, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			handler := func(w http.ResponseWriter, r *http.Request) {
				if !x.reads {
					return
				}
				got, err := io.ReadAll(r.Body)
				if arrived := len(x.sent) == 10; arrived != (err == nil) || string(got) != x.sent {
					t.Errorf("the handler reads %q, %v", got, err)
				}
				b := r.Body.(*body)
				b.mu.Lock()
				defer b.mu.Unlock()
				if !b.over || b.timer.Stop() {
					t.Error("the body is bounded further")
				}
			}
			s := httptest.NewServer(&Guard{Next: http.HandlerFunc(handler), patience: x.patience})
			defer s.Close()
			nc, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			if _, err := fmt.Fprintf(nc, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n%s", x.sent); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(nc)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != 200 || resp.Close != x.closed {
				t.Errorf("the answer is %d, and closes the connection: %v", resp.StatusCode, resp.Close)
			}
			if x.closed {
				if n, err := in.Read(make([]byte, 1)); err != io.EOF {
					t.Errorf("after the answer: %d, %v", n, err)
				}
			}
		})
	}
}
