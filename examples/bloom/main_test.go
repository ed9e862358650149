package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run, "new: [true true false]", "1950 added: 0 missed", "2000 added: 0 missed", "a fixed filter of 100 is full with 100",
		"mem:ann is new: true, and found: true; after 1.1 s: false")
}
