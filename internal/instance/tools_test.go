package instance

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/testing/leaks"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// patience limits every wait in these tests; no result depends on its length.
var patience = tier.Patience

func send(t *testing.T, c io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatalf("writing %.20q: %v", text, err)
	}
}

// tidy closes a connection at the end of the test, and sets a deadline for its reads and writes.
func tidy(t *testing.T, c net.Conn) net.Conn {
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c
}
