package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"worker-1 takes order 2 and dies", "the group has 1 pending and a lag of 8",
		"worker-2 and worker-3 ship [2 3 4 5 6 8 9 10]", "order 2 was claimed: delivery 2",
		"dead letter: order 7, elephant, after 3 deliveries", "the group has 0 pending and a lag of 0",
		"an auditor reads all 10 again; the numbers add up to 55", "trimmed to 3: 7 are gone")
}
