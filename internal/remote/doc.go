// Package remote holds the code that the drivers of servers share: goredis, over go-redis,
// and contrib/rueidis. A driver contains the calls of its client library; this package
// decides about retries and errors.
//
//	a call ──> Gate ──> Known ──> Policy.Persist ──┬──> the driver sends it once ──> Answer
//	            │                                  └──< another try, if it has not run
//	            └── Close waits for the last
//
//	gate.go      counts calls, so that Close can wait for them
//	answer.go    the result of a command, and whether to send it again
//	replicas.go  writes that wait for replicas
//	probe.go     the capability probe
//	fanout.go    commands that concern all masters of a cluster
//	feed.go      subscriptions, which are opened again when a connection is lost
//
// Decisions that need only a command's words are in internal/routing. Start reading at
// Policy.Persist.
package remote
