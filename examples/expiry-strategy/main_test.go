package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		// The draws are the same everywhere; what is left out is the time on this machine.
		"lazy: removed when it is read           24.954s 1m19.456s 1m29.284s       37677       27919 ",
		"sampling: 20 keys, again over 25 %      23.732s 1m17.526s 1m29.284s       33048       20775 ",
		"timed: a heap of deadlines                   0s       0s       0s           0           0 ",
		"the wheel of ebb                             0s       0s       0s           0           0 ",
		", 20000 at ",
		"mem:events: 22000 of 22000, late by p50 1ms, p99 1ms, at most 1",
		"mem:expired_keys                     22000",
		"mem:expired_subkeys                  500",
		"mem:removed by an access: 0",
		"mem:key     count 22000",
		"expired_time_cap_reached_count",
		"avg_ttl=",
		"removed by an access: ")
}
