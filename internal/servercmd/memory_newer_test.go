package servercmd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

// A client that watches more than maxmemory stops the writes of others on the three servers, but not here.
func TestWatchedKeysLeaveTheWritesOfOthersAlone(t *testing.T) {
	ask := func(target transcript.Target, n int, args ...string) string {
		t.Helper()
		if err := target.Send(n, args); err != nil {
			t.Fatal(err)
		}
		v, ok := target.Next(n)
		if !ok {
			t.Fatalf("%.40q: no reply", args)
		}
		return strings.Join(transcript.Lines(v), "\n")
	}
	write := func(target transcript.Target) string {
		ask(target, 1, "CONFIG", "SET", "maxmemory", "20mb", "maxmemory-policy", "noeviction")
		for i := range 30 {
			ask(target, 1, "WATCH", fmt.Sprint(i, strings.Repeat("x", 1<<20)))
		}
		return ask(target, 2, "SET", "k", "v")
	}
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if got := write(e); got != "OK" {
		t.Errorf("SET: %s", got)
	}
	for _, program := range compat.All.Programs() {
		t.Run(program, func(t *testing.T) {
			s := transcript.NewServer(realserver.Start(t, program))
			defer s.Close()
			covered, err := compat.Covers("memory-beside-data", program)
			if got := write(s); err != nil || covered == (got == "OK") {
				t.Errorf("%s: %s, %v", program, got, err)
			}
		})
	}
}
