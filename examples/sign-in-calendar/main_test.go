package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run, "mem:the first time today? true; and once more: false",
		"ann signed in on 10 days of November; 5 in a row up to 2026-11-22",
		"and 5 up to 2026-11-02, which began in October", "day 2: 1500 active, in 375 bytes",
		"on every day: 500; the first after user 0 is user 6", "on any day: 3000", "stays at 15")
}
