package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"0 jobs are left: bob.png is lost",
		"mem:there is no connection that could die",
		"ebb3:the connection is gone; waiting on a new one",
		"redis:the connection is gone; waiting on a new one",
		"dee.png resized",
		"the pending list has fay.png",
		"fay.png resized",
		"worker 1 has gil, delivery 1: the worker crashed",
		"worker 2 has gil, delivery",
		"mem:worker 2 has gil, delivery 2: resized to 320",
		"worker 1 comes back and acknowledges: true that the lease is lost")
}
