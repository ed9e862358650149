// Package replication copies the data of a master to its replicas, and keeps it equal.
//
//	transactions ─▶ oplog.Log ─┬─▶ append-only files
//	                           ├─▶ replicas            master*.go, psync.go, replica.go
//	  a master's stream ─▶ link ─▶ the same log, the same bytes at the same offsets
//	                               link*.go, apply.go
//
// A server has one stream of effects with one name (the replication id) and one offset. A
// replica takes over its master's name, bytes and offsets. So its files, and replicas of
// its own, get the same stream as the master's. A promotion gives the stream a new name,
// and keeps the old name with the offset up to which both streams are equal.
//
// A Node replicates one server. It calls the server through Host, and runs a master's commands through an Applier,
// which is a session. The package does not import sessions, and knows only the commands PING, SELECT, MULTI, EXEC,
// REPLCONF and PUBLISH. The commands of replication (PSYNC, WAIT, REPLICAOF, FAILOVER, ROLE ...) are in
// internal/servercmd, and call the Node.
//
// Invariants: the role changes only while every shard is locked. An offset and the data at
// it change in one transaction. A replica never has what its master could lose. A command
// that a replica cannot run as the master did ends the link; the replica never skips it.
//
// Order of locks: shards, failover.mu, Node.mu or master.mu, Replica.wmu. For GateNoReplicas, dispatch reads a word
// of the server; it does not call this package.
//
// Start reading at Node in node.go, then link.run, follower.apply and Node.Psync.
// docs/design/replication.md has the reasons.
package replication
