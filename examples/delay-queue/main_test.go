package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"a second welcome-eve is refused: true",
		"bob has paid: 1 reminder cancelled",
		"worker 0 has welcome-eve and is cut off",
		"dead letter bounce",
		// What follows needs a machine that does not stop for a lease.
		"mem:sent welcome-eve, delivery 2",
		"mem:sent retry-dee, delivery 3",
		"mem:first deliveries in the order of their time: [retry-dee bounce survey-cy reminder-ann]",
		"mem:deliveries: dee 3, bounce 1, ann 1",
		"mem:the latest began less than 1ms after its time",
		"mem:dead letter bounce after delivery 1: no mailbox")
}
