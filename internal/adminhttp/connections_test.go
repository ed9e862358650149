package adminhttp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// Clients that send requests without an end do not keep others out, and are closed first.
func TestUnfinishedRequestsKeepNoOtherOut(t *testing.T) {
	a, err := ListenAdmin("127.0.0.1:0", Options{Connections: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	begun, over := make(chan struct{}), make(chan struct{})
	a.Ready(Page{Path: "/slow", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-over
		_, _ = io.WriteString(w, "the end")
	})})
	slow := dial(t, a)
	fmt.Fprint(slow, "GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-begun
	for range 100 {
		fmt.Fprint(dial(t, a), "GET /healthz HTTP/1.1\r\nHost: local")
	}
	if status, body, _ := request(t, a, "GET", "/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("%d %q", status, body)
	}
	if open, closed := a.Connections(); open > 8 || closed < 90 {
		t.Errorf("%d connections are open, and %d were closed", open, closed)
	}
	close(over) // the request that was answered has its connection
	reply, err := http.ReadResponse(bufio.NewReader(slow), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if body, err := io.ReadAll(reply.Body); string(body) != "the end" || err != nil {
		t.Errorf("%q, %v", body, err)
	}
}

// A client that sends the head of a request and not its body is not protected by the handler that waits for it.
func TestUnfinishedBodiesKeepNoOtherOut(t *testing.T) {
	a, err := ListenAdmin("127.0.0.1:0", Options{Connections: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	begun := make(chan struct{}, 100)
	a.Ready(Page{Path: "/login", Methods: []string{http.MethodPost}, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var b [1]byte
		_, _ = io.ReadFull(r.Body, b[:])
		begun <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
	})})
	for range 8 {
		fmt.Fprint(dial(t, a), "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000\r\n\r\nx")
		<-begun
	}
	for range 20 {
		if status, body, _ := request(t, a, "GET", "/healthz"); status != http.StatusOK || body != "ok\n" {
			t.Fatalf("%d %q", status, body)
		}
	}
}

func dial(t *testing.T, a *Admin) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}
