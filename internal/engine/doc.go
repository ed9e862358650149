// Package engine holds the data: keys, values and their deadlines, in memory.
//
//	DB ─┬─ shard 0 ─┬─ space of database 0 ─┬─ table   key -> record
//	    │           │                       ├─ arena   records
//	    │           ├─ space of database 1  └─ wheel   deadlines
//	    │           └─ lock, statistics, watchers, effects
//	    ├─ shard 1 ...
//	    └─ Clock
//
// Every read and write is part of a transaction. Begin locks the shards of its
// keys in ascending order, and only then takes one instant: no client sees an
// expired key again. The methods of Tx do the work and record effects: canonical
// commands with absolute times, which produce the same keyspace when a replay runs
// them. Commit settles the effects and unlocks the shards.
//
// An expired item (now > deadline) is invisible at once. A Reclaimer frees it
// within a few milliseconds, in slices.
//
// Lock order: shards by number, then the locks that a Hooks implementation takes.
//
// Start reading at DB.Begin in db.go, then Tx.Set in t_string.go and ttl.go. Each container type has files of
// its own: t_hash.go changes a hash and t_hash_view.go reads one. container.go is common to all, and
// ttl_items.go handles the deadlines of items. Files are grouped by prefix:
//
//	t_*.go        the types of values
//	container.go  what hashes, lists, sets, sorted sets and streams share
//	holders.go    what locks and semaphores share
//	key*.go       commands on keys of any type, the records, WATCH, SORT
//	ttl*.go       expiry: deadlines, reclaimers, rules, forecasts
//	dump*.go      values as bytes, for DUMP and RESTORE
//	snap*.go      snapshots, and loading them
//	effect*.go    effects, replicas, undoing a transaction
//	wait*.go      clients that wait for a key
//	db*.go        the database: options, figures, checks for tests
//	evict.go      eviction
package engine
