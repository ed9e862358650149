package engine

import (
	"bytes"
	"math/bits"
	"strconv"

	"github.com/ebbdb/ebb/internal/oplog"
)

// Effect is one canonical command: a plain write with absolute times. An empty engine that runs the
// effects of another engine in order gets the same keyspace.
type Effect struct {
	Seq  uint64 // the transaction's number; effects with the same number belong together
	DB   int    // the database that the command runs in
	Args [][]byte
}

// effects holds the effects of a transaction so far, in the format of the stream.
type effects struct {
	b           []byte
	n           int // the number of commands
	first, last int // the databases of the first and the last command

	messages []byte // commands for replicas only, which follow the effects

	verbatim   []byte        // if not nil, the stream gets these bytes instead of the effects
	verbatimDB int           // the database that is selected after it
	idle       []oplog.Range // the parts of verbatim that files leave out
}

// emit adds a command to the transaction's effects. It encodes nothing while the log has
// no user.
func (tx *Tx) emit(name string, args ...[]byte) {
	if tx.db.logging.Load() && !tx.replay {
		tx.fx.begin(tx.dbi, name, len(args))
		for _, a := range args {
			tx.fx.b = appendBulk(tx.fx.b, a)
		}
	}
}

// Effect logs a change that a transaction made beside the keys: the command makes the
// same change again.
func (tx *Tx) Effect(name string, args ...[]byte) {
	tx.emit(name, args...)
	tx.dirty++
}

// emitItems is emit for a key and the items that follow it in a slice.
func (tx *Tx) emitItems(name string, key []byte, items [][]byte) {
	if tx.db.logging.Load() && !tx.replay {
		tx.fx.begin(tx.dbi, name, 1+len(items))
		tx.fx.b = appendBulk(tx.fx.b, key)
		for _, a := range items {
			tx.fx.b = appendBulk(tx.fx.b, a)
		}
	}
}

// begin begins a command of n arguments in a database.
func (fx *effects) begin(dbi int, name string, n int) {
	switch {
	case fx.n == 0:
		fx.first = dbi
	case fx.last != dbi:
		fx.b = oplog.AppendSelect(fx.b, dbi)
	}
	fx.last = dbi
	fx.n++
	fx.b = appendCount(fx.b, '*', 1+n)
	fx.b = appendCount(fx.b, '$', len(name))
	fx.b = append(fx.b, name...)
	fx.b = append(fx.b, '\r', '\n')
}

// appendBulk appends an argument in RESP.
func appendBulk(b, arg []byte) []byte {
	b = appendCount(b, '$', len(arg))
	b = append(b, arg...)
	return append(b, '\r', '\n')
}

// appendCount appends a line with a number.
func appendCount(b []byte, kind byte, n int) []byte {
	if n < 10 {
		return append(b, kind, '0'+byte(n), '\r', '\n')
	}
	b = strconv.AppendInt(append(b, kind), int64(n), 10)
	return append(b, '\r', '\n')
}

// keepEffects is the largest buffer for effects, in bytes, that a transaction keeps for the next
// one.
const keepEffects = 64 << 10

// clear removes the effects.
func (fx *effects) clear() {
	b := fx.b[:0]
	if cap(b) > keepEffects {
		b = nil
	}
	*fx = effects{b: b, messages: fx.messages}
}

// itoa formats n into one of the transaction's four scratch buffers.
func (tx *Tx) itoa(i int, n int64) []byte {
	return strconv.AppendInt(tx.num[i][:0], n, 10)
}

// Log returns the stream of effects.
func (db *DB) Log() *oplog.Log { return db.log }

func (db *DB) lockAll() {
	for _, sh := range db.shards {
		sh.lock.Lock()
	}
}

// Barrier waits until the stream has the effects of all transactions that began before it. It locks
// the shards one after the other.
func (db *DB) Barrier() {
	for _, sh := range db.shards {
		sh.lock.Lock()
		sh.lock.Unlock() //nolint:staticcheck // the transaction that held the lock has ended
	}
}

// Verbatim makes a replay's transaction append raw to the stream in place of its own effects. raw is a part
// of the master's stream, after which database db is selected. Commit copies it. Files leave out the ranges
// in idle.
func (tx *Tx) Verbatim(raw []byte, db int, idle ...oplog.Range) {
	tx.fx.verbatim, tx.fx.verbatimDB, tx.fx.idle = raw, db, idle
}

// Message adds a command, which only replicas receive, after the transaction's effects. It copies
// the command.
func (tx *Tx) Message(command []byte) { tx.fx.messages = append(tx.fx.messages, command...) }

// tellReplicas appends the messages to the stream. The shards are locked, and the stream already has the
// effects.
func (tx *Tx) tellReplicas() {
	tx.db.log.AppendMessage(tx.fx.messages)
	if tx.fx.messages = tx.fx.messages[:0]; cap(tx.fx.messages) > keepEffects {
		tx.fx.messages = nil
	}
}

// AppendVerbatim appends a part of the master's stream that belongs to no transaction.
func (db *DB) AppendVerbatim(raw []byte, dbi int) { db.log.AppendVerbatim(raw, dbi) }

// ResetLog starts the stream again at an offset: it resets the offsets that the shards have recorded for the
// previous stream. The transaction holds all shards.
func (tx *Tx) ResetLog(offset int64) {
	tx.db.log.Reset(offset)
	for _, sh := range tx.db.shards {
		sh.mark = offset
	}
	tx.mark = 0
}

// TakeMark returns the offset in the stream after all effects that the transactions of tx since the last
// TakeMark wrote or could have read.
func (tx *Tx) TakeMark() int64 {
	m := tx.mark
	tx.mark = 0
	return m
}

// Did describes the work of transactions.
type Did uint8

const (
	// Wrote means that a transaction that was allowed to write has added to the stream. The removal of expired
	// items by a transaction that only reads does not count.
	Wrote Did = 1 << iota
	// Looked means that a transaction has added nothing to the stream.
	Looked
)

// TakeDid returns the work of the transactions of tx since the last TakeDid.
func (tx *Tx) TakeDid() Did {
	d := tx.did
	tx.did = 0
	return d
}

// settle appends the effects to the stream. All shards of the transaction are locked, so
// the effects of two transactions that share a shard have the order in which the
// transactions ran.
func (tx *Tx) settle() {
	fx, end, kept := &tx.fx, int64(0), false
	if fx.verbatim != nil {
		end = tx.db.log.AppendVerbatim(fx.verbatim, fx.verbatimDB, fx.idle...)
	} else {
		end, kept = tx.db.log.Append(oplog.Unit{DB: fx.first, Last: fx.last, Commands: fx.n, Bytes: fx.b})
	}
	if kept {
		fx.b = nil
	}
	fx.clear()
	for m := tx.held; m != 0; m &= m - 1 {
		tx.db.shards[bits.TrailingZeros64(m)].mark = end
	}
}

// Drain returns the effects since the last Drain in the order of execution, for
// engines opened with RecordEffects. It locks all shards for a moment.
func (db *DB) Drain() []Effect {
	db.lockAll()
	all := db.drainBytes()
	db.unlock(db.all())
	return db.cutEffects(all)
}

// Drain does the work of DB.Drain in a transaction that holds all shards: these effects and the earlier ones
// produce the data that the transaction reads. The transaction's own effects are not among them.
func (tx *Tx) Drain() []Effect { return tx.db.cutEffects(tx.db.drainBytes()) }

// drainBytes returns the stream since the last call. All shards are locked.
func (db *DB) drainBytes() (all []byte) {
	for b := db.drain.Next(); b != nil; b = db.drain.Next() {
		all = append(all, b...)
	}
	return all
}

// cutEffects parses a part of the stream into effects. The effects between a MULTI and its EXEC share one
// number; the MULTI and the EXEC are not effects themselves.
func (db *DB) cutEffects(all []byte) []Effect {
	var out []Effect
	multi := false
	for len(all) > 0 {
		var args [][]byte
		args, all = cutCommand(all)
		switch string(args[0]) {
		case "SELECT":
			db.drainDB, _ = strconv.Atoi(string(args[1]))
			continue
		case "MULTI":
			multi = true
			db.drainSeq++
			continue
		case "EXEC":
			multi = false
			continue
		}
		if !multi {
			db.drainSeq++
		}
		out = append(out, Effect{Seq: db.drainSeq, DB: db.drainDB, Args: args})
	}
	return out
}

// cutCommand cuts the first command off bytes that the engine has encoded.
func cutCommand(b []byte) (args [][]byte, rest []byte) {
	count := func() int {
		i := bytes.IndexByte(b, '\r')
		n, _ := strconv.Atoi(string(b[1:i]))
		b = b[i+2:]
		return n
	}
	for n := count(); n > 0; n-- {
		l := count()
		args = append(args, b[:l:l])
		b = b[l+2:]
	}
	return args, b
}

// effectItems is the greatest number of items that one logged command names. It is so large that
// the command's name and key cost little, and so small that the command stays below any limit on
// requests.
const effectItems = 512

// itemLog logs items of a key under one command, effectItems at a time. The caller
// flushes it after the last add.
type itemLog struct {
	tx      *Tx
	command string
	key     []byte
	items   [][]byte
}

// add adds a copy of an item.
func (l *itemLog) add(item []byte) {
	if !l.tx.db.logging.Load() || l.tx.replay {
		return
	}
	if l.items = append(l.items, bytes.Clone(item)); len(l.items) == effectItems {
		l.flush()
	}
}

func (l *itemLog) flush() {
	if len(l.items) > 0 {
		l.tx.emitItems(l.command, l.key, l.items)
		l.items = l.items[:0]
	}
}

// NeedLog adds a user of the stream of effects, delta 1, or removes one, -1. Files and
// replicas are users. The engine encodes effects while the stream has a user, unless
// MuteLog forbids it. NeedLog locks all shards for a moment.
func (db *DB) NeedLog(delta int) {
	db.lockAll()
	db.needLog(delta)
	db.unlock(db.all())
}

// NeedLog is DB.NeedLog for a transaction that holds all shards.
func (tx *Tx) NeedLog(delta int) { tx.db.needLog(delta) }

// MuteLog stops or resumes the encoding of effects, even while the stream has users: a replica's stream is
// its master's, and does not contain clients' writes to the replica. The transaction holds all shards.
func (tx *Tx) MuteLog(on bool) {
	tx.db.logMuted = on
	tx.db.switchLog()
}

func (db *DB) needLog(delta int) {
	db.logUsers += delta
	db.switchLog()
}

func (db *DB) switchLog() { db.logging.Store(db.logUsers > 0 && !db.logMuted) }

// LogNeeded reports whether the stream has a user. All shards are locked.
func (db *DB) LogNeeded() bool { return db.logUsers > 0 }
