package main

import (
	"testing"

	"github.com/ebbdb/ebb/examples/internal/exampletest"
	"github.com/ebbdb/ebb/internal/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		", 20000 at ",
		"mem:events: 22000 of 22000, late by p50 1ms, p99 1ms, at most 1",
		"mem:expired_keys                     22000",
		"mem:expired_subkeys                  500",
		"mem:removed because somebody looked: 0",
		"mem:key     count 22000",
		"expired_time_cap_reached_count",
		"avg_ttl=",
		"removed because somebody looked: ")
}
