// Package hangtest tests every object of the toolkit with a backend that falls silent:
// the test stops the server with its connections open, or the network between drops the
// bytes, see backends.Hang. For each object a row gives the calls that read, that write
// and that wait. The package checks the same promises for all of them:
//
//   - a call with a deadline returns when that has passed, with the context's error in
//     the chain, and says which object it was about
//   - a call without one returns when the read timeout has passed, ebb.ErrUnavailable in
//     the chain; what waits for others goes on waiting, or says the same
//   - afterwards the same object works, and a waiting call gets what it waited for
//   - what was held under a lease that ran out meanwhile is told to be lost, and a job
//     comes again
//   - no goroutine is left over
//
// The tests run over the driver goredis here, and over that of contrib/rueidis there.
//
// Start reading at Objects.
package hangtest
