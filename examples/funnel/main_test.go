package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"mem:CL.THROTTLE reply:ann 15 30 60 1\n  allowed  capacity 16, 15 left, again in -1 s, empty in  2 s\n",
		"mem:limited  capacity 16,  0 left, again in  2 s, empty in 32 s\n",
		"mem:asked with a max_burst of 15, and 16 of 20 were allowed at once",
		"the same as an object\n  allowed  capacity 16, 15 left, again in  0 s, empty in  2 s\n",
		"mem:their turns are in 0s, 100ms, 200ms, 300ms, 400ms\n",
		"a sixth waits for its own: true\n")
}
