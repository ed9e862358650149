package main

import (
	"testing"

	"github.com/ebbdb/ebb/examples/internal/exampletest"
	"github.com/ebbdb/ebb/internal/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run, "  100000  ", "are about 110000: 1", "after 1.2 s:", "mem:after 1.2 s:   0 lately, 20")
}
