package embed_test

import (
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/drivertest"
)

func TestMain(m *testing.M) { backends.Main(m) }

// What the tests share, by short names.
var (
	testContext = drivertest.Within
	must        = drivertest.Must
)

// open opens a URL for the length of a test.
func open(t testing.TB, url string, o ...ebb.Options) *ebb.Conn {
	t.Helper()
	c, err := ebb.Open(testContext(t), url, o...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
