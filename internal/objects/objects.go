// Package objects is a table of all objects of the toolkit, and the rules that each of
// them keeps on every backend: docs/design/toolkit.md. A constructor of the toolkit that
// is not in the table fails TestEveryObjectIsInTheTable.
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
	// Constructor is how a program makes it: "queue.New", "lock.RedissonClient.Lock".
	Constructor string
	// New makes one. It does not touch the network.
	New func(c *ebb.Conn, name string) (*Instance, error)
}

// Instance is an object of some name.
type Instance struct {
	// Use leaves behind at the backend what the object ever keeps there. It may be called
	// again after Delete. What it holds ends with the context.
	Use func(ctx context.Context) error
	// Delete removes it.
	Delete func(ctx context.Context) error
	// KeepsNothing is an object without keys, which has no Delete.
	KeepsNothing bool
	// Loops are what runs until its context ends.
	Loops []Loop
	// Hold takes what others wait for, within some seconds, and returns what gives it back.
	Hold func(ctx context.Context) (release func(ctx context.Context) error, err error)
	// Counts says that a release counts: one that may have been heard is not sent again.
	Counts bool
	// Within calls a function of the caller, and holds something while that runs.
	Within func(ctx context.Context, inside func()) error
	// Stays says that a function that panics leaves what it held to the end of its time.
	Stays bool
}

// Kind is how a loop ends.
type Kind int

const (
	// Function returns an error that has the context's in its chain.
	Function Kind = iota
	// Endless is an iterator without an end of its own: it yields no error of its context.
	Endless
	// Finite is an iterator that has one: cut short by its context it yields its error.
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
