// Package tracking implements client-side caching (CLIENT TRACKING): the server tells a
// client when a key that the client has read changes, so that the client may cache the
// value.
//
//	GET k ─▶ Tracker.Read      shards[shard of k][k] gets the client's id
//	SET k ─▶ Tracker.Modified  the entry goes, and each id in it gets "invalidate k"
//	                           BCAST: broadcast collects k, and sends when the
//	                           transaction ends
//
// The lock of a key's shard in the engine guards the key's entry: the goroutine that reads
// or changes the key holds it in any case. So no invalidation is lost between a read and a
// write, and a message is queued before other clients see the change. Keys of all databases
// share the table, as in Redis.
//
// The package knows neither sessions nor commands: a client is a Client, and the Host finds
// one by its id. The subcommands of CLIENT are in the sessions' package, which also finds
// the keys of a command.
//
// Invariants: without a client that tracks there is no table; an entry has each id once; the
// prefixes of one client do not overlap. Start reading at Tracker.Read and Tracker.Modified.
package tracking
