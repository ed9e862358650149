package engine

import (
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// This file implements waiting for keys.
//
//	shard ── lines ── (db, key) ─▶ line:  place ─▶ place ─▶ place     first come,
//	                                        │        │        │       first served
//	                                      Ticket   Ticket   Ticket ─▶ places in other lines
//
// A Ticket has a place in the line of each key that it waits for. A change of a key signals the
// key's line. When the transaction ends, it serves the signalled lines while its shards are still
// locked, so no other client can take a waiter's item first. Serving may change other keys, and so
// signal other lines. A waiter that needs keys of shards that the transaction does not hold keeps
// its place; the engine serves it in a separate transaction directly after this one.
//
// A ticket enters a line with the line's shard locked. To leave, it needs only the lines' own lock,
// from any goroutine and at any time. While no client waits, a change costs one atomic read.
//
// A ticket with a Want waits for more than a value of some kind: for a list of some length, or for a due
// member. The engine checks the want itself, with only the line's shard locked. It checks each different want
// of a line once, however many tickets have it. If only time is missing, the line gets a wake-up; see
// wait_due.go.

// Kinds is a set of kinds of values; None is a missing key.
type Kinds uint16

// KindsOf returns the set of some kinds.
func KindsOf(kinds ...Kind) (s Kinds) {
	for _, k := range kinds {
		s |= 1 << k
	}
	return s
}

// AnyKind is the set of all kinds, the missing key included.
const AnyKind Kinds = math.MaxUint16

// maxKinds is the number of kinds that a record's header can distinguish.
const maxKinds = 16

// Waiter is a client that waits for a key.
type Waiter interface {
	// Serve serves the waiter if key has a suitable value now, and reports whether the wait is over. The
	// transaction holds the shards of key and of Ticket.Also, and key's database is selected. Serve must not
	// block.
	Serve(tx *Tx, key []byte) (done bool)
}

// Ticket is a waiter's place in the lines of its keys. The caller fills in the exported fields and
// passes the ticket to Tx.Enqueue.
type Ticket struct {
	Waiter Waiter
	// Kinds are the kinds of values for which the engine calls Serve.
	Kinds Kinds
	// Also are further keys that Serve needs.
	Also [][]byte
	// Want narrows the values for which the engine calls Serve. A ticket whose want is not met does not keep the
	// engine from serving later ones.
	Want Want
	// Passable lets the engine serve later tickets when it could not serve this one. It is for
	// readers, which do not take items from each other.
	Passable bool

	places []place
	one    [1]place
	bytes  int64       // the approximate memory of its places
	gone   atomic.Bool // the ticket leaves, or has left, and no line may serve it
}

// Want is a condition of a ticket beyond a value of one of its kinds. The zero value sets no condition. At most
// one field is set.
type Want struct {
	Elems int // the least number of elements of a list
	Due   Due // a sorted set with a due member
}

// placeBytes estimates the bytes that a place takes up beside the key's name: the place, the line,
// and the line's entry in the shard's table. A line has two copies of the name.
const placeBytes = 320

// leaveAtOnce is the number of lines that a ticket leaves in the goroutine that serves
// it, at some 200 ns each. A Sweeper leaves a longer list.
const leaveAtOnce = 256

// Sweeper is an optional interface of Hooks that run long work in another goroutine: work that may
// run later, and in any order.
type Sweeper interface {
	// Sweep calls run soon, in another goroutine.
	Sweep(run func())
}

// place is a ticket's place in one line. The lines' lock guards it.
type place struct {
	t          *Ticket
	l          *waitLine
	prev, next *place
	in         bool
}

// waitLine holds the tickets that wait for a key, in order of arrival.
type waitLine struct {
	sh   *shard
	key  watchKey
	name []byte // key.key

	// The lines' lock guards the next five fields.
	head, tail *place
	counts     [maxKinds]int32 // the number of places that wait for each kind
	wants      map[Want]int32  // the number of places with each want; nil if no place has had one
	slot       uint32          // the line's wake-up in the shard's lineSet; 0: none

	// The shard's lock guards the next two fields.
	signalled bool // in Tx.ready of the transaction that holds the shard
	pending   bool // a separate transaction is about to serve a ticket of the line
}

// lineSet holds a shard's lines.
type lineSet struct {
	mu    sync.Mutex // guards the fields below, and the lines
	all   map[watchKey]*waitLine
	wakes wakeups
}

// pendingLine is a line to serve in a separate transaction, and the keys that it needs besides the line's.
type pendingLine struct {
	l    *waitLine
	also [][]byte
}

// Enqueue adds a ticket at the end of the lines of keys, in the selected database. The transaction
// holds their shards. O(1) for each key.
func (tx *Tx) Enqueue(t *Ticket, keys ...[]byte) {
	t.places = t.one[:0]
	if len(keys) > 1 {
		t.places = make([]place, 0, len(keys)) // pointers to the places must stay valid
	}
	for _, key := range keys {
		sh := tx.db.shards[tx.shardID(key)]
		sh.lines.mu.Lock()
		l := sh.makeLine(tx.dbi, key)
		if l.tail == nil || l.tail.t != t { // a key that is named twice counts once
			t.places = append(t.places, place{t: t, l: l})
			l.push(&t.places[len(t.places)-1])
			tx.db.waits.Add(1)
			t.bytes += placeBytes + 2*int64(len(key))
		}
		sh.lines.mu.Unlock()
		if t.Want.Due.Unit != 0 && !l.pending {
			tx.meets(l, t.Want) // schedules the wake-up
		}
	}
	tx.db.ChargeApart(t.bytes)
}

// Leave removes a ticket from all its lines. From then on no line serves it. Any goroutine may call
// it, also repeatedly, but not before Enqueue has returned. O(1) for each key; a Sweeper does the
// work for many keys.
func (t *Ticket) Leave() {
	if t.gone.Swap(true) || len(t.places) == 0 {
		return
	}
	db := t.places[0].l.sh.db
	if s, ok := db.hooks.(Sweeper); ok && len(t.places) > leaveAtOnce {
		s.Sweep(func() { t.leave(db) })
		return
	}
	t.leave(db)
}

func (t *Ticket) leave(db *DB) {
	for i := range t.places {
		p := &t.places[i]
		sh := p.l.sh
		sh.lines.mu.Lock()
		p.l.drop(p)
		db.waits.Add(-1)
		if p.l.head == nil {
			delete(sh.lines.all, p.l.key)
			sh.lines.wakes.cancel(p.l)
		}
		sh.lines.mu.Unlock()
	}
	db.ChargeApart(-t.bytes)
}

// Bytes returns the approximate memory of the ticket's places.
func (t *Ticket) Bytes() int64 { return t.bytes }

// Waiters returns the number of places in all lines. It takes no lock.
func (db *DB) Waiters() int64 { return db.waits.Load() }

// AwaitedKeys returns the number of keys that have a line, and the number of lines with a ticket
// for AnyKind, which the engine also serves when the key is deleted. It locks no shard. O(keys with
// a line).
func (db *DB) AwaitedKeys() (keys, whatever int) {
	if db.waits.Load() == 0 {
		return 0, 0
	}
	for _, sh := range db.shards {
		sh.lines.mu.Lock()
		keys += len(sh.lines.all)
		for _, l := range sh.lines.all {
			if l.counts[String] > 0 { // only AnyKind includes String
				whatever++
			}
		}
		sh.lines.mu.Unlock()
	}
	return keys, whatever
}

// Line returns the waiters of a key in order of arrival, whatever kind they wait
// for. The transaction holds the key's shard. O(waiters).
func (tx *Tx) Line(key []byte) (line []Waiter) {
	if tx.db.waits.Load() == 0 {
		return nil
	}
	l := tx.lineOf(key)
	if l == nil {
		return nil
	}
	l.sh.lines.mu.Lock()
	defer l.sh.lines.mu.Unlock()
	for p := l.head; p != nil; p = p.next {
		if !p.t.gone.Load() {
			line = append(line, p.t.Waiter)
		}
	}
	return line
}

// Awaited reports whether a waiter of key waits for a value of this kind. O(1).
func (tx *Tx) Awaited(key []byte, kind Kind) bool {
	if tx.db.waits.Load() == 0 {
		return false
	}
	l := tx.lineOf(key)
	if l == nil {
		return false
	}
	l.sh.lines.mu.Lock()
	defer l.sh.lines.mu.Unlock()
	if l.counts[kind] == 0 {
		return false
	}
	for p := l.head; p != nil; p = p.next { // mostly the first place decides
		if p.t.Kinds&(1<<kind) != 0 && !p.t.gone.Load() {
			return true
		}
	}
	return false
}

// Behind reports whether a request for key, whose value is of a kind, has to wait behind other clients, or is
// denied because it would overtake them. waited means that the request has waited itself, and is now served.
// O(1).
func (tx *Tx) Behind(key []byte, kind Kind, waited bool) bool {
	return !waited && tx.Awaited(key, kind)
}

// Pending reports whether the engine is about to give the value of a key to a waiter. A new client has to
// wait behind it.
func (tx *Tx) Pending(key []byte) bool {
	if tx.db.waits.Load() == 0 {
		return false
	}
	l := tx.lineOf(key)
	return l != nil && l.pending
}

func (tx *Tx) lineOf(key []byte) *waitLine {
	sh := tx.db.shards[tx.shardID(key)]
	sh.lines.mu.Lock()
	defer sh.lines.mu.Unlock()
	return sh.lines.all[watchKey{tx.dbi, string(key)}]
}

// makeLine returns the line of a key, and creates it if there is none. The lines' lock is held.
func (sh *shard) makeLine(db int, key []byte) *waitLine {
	if l := sh.lines.all[watchKey{db, string(key)}]; l != nil {
		return l
	}
	l := &waitLine{sh: sh, key: watchKey{db, string(key)}}
	l.name = []byte(l.key.key)
	if sh.lines.all == nil {
		sh.lines.all = map[watchKey]*waitLine{}
	}
	sh.lines.all[l.key] = l
	return l
}

func (l *waitLine) push(p *place) {
	p.in, p.prev = true, l.tail
	if l.tail != nil {
		l.tail.next = p
	} else {
		l.head = p
	}
	l.tail = p
	l.count(p, 1)
}

// drop unlinks a place. The place keeps its own links, so that a walk that stands at it can
// continue.
func (l *waitLine) drop(p *place) {
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		l.head = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		l.tail = p.prev
	}
	p.in = false
	l.count(p, -1)
}

func (l *waitLine) count(p *place, n int32) {
	for k := range l.counts {
		if p.t.Kinds&(1<<k) != 0 {
			l.counts[k] += n
		}
	}
	if p.t.Want != (Want{}) {
		if l.wants == nil {
			l.wants = map[Want]int32{}
		}
		if l.wants[p.t.Want] += n; l.wants[p.t.Want] == 0 {
			delete(l.wants, p.t.Want)
		}
	}
}

// next returns the first place after p, or from the head on if p is nil, that waits for a value of
// this kind and has none of the unmet wants, all of which are for this kind.
func (l *waitLine) next(p *place, kind Kind, unmet []Want) *place {
	l.sh.lines.mu.Lock()
	defer l.sh.lines.mu.Unlock()
	left := l.counts[kind]
	for _, w := range unmet {
		left -= l.wants[w]
	}
	if left <= 0 {
		return nil
	}
	if p == nil {
		p = l.head
	} else {
		p = p.next
	}
	for p != nil && (!p.in || p.t.Kinds&(1<<kind) == 0 || slices.Contains(unmet, p.t.Want) || p.t.gone.Load()) {
		p = p.next
	}
	return p
}

// Signal requests that the engine serve the waiters of a key when the transaction ends. Every
// change of a key signals it anyway.
func (tx *Tx) Signal(key []byte) {
	if tx.db.waits.Load() == 0 {
		return
	}
	if l := tx.lineOf(key); l != nil {
		tx.signalLine(l)
	}
}

// signalIn does the work of Signal in any database.
func (tx *Tx) signalIn(dbi int, key []byte) {
	defer tx.Select(tx.dbi)
	tx.Select(dbi)
	tx.Signal(key)
}

func (tx *Tx) signalLine(l *waitLine) {
	if !l.signalled {
		l.signalled = true
		tx.ready = append(tx.ready, l)
	}
}

// signalAll signals the lines of a database, or of all if dbi is -1. The
// transaction holds all shards. O(lines).
func (tx *Tx) signalAll(dbi int) {
	if tx.db.waits.Load() == 0 {
		return
	}
	for _, sh := range tx.db.shards {
		sh.lines.mu.Lock()
		for k, l := range sh.lines.all {
			if dbi < 0 || k.db == dbi {
				tx.signalLine(l)
			}
		}
		sh.lines.mu.Unlock()
	}
}

// wakes reports whether a change may serve a waiter. Of the changes of a stream, only new entries
// and destroyed groups do. The check matters because a stream may have many readers.
func wakes(class uint32, event string) bool {
	return class != EventStream || event == "xadd" || event == "xgroup-destroy"
}

// serveReady serves the signalled lines in the order of the signals. It serves none during a load.
func (tx *Tx) serveReady() {
	if len(tx.ready) == 0 {
		return
	}
	if tx.db.filling.Load() { // EndLoad signals all lines
		for _, l := range tx.ready {
			l.signalled = false
		}
		clear(tx.ready)
		tx.ready = tx.ready[:0]
		return
	}
	dbi, client, dirty := tx.dbi, tx.client, tx.dirty
	tx.hashed = nil
	for i := 0; i < len(tx.ready); i++ {
		l := tx.ready[i]
		tx.dbi = l.key.db
		tx.serveLine(l)
		l.signalled = false
	}
	clear(tx.ready)
	tx.ready = tx.ready[:0]
	tx.dbi, tx.client = dbi, client
	tx.dirty = max(dirty, 1) // as in Redis, changes by waiters do not count
}

// serveLine serves the waiters of a key until the value does not suffice for the next one.
func (tx *Tx) serveLine(l *waitLine) {
	if tx.uncovered() != 0 && tx.anyDue([][]byte{l.name}) {
		l.pending = true
		tx.pending = append(tx.pending, pendingLine{l, nil})
		return
	}
	kind := tx.kindOf(l.name)
	tx.unmet = tx.unmet[:0]
	for p := l.next(nil, kind, nil); p != nil; p = l.next(p, kind, tx.unmet) {
		t := p.t
		if t.Want != (Want{}) && !tx.meets(l, t.Want) {
			tx.unmet = append(tx.unmet, t.Want)
			continue
		}
		if !tx.reaches(t.Also) {
			l.pending = true
			tx.pending = append(tx.pending, pendingLine{l, t.Also})
			return
		}
		if t.Waiter.Serve(tx, l.name) {
			t.Leave()
			tx.dbi = l.key.db
			kind = tx.kindOf(l.name)
		} else if !t.Passable {
			return
		}
	}
}

func (tx *Tx) holdsAll(keys [][]byte) bool {
	for _, k := range keys {
		if !tx.holds(tx.shardID(k)) {
			return false
		}
	}
	return true
}

// kindOf returns the kind of a key as Type does, without statistics.
func (tx *Tx) kindOf(key []byte) Kind {
	if h := tx.find(key); h.r != nil {
		return h.r.Kind()
	}
	return None
}

// Delayer is an optional interface of Hooks that serve goroutines which must not sleep, such as a
// network loop.
type Delayer interface {
	// Afterwards runs the rest of a transaction's work, which has to wait for shards that other transactions
	// hold: in this goroutine if it may sleep, otherwise in another one. caller is the Caller of the
	// transaction. No shard is locked.
	Afterwards(caller any, run func())
}

// lockTries is the number of times that the work after a transaction tries to lock its shards before it sleeps for
// them, or leaves them to another goroutine. Most transactions hold a shard for about a microsecond.
const lockTries = 200

// leftover is work that a transaction leaves to separate transactions: lines to serve and entries to write.
type leftover struct {
	lines   []pendingLine
	entries []lateEntry
}

func (o *leftover) empty() bool { return len(o.lines)+len(o.entries) == 0 }

// take adds the leftover work of a transaction.
func (o *leftover) take(tx *Tx) {
	o.lines, o.entries = append(o.lines, tx.pending...), append(o.entries, tx.late...)
	tx.pending, tx.late = nil, nil
}

// servePending serves the lines and writes the entries that the ended transaction has left. It does not sleep
// for a shard: a Delayer selects the goroutine that does.
func (tx *Tx) servePending() {
	var o leftover
	o.take(tx)
	db := tx.db
	if d, ok := db.hooks.(Delayer); !ok {
		db.serve(&o, true)
	} else if db.serve(&o, false); !o.empty() {
		rest := o
		d.Afterwards(tx.caller, func() { db.serve(&rest, true) })
	}
}

// serve serves each line and writes each entry in a separate transaction, including those that these
// transactions leave. Without sleep, it stops at the first one that needs a shard that another transaction
// holds for long: that one and all later ones stay in o, in order.
func (db *DB) serve(o *leftover, sleep bool) {
	tx := db.txs.Get().(*Tx)
	defer db.txs.Put(tx)
	for !o.empty() {
		if len(o.entries) > 0 {
			e := o.entries[0]
			if !tx.lockSoon(1<<e.r.shard, sleep, func(wait bool) bool { return tx.begin(0, 1<<e.r.shard, wait) }) {
				return
			}
			o.entries = o.entries[1:]
			tx.writeLate(e)
		} else {
			p := o.lines[0]
			if keys := append([][]byte{p.l.name}, p.also...); !tx.lockKeysSoon(p.l.key.db, keys, sleep) {
				return
			}
			o.lines = o.lines[1:]
			p.l.pending = false
			tx.signalLine(p.l)
		}
		tx.finish()
		o.take(tx)
	}
}

// lockSoon begins a transaction with begin. Without sleep it returns false if other transactions
// hold shards of mask for long.
func (tx *Tx) lockSoon(mask uint64, sleep bool, begin func(wait bool) bool) bool {
	if begin(sleep) {
		return true
	}
	tx.await(mask, 1)
	defer tx.await(mask, -1)
	for range lockTries {
		runtime.Gosched()
		if begin(false) {
			return true
		}
	}
	return false
}

func (tx *Tx) lockKeysSoon(dbi int, keys [][]byte, sleep bool) bool {
	return tx.lockSoon(tx.shardsOf(keys), sleep, func(wait bool) bool { return tx.beginKeys(dbi, keys, wait) })
}

// Do calls do with a transaction on keys, and commits it: before Do returns, or, if other transactions hold
// the shards for long and a Delayer requests it, in another goroutine.
func (db *DB) Do(dbi int, keys [][]byte, do func(tx *Tx)) {
	tx := db.txs.Get().(*Tx)
	d, ok := db.hooks.(Delayer)
	if tx.lockKeysSoon(dbi, keys, !ok) {
		do(tx)
		tx.Commit()
		return
	}
	db.txs.Put(tx)
	d.Afterwards(nil, func() {
		tx := db.Begin(dbi, keys...)
		do(tx)
		tx.Commit()
	})
}
