// Package routing is what a client knows of commands before it sends them, and of replies
// once they have come. The two clients of servers share it: goredis, over go-redis, and
// contrib/rueidis. It imports resp alone.
//
//	command ──> Find ──> Command ──> AppendKeys, FirstKey, Route   which node
//	                        ├──────> FanOut                        all masters
//	                        ├──────> OwnWait                       the read timeout
//	                        └──────> Has(Write, Stateful, Pipelined)
//	reply ────> Untouched, Redirect ──> Retry                      may it be sent again
//
//	table.go    the properties of a command, and Find
//	data.go     the table, which internal/gen writes from the commands' Specs
//	keys.go     the places of keys, and hash slots
//	fanout.go   commands that concern all masters of a cluster
//	liveness.go how long a call waits for a server, and the liveness check
//	reply.go    replies that say that nothing was run
//	retry.go    how often, and with which pauses, a command is sent again
//	probe.go    the capability probe
//	feed.go     how subscriptions are kept
//
// The table is data, and not the commands themselves, so that a program that imports a
// client does not link the server. A command that the table does not have has one key, its
// first argument, and may write. Start reading at Find.
package routing
