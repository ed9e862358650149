// Package hangtest has the backend of every object of the toolkit fall silent: the
// server is stopped with its connections open, or the network between swallows what is
// sent, see backends.Hang. For each object a row says what reads, what writes and what
// waits, and for all of them the same is promised:
//
//   - a call with a deadline returns when that has passed, with the context's error in
//     the chain, and says which object it was about
//   - a call without one returns when the read timeout has passed, ebb.ErrUnavailable in
//     the chain; what waits for others goes on waiting, or says the same
//   - afterwards the same object works, and who waited gets what he waited for
//   - what was held under a lease that ran out meanwhile is told to be lost, and a job
//     comes again
//   - no goroutine is left over
//
// It is played over the root's door here, and over that of contrib/rueidis there.
//
// Start reading at Objects.
package hangtest
