package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run, "9585 bits, 7 for each value",
		"2000 values: 51.7 % of the bits are set, 51.7 % to the power of 7 is  0.98 %; found by mistake:  1.20 %")
}
