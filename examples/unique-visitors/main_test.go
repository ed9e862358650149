package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run, "  100000  ", "  10000 visitors:  7502 of 16384 are set", "a standard error of 0.65 %, the worst is off by 1.56 %",
		"are about 110000: 1", "after 1.2 s:", "mem:after 1.2 s:   0 lately, 20")
}
