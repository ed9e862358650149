//go:build unix

package realserver

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Another test process does not get a port that this one has, although no server listens on it.
func TestAPortBelongsToOneTestProcess(t *testing.T) {
	if text := os.Getenv("EBB_TEST_RESERVES"); text != "" { // the other process
		port, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("reserved: %v", reserve(port))
		return
	}
	if ports() == nil {
		Require(t, "the user has no cache folder for locks of ports")
	}
	other := func(port int) string {
		t.Helper()
		cmd := exec.Command(os.Args[0], "-test.run", "^TestAPortBelongsToOneTestProcess$", "-test.v")
		cmd.Env = append(os.Environ(), "EBB_TEST_RESERVES="+strconv.Itoa(port))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		_, said, _ := bytes.Cut(out, []byte("reserved: "))
		return strings.Fields(string(said))[0]
	}
	port := FreePort(t)
	if got := other(port); got != "false" {
		t.Errorf("another process could reserve the port %d of this one: %s", port, got)
	}
	if got := other(1); got != "true" { // which freePort never returns
		t.Errorf("a port that no process has could not be reserved: %s", got)
	}
}
