package backends

import (
	"os"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// Without Main nothing ends a server that tests share: each has its own.
func TestWithoutMainAServerEndsWithItsTest(t *testing.T) {
	servers.main.Store(false)
	defer servers.main.Store(true)
	var all []*realserver.Process
	var ended []<-chan struct{}
	Each(t, func(t *testing.T, b *Backend) {
		if p := b.site.process; p != nil {
			all, ended = append(all, p), append(ended, p.Ended())
		}
	})
	for i, p := range all {
		select {
		case <-ended[i]:
		default:
			t.Errorf("%s runs on", p.Addr())
		}
		if _, err := os.Stat(p.Dir); err == nil {
			t.Errorf("%s is still there", p.Dir)
		}
	}
}
