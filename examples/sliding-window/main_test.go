package main

import (
	"testing"

	"github.com/ebbdb/ebb/examples/internal/exampletest"
)

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"mem:a sorted set by hand   ###.......|###.......\n",
		"mem:limit, sliding log     ###.......|###.......\n",
		"mem:limit, sliding window  ###.......|....#..#..\n",
		"mem:limit, fixed window    ###.......|###.......\n",
		"a sorted set by hand   ###",
		"limit, sliding log     ###",
		"5 codes are wanted, 3 may be sent now",
		"waited for it: true\n")
}
