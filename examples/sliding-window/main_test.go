package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"mem:a sorted set by hand   ###.......|###.......\n",
		"mem:limit, sliding log     ###.......|###.......\n",
		"mem:limit, sliding window  ###.......|....#..#..\n",
		"mem:limit, fixed window    ###.......|###.......\n",
		"a sorted set by hand   ###",
		"limit, sliding log     ###",
		"mem:ZADD of the ms, ZCARD    20,  5 are due        5, 15 are due\n",
		"mem:limit, sliding log        5,  5 are due       15, 15 are due\n",
		"5 codes are wanted, 3 may be sent now",
		"waited for it: true\n")
}
