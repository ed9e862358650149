package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		`PUBLISH news "is a reader there?" reaches 0`, `the subscriber gets "good morning"`, "after UNSUBSCRIBE it reaches no client",
		"screen of prices.rome: rome opera 4500", "screen of prices.*:    oslo opera 6900, rome opera 4500",
		"100 messages, the last of them 100, and then: topic \"ticker\": the subscriber is too slow",
		`"cart 17 is full"`)
}
