package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"ann: SET report:lock <tag> NX EX 30 -> OK",
		"bob: SET report:lock <tag> NX EX 30 -> nil, taken",
		"bob: delete it if the tag is mine -> 0",
		"ann: delete it if the tag is mine -> 1",
		"ann has written for a lease and a half, and still holds it; for bob: lock \"report\": acquire: another owner holds it",
		"fail:      taken: true",
		"wait:      taken after 100ms: true",
		"hand over: in the queue: true",
		"the worker of the queue writes page 4",
		"a greater token: true",
		"bob writes: accepted",
		"ann wakes up and writes: refused",
		"the lease was lost: true")
}
