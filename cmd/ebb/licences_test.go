package main

import (
	"os"
	"strings"
	"testing"
)

// The packages and the image contain the licences of the modules that groups need, as raft's licence requires.
func TestTheLicencesAreThoseOfTheModules(t *testing.T) {
	modules, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	licences, err := os.ReadFile("../../packaging/third-party.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(modules)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), " //")
		if !strings.Contains(line, "/hashicorp/") && !strings.Contains(line, "/fatih/") && !strings.Contains(line, "/mattn/") {
			continue
		}
		found++
		if !strings.Contains(string(licences), "\n"+line+"\n") {
			t.Errorf("packaging/third-party.txt has no licence of %s", line)
		}
	}
	if found < 5 {
		t.Errorf("go.mod has %d of these modules", found)
	}
}
