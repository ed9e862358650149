package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"mem:at once  ann bob eve",
		"later    bob",
		"HLEN 3; the sweeper removed 2",
		"later    ann bob", // written again
		"mem:4. expmap: map \"codes:toolkit\" (HSETEX of ebb)",
		"redis:this server cannot",
		"5. The deadline beside the value",
		":1111, and its first part is the time ",
		"later    bob",
		"a plain HGET showed the code 1111 that was over; the sweep removed 2",
		"mem:strings, each with a TTL ",
		"   a hash and its companion sorted set",
		"mem:   a hash, fields with deadlines ",
		"redis:Lua scripts and a sorted set of deadlines",
	)
}
