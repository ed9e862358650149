package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if n, err := io.WriteString(c, s); n != len(s) || err != nil {
		t.Fatalf("Write(%q) = %d, %v", s, n, err)
	}
}

func read(t *testing.T, c net.Conn, want string) {
	t.Helper()
	buf := make([]byte, len(want))
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != want {
		t.Fatalf("read %q, %v, want %q", buf, err, want)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func TestBytesGoBothWaysWithoutAReaderWaiting(t *testing.T) {
	a, b := Pipe()
	write(t, a, "hello")
	write(t, b, "world")
	write(t, a, "!")
	read(t, b, "hello!")
	read(t, a, "world")
	if a.LocalAddr() != b.RemoteAddr() || a.LocalAddr().Network() != "mem" {
		t.Errorf("addresses %v and %v", a.LocalAddr(), b.RemoteAddr())
	}
}

func TestAWriterWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := PipeSize(4)
		done := false
		go func() {
			write(t, a, "0123456789")
			done = true
		}()
		synctest.Wait()
		if done {
			t.Fatal("ten bytes went into four")
		}
		read(t, b, "012345")
		synctest.Wait()
		if !done {
			t.Fatal("the writer still waits with room for the rest")
		}
		read(t, b, "6789")
	})
}

func TestManyBytesArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := PipeSize(100)
		data := make([]byte, 100_000)
		for i := range data {
			data[i] = byte(i * i >> 3)
		}
		go func() {
			for rest := data; len(rest) > 0; {
				n := min(len(rest), 1+len(rest)%37)
				a.Write(rest[:n])
				rest = rest[n:]
			}
			a.CloseWrite()
		}()
		got, err := io.ReadAll(b)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%d of %d bytes, %v", len(got), len(data), err)
		}
	})
}

func TestCloseWriteEndsOneDirection(t *testing.T) {
	a, b := Pipe()
	write(t, a, "last words")
	a.CloseWrite()
	_, err := a.Write([]byte("x"))
	wantErr(t, "write after CloseWrite", err, syscall.EPIPE)
	read(t, b, "last words")
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read after the peer's CloseWrite: %v", err)
	}
	write(t, b, "answer")
	read(t, a, "answer")
}

func TestCloseEndsBothDirections(t *testing.T) {
	a, b := Pipe()
	write(t, a, "left behind")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "second Close", a.Close(), net.ErrClosed)
	_, err := a.Read(make([]byte, 1))
	wantErr(t, "read after Close", err, net.ErrClosed)
	_, err = a.Write([]byte("x"))
	wantErr(t, "write after Close", err, net.ErrClosed)
	wantErr(t, "deadline after Close", a.SetDeadline(time.Time{}), net.ErrClosed)
	_, err = b.Write([]byte("x"))
	wantErr(t, "write to a closed peer", err, syscall.EPIPE)
	read(t, b, "left behind")
	if _, err := b.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read from a closed peer: %v", err)
	}
}

func TestCloseWakesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := PipeSize(1)
		var readA, readB, writeA error
		go func() { _, readA = a.Read(make([]byte, 1)) }()
		go func() { _, writeA = a.Write([]byte("more than one byte")) }()
		c, d := Pipe()
		go func() { _, readB = d.Read(make([]byte, 1)) }()
		synctest.Wait()
		a.Close()
		c.Close()
		synctest.Wait()
		wantErr(t, "waiting read", readA, net.ErrClosed)
		wantErr(t, "waiting write", writeA, net.ErrClosed)
		wantErr(t, "the peer's waiting read", readB, io.EOF)
		b.Close()
	})
}

func TestDeadlinesBoundWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := PipeSize(1)
		start := time.Now()
		a.SetDeadline(start.Add(time.Second))
		_, err := a.Read(make([]byte, 1))
		wantErr(t, "read", err, os.ErrDeadlineExceeded)
		var timeout net.Error
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("%v is not a timeout", err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		n, err := a.Write([]byte("ab"))
		wantErr(t, "write after the deadline", err, os.ErrDeadlineExceeded)
		if n != 0 {
			t.Errorf("%d bytes written after the deadline", n)
		}
		a.SetDeadline(time.Time{})
		write(t, a, "a")
		a.SetWriteDeadline(time.Now().Add(time.Minute))
		n, err = a.Write([]byte("b"))
		wantErr(t, "write without room", err, os.ErrDeadlineExceeded)
		if n != 0 || time.Since(start) != time.Second+time.Minute {
			t.Errorf("%d bytes after %v", n, time.Since(start))
		}
		read(t, b, "a")
	})
}

func TestADeadlineMovesForWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := Pipe()
		start := time.Now()
		a.SetReadDeadline(start.Add(time.Second))
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := a.Read(make([]byte, 1))
			wantErr(t, "read", err, os.ErrDeadlineExceeded)
			if waited := time.Since(start); waited != time.Hour {
				t.Errorf("waited %v", waited)
			}
		})
		synctest.Wait()
		a.SetReadDeadline(start.Add(time.Hour))
		wg.Wait()

		a.SetReadDeadline(time.Time{})
		wg.Go(func() {
			_, err := a.Read(make([]byte, 1))
			wantErr(t, "read with a past deadline", err, os.ErrDeadlineExceeded)
		})
		synctest.Wait()
		a.SetReadDeadline(start)
		wg.Wait()
		if waited := time.Since(start); waited != time.Hour {
			t.Errorf("a past deadline took until %v", waited)
		}
	})
}

func TestAnEmptyReadAndWriteDoNotWait(t *testing.T) {
	a, _ := PipeSize(1)
	write(t, a, "x")
	if n, err := a.Write(nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	if n, err := a.Read(nil); n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestManyGoroutinesShareAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each, workers = 1000, 4
		a, b := PipeSize(7)
		var mu sync.Mutex
		var count [workers]int
		var wg, writers sync.WaitGroup
		for i := range workers {
			writers.Go(func() {
				for range each {
					a.Write([]byte{byte(i)})
				}
			})
			wg.Go(func() {
				buf := make([]byte, 3)
				for {
					n, err := b.Read(buf)
					if err != nil {
						return
					}
					mu.Lock()
					for _, c := range buf[:n] {
						count[c]++
					}
					mu.Unlock()
				}
			})
		}
		writers.Wait()
		a.Close()
		wg.Wait()
		if count != [workers]int{each, each, each, each} {
			t.Errorf("%v bytes arrived", count)
		}
	})
}

func TestListenerConnects(t *testing.T) {
	l := Listen("server")
	client, err := l.Dial() // before Accept, as with TCP
	if err != nil {
		t.Fatal(err)
	}
	write(t, client, "ping")
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	read(t, server, "ping")
	if server.LocalAddr().String() != "server" || server.RemoteAddr().String() != "server-client-1" {
		t.Errorf("%v from %v", server.LocalAddr(), server.RemoteAddr())
	}
	l.Close()
	write(t, server, "pong")
	read(t, client, "pong")
}

func TestAClosedListenerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen("server")
		var accept error
		go func() { _, accept = l.Accept() }()
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantErr(t, "waiting Accept", accept, net.ErrClosed)
		wantErr(t, "second Close", l.Close(), net.ErrClosed)
		_, err := l.Accept()
		wantErr(t, "Accept", err, net.ErrClosed)
		_, err = l.Dial()
		wantErr(t, "Dial", err, syscall.ECONNREFUSED)
	})
}

func TestCloseEndsConnectionsThatWereNotAccepted(t *testing.T) {
	l := Listen("server")
	client, err := l.Dial()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("read: %v", err)
	}
}

func TestDialWaitsForTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := Listen("server")
		for range backlog {
			if _, err := l.Dial(); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := l.DialContext(ctx, "tcp", "ignored:1")
		wantErr(t, "dial beyond the backlog", err, context.DeadlineExceeded)
		go l.Accept()
		if _, err := l.DialContext(t.Context(), "", ""); err != nil {
			t.Errorf("dial after an Accept: %v", err)
		}
		l.Close()
	})
}
