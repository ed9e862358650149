package engine

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sort"
	"strconv"
)

// unit is what one transaction did.
type unit struct {
	seq  uint64
	data []byte
}

// Effect is one canonical command: a plain write with absolute times. Running
// the effects of an engine, in order, on an empty one gives the same keyspace.
type Effect struct {
	Seq  uint64 // the transaction's number; effects with the same number belong together
	DB   int    // the database that the command runs in
	Args [][]byte
}

// emit adds a command to the transaction's effects. Nothing is encoded when
// nobody wants effects.
//
// Encoding: database (2 bytes), number of arguments (4), and for each argument
// its length (4) and its bytes.
func (tx *Tx) emit(name string, args ...[]byte) {
	if tx.db.logging && !tx.replay {
		tx.encode(name, args)
	}
}

// Effect logs what a transaction changed beside the keys: the command that makes
// the same change again.
func (tx *Tx) Effect(name string, args ...[]byte) {
	tx.emit(name, args...)
	tx.dirty++
}

// emitItems is emit for a key and what follows it in a slice.
func (tx *Tx) emitItems(name string, key []byte, items [][]byte) {
	if tx.db.logging && !tx.replay {
		tx.encode(name, append([][]byte{key}, items...))
	}
}

func (tx *Tx) encode(name string, args [][]byte) {
	b := binary.LittleEndian.AppendUint16(tx.fx, uint16(tx.dbi))
	b = binary.LittleEndian.AppendUint32(b, uint32(1+len(args)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	b = append(b, name...)
	for _, a := range args {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(a)))
		b = append(b, a...)
	}
	tx.fx = b
	tx.nfx++
}

// itoa formats n into one of the transaction's four scratch buffers.
func (tx *Tx) itoa(i int, n int64) []byte {
	return strconv.AppendInt(tx.num[i][:0], n, 10)
}

// settle numbers the effects and hands them to the log. All shards of the
// transaction are locked, so two transactions that share one are numbered in
// the order in which they ran.
func (tx *Tx) settle() {
	sh := tx.db.shards[bits.TrailingZeros64(tx.held)]
	sh.out = append(sh.out, unit{tx.db.seq.Add(1), append([]byte(nil), tx.fx...)})
	tx.fx, tx.nfx = tx.fx[:0], 0
}

// Drain returns the effects since the last Drain in the order of execution. It
// locks all shards for a moment.
func (db *DB) Drain() []Effect {
	for _, sh := range db.shards {
		sh.lock.Lock()
	}
	var units []unit
	for _, sh := range db.shards {
		units = append(units, sh.out...)
		sh.out = nil
	}
	for _, sh := range db.shards {
		sh.lock.Unlock()
	}
	sort.Slice(units, func(i, j int) bool { return units[i].seq < units[j].seq })
	var out []Effect
	for _, u := range units {
		for b := u.data; len(b) > 0; {
			e := Effect{Seq: u.seq, DB: int(binary.LittleEndian.Uint16(b))}
			n := binary.LittleEndian.Uint32(b[2:])
			b = b[6:]
			for range n {
				l := binary.LittleEndian.Uint32(b)
				e.Args = append(e.Args, b[4:4+l:4+l])
				b = b[4+l:]
			}
			out = append(out, e)
		}
	}
	return out
}

// effectItems is how many items one logged command names where many are stored
// or removed: enough that its name and key cost little, few enough that it is
// short of any limit on requests.
const effectItems = 512

// itemLog logs items of a key under one command, effectItems at a time. Once
// all are added it is to be flushed.
type itemLog struct {
	tx      *Tx
	command string
	key     []byte
	items   [][]byte
}

// add adds a copy of an item.
func (l *itemLog) add(item []byte) {
	if !l.tx.db.logging || l.tx.replay {
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
