package realserver

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestASocketsPathIsShortInATestWhoseNameIsAsLongAsThisOneIsWhichIsMoreThanASystemAllows(t *testing.T) {
	var path string
	t.Run("listen", func(t *testing.T) {
		path = Socket(t)
		if limit := len(os.TempDir()) + len("/s1234567890/s"); len(path) > limit {
			t.Errorf("%s has %d bytes, want %d or fewer", path, len(path), limit)
		}
		ln, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_ = ln.Close()
	})
	if _, err := os.Stat(filepath.Dir(path)); !os.IsNotExist(err) {
		t.Errorf("the directory of %s is left: %v", path, err)
	}
}
