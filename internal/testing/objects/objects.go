// Package objects holds a table of all objects of the toolkit, and checks the rules that
// each of them follows on every backend: docs/design/toolkit.md. A constructor of the
// toolkit that is not in the table fails TestEveryObjectIsInTheTable.
//
// Start reading at Object, then at rules.go; table.go has the rows.
package objects

import (
	"context"
	"errors"

	"github.com/ebbdb/ebb"
)

// Object is a row of the table.
type Object struct {
	// Constructor names its constructor: "queue.New", "stream.Stream.Group".
	Constructor string
	// New makes one. It does not touch the network.
	New func(c *ebb.Conn, name string) (*Instance, error)
}

// Instance is an object of some name.
type Instance struct {
	// Use makes the object write all kinds of keys that it ever stores at the backend. A
	// test may call it again after Delete. The end of the context releases its leases.
	Use func(ctx context.Context) error
	// Delete removes its keys.
	Delete func(ctx context.Context) error
	// KeepsNothing says that the object has no keys, and no Delete.
	KeepsNothing bool
	// Loops are the calls that run until their context ends.
	Loops []Loop
	// Hold acquires something for which others wait, within some seconds, and returns a
	// function that releases it.
	Hold func(ctx context.Context) (release func(ctx context.Context) error, err error)
	// Counts says that a release changes a count, so a release that may have run is not sent
	// again.
	Counts bool
	// Within calls a function of the caller, and holds something while that runs.
	Within func(ctx context.Context, inside func()) error
	// Stays says that a function that panics does not release what it holds: the lease must
	// expire.
	Stays bool
}

// Kind is the way in which a loop ends.
type Kind int

const (
	// Function returns an error that has the context's in its chain.
	Function Kind = iota
	// Endless is an iterator without an end of its own: it yields no error of its context.
	Endless
	// Finite is an iterator with an end of its own: when its context ends before, it yields
	// the context's error.
	Finite
)

// Loop runs until its context ends.
type Loop struct {
	Name string
	Kind Kind
	// Run returns the error of a function, or those that an iterator yielded.
	Run func(ctx context.Context) error
}

// errs joins the errors that an iterator yields.
func errs[T any](seq func(yield func(T, error) bool)) error {
	var all []error
	for _, err := range seq {
		if err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

func second[T any](_ T, err error) error { return err }
