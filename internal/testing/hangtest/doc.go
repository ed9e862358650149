// Package hangtest tests every object of the toolkit with a backend that hangs. The test
// stops the server with its connections open, or drops the bytes of the network; see
// backends.Hang. For each object a row gives the calls that read, that write and that
// wait. The package checks the same promises for all of them:
//
//   - a call with a deadline returns when that has passed, with the context's error in
//     the chain, and the error names the object
//   - a call without one returns when the read timeout has passed, ebb.ErrUnavailable in
//     the chain; a call that waits for others continues to wait, or returns the same error
//   - afterwards the same object works, and a waiting call gets what it waited for
//   - the holder of a lease that expired meanwhile gets an error, and its job
//     is delivered again
//   - no goroutine is left
//
// The tests of this package use the driver goredis; those of contrib/rueidis use its
// driver.
//
// Start reading at Objects.
package hangtest
