//go:build linux

package main

import (
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

// A user's service manager has a socket in the abstract namespace.
func TestTheSocketOfTheServiceManagerCanBeAbstract(t *testing.T) {
	name := fmt.Sprintf("@ebb-test-%d", os.Getpid())
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	if err := notify("READY=1"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	if n, err := conn.Read(b); err != nil || string(b[:n]) != "READY=1" {
		t.Errorf("the socket gets %q, %v", b[:n], err)
	}
	t.Setenv("NOTIFY_SOCKET", name+"-of-none")
	if err := notify("READY=1"); err == nil {
		t.Error("a socket that does not exist has got a state")
	}
}

func TestTheWatchdogWatchesTheProcessThatItNames(t *testing.T) {
	for _, c := range []struct {
		every, pid string
		want       time.Duration
		fails      bool
	}{
		{"", "", 0, false},
		{"50000", "", 50 * time.Millisecond, false},
		{"50000", fmt.Sprint(os.Getpid()), 50 * time.Millisecond, false},
		{"50000", "1", 0, false},
		{"-1", "", 0, true},
		{"often", "", 0, true},
	} {
		t.Setenv("WATCHDOG_USEC", c.every)
		t.Setenv("WATCHDOG_PID", c.pid)
		if got, err := watchdog(); got != c.want || (err != nil) != c.fails {
			t.Errorf("WATCHDOG_USEC=%q WATCHDOG_PID=%q: %v, %v", c.every, c.pid, got, err)
		}
	}
}
