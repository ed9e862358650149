// Package remote is what the drivers of servers share: goredis, over go-redis, and
// contrib/rueidis. A driver holds what talks to its client library; what decides about a
// call stands here.
//
//	a call ──> Gate ──> Known ──> Policy.Persist ──┬──> the driver sends it once ──> Answer
//	            │                                  └──< another try, if it has not run
//	            └── Close waits for the last
//
//	gate.go      calls that Close waits for
//	answer.go    what came of a command, and whether it may be sent again
//	replicas.go  writes that wait for replicas
//	probe.go     what the server can do
//	fanout.go    commands that concern all masters of a cluster
//
// What follows from a command's words alone is in internal/routing. Start reading at
// Policy.Persist.
package remote
