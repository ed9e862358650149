package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"gate tower km",
		"[gate tower]",
		"mem:all have reported:               ann (174 m), bob (836 m), eve (1.5 km)",
		"mem:going home: 2",
		"mem:GEOADD and ZPEXPIRE of ebb",
		"redis:Lua scripts",
	)
}
