package transport

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPiecesAreSentWhereTheyBelongAndGivenBack(t *testing.T) {
	everywhere(t, func(h *hub, o *Options) { o.HighWater = 1 << 20 }, func(t *testing.T, p *place) {
		c, r, s := p.client()
		other, or, _ := p.client()
		const n, size = 40, 300_000
		var wg sync.WaitGroup
		wg.Go(func() { // some of it while the socket has room, most while it is full
			send(t, c, "LEND 5\r\nECHO a\r\nLEND 0\r\nECHO b\r\n")
			for range n {
				send(t, c, fmt.Sprintf("ECHO c\r\nLEND %d\r\nECHO d\r\nBIG 70000\r\nLEND 3\r\n", size))
			}
			send(t, c, "ECHO e\r\n")
		})
		defer wg.Wait()
		send(t, other, "ECHO others\r\n")
		expect(t, or, "others")
		expect(t, r, "lllll", "a", "", "b")
		for range n {
			expect(t, r, "c", strings.Repeat("l", size), "d", strings.Repeat("b", 70000), "lll")
		}
		expect(t, r, "e")
		send(t, c, "ECHO f\r\n")
		expect(t, r, "f")
		// The client may have read what the writer has yet to count as written.
		for end := time.Now().Add(patience); ; runtime.Gosched() {
			n := s.uses.Load()
			_, out := s.conn.Buffered()
			if n == 0 && out == 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%d pieces are still in use, and %d bytes of output remain", n, out)
			}
		}
	})
}

func TestPiecesOfAConnectionThatEndsAreGivenBack(t *testing.T) {
	everywhere(t, nil, func(t *testing.T, p *place) {
		c, r, s := p.client()
		send(t, c, "ECHO a\r\nLEND 20000000\r\nLEND 20000000\r\n")
		expect(t, r, "a")
		s.conn.Kill(io.ErrUnexpectedEOF)
		receive(t, p.h.closed)
		if n := s.uses.Load(); n != 0 {
			t.Errorf("%d pieces are still in use", n)
		}
	})
}
