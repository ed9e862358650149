package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"while the first program still works, the second one replies: 409, A request is outstanding for this Idempotency-Key",
		"then: 201, payment 1 of 7 EUR (replayed)",
		"the same key for 8 EUR of ann: 422, Idempotency-Key is already used",
		"the same key for 7 EUR of bob: 201, payment 2 of 7 EUR",
		"cards were charged 2 times",
		"mem:GETFRESH of ebb",
		"redis:a Lua script on redis",
	)
}
