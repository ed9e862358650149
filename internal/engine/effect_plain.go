package engine

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/internal/rdb"
)

// This file selects the form in which plain replicas receive effects.
//
// A redis-server that follows an ebb server gets the same stream, in which internal/oplog
// overwrites commands that redis-server does not know. For redis-server to end with the plain data,
// an effect is one of two things: a command of Redis 7.0 about plain data, or an ebb command that
// does not change plain data. The engine logs a command of Redis about a key of an ebb type, which
// a plain replica does not have, under an ebb name, with OwnPrefix before it. A DEL deletes the key
// that it replaces.

// OwnPrefix precedes the name of a Redis command in the log if the command concerns a value that redis-server
// does not have. A replay removes the prefix.
const OwnPrefix = "EBB."

// own reports whether a kind is ebb's own: redis-server has no such values.
func (k Kind) own() bool { return moduleOf(k).name != "" }

// emitTransfer logs that a command put a value of a kind under key in database to; there reports whether it
// replaced another value.
func (tx *Tx) emitTransfer(k Kind, there bool, to int, key []byte, name string, args ...[]byte) {
	if !k.own() {
		tx.emit(name, args...)
		return
	}
	if there {
		from := tx.dbi
		tx.Select(to)
		tx.emit("DEL", key)
		tx.Select(from)
	}
	tx.emit(OwnPrefix+name, args...)
}

// emitRestore logs a restored value: the payload as the client sent it, in its version. If redis-server 7.0
// cannot read the value, it is logged in a form that redis-server can read.
func (tx *Tx) emitRestore(h *hit, there bool, key, payload []byte, version int, deadline int64, left bool) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	d := strconv.AppendInt(nil, deadline, 10)
	replace, abs := []byte("REPLACE"), []byte("ABSTTL")
	kind := h.r.Kind()
	// The log gets the payload as the client sent it, unless the restore left out a part of it, or
	// all readers can read a dump of it. A stream's payload is kept, because Dump does not know all
	// of a stream; the layouts of newer versions are those of Version.
	whole := rdb.Reseal(payload, rdb.Version)
	if left || version > rdb.PlainVersion && kind != Stream {
		whole = tx.dump(nil, *h)
	}
	switch {
	case kind.own():
		if there {
			tx.emit("DEL", key)
		}
		tx.emit(OwnPrefix+"RESTORE", key, d, whole, replace, abs)
	case kind == Stream && version > rdb.PlainVersion, kind != Stream && kind != String && tx.earliestItem(h) != 0:
		tx.emit("RESTORE", key, d, tx.dumpPlain(h), replace, abs)
		tx.emit(OwnPrefix+"RESTORE", key, d, whole, replace, abs)
		if kind == Hash {
			tx.emitFieldDeadlines(h, key)
		}
	default:
		tx.emit("RESTORE", key, d, whole, replace, abs)
	}
}

// emitFieldDeadlines logs the deadlines of a restored hash, for replicas that accept
// commands about them but not ebb's own RESTORE: Redis 8 and Valkey 9.
func (tx *Tx) emitFieldDeadlines(h *hit, key []byte) {
	at := map[int64][][]byte{}
	Key{tx: tx, sp: h.sp, r: h.r}.Items(func(it Item) {
		if it.Deadline > 0 {
			at[it.Deadline] = append(at[it.Deadline], bytes.Clone(it.Key))
		}
	})
	for _, deadline := range slices.Sorted(maps.Keys(at)) {
		tx.emitTimed("HPEXPIREAT", key, deadline, "FIELDS", at[deadline])
	}
}

// dumpPlain dumps a value for redis-server 7.0. It leaves out the deadlines of items, which redis-server does
// not know.
func (tx *Tx) dumpPlain(h *hit) []byte {
	d := dumpers.Get().(*dumper)
	defer dumpers.Put(d)
	e := &d.enc
	e.Reset(nil)
	e.Plain = true
	tx.encodeValue(e, h)
	e.Plain = false
	b := rdb.Seal(e.Buf, e.Version())
	e.Reset(nil)
	return b
}
