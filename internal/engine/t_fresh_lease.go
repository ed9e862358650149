package engine

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"github.com/ebbdb/ebb/internal/wheel"
)

// This file elects the client that loads a new value for a key whose value is stale or missing.
//
//	GETFRESH k LEASE 5000 ─▶ stale or missing, and no lease ─▶ a lease with a fencing token: load it
//	GETFRESH k LEASE 5000 ─▶ there is a lease: the stale value, or the line of the key (WAIT)
//	SET k v ... IFTOKEN t ─▶ the token is the lease's: stored; every client in line gets v
//
// A lease is in a table of the shard, separate from the keys: even a missing key may have one. It ends
//
//	by time          the wheel fires, the reclaimer signals the line: the first client in it is elected
//	by Unlease       in the same way
//	by any change    Tx.changed, of the key, and DEL or STALE of a missing one: what the client has loaded
//	                 may be older than the change, so its SET IFTOKEN must fail
//
// The expiry and the eviction of the key do not end a lease, because they say nothing about the value. The
// log has a DEL for both, and a replayed DEL ends a lease; so the log repeats the lease after it.
//
// A client may name itself when it requests a lease. Then it gets the same lease when it asks again, and can
// give it up without its token, which may have been in a reply that was lost.
//
//	EBB.LEASE key token ms [owner]     the lease, up to and including ms; 0: it has ended
//
// An engine without leases looks none up: a change costs one atomic read.

// MaxRefreshLease is the longest refresh lease, in ms.
const MaxRefreshLease = 3600 * 1000

// MaxRefreshOwner is the longest name of the owner of a refresh lease, in bytes. Owners are random or name a
// process; the names are outside the data, and eviction cannot free them.
const MaxRefreshOwner = 256

// leaseBytes estimates the bytes that a lease takes up besides the key's name.
const leaseBytes = 176

// leasesVersion is the version of the text of the leases in a file.
const leasesVersion = 2

// lease is the right of one client to load the value of a key.
type lease struct {
	key   watchKey
	token int64
	until int64  // ms; the lease holds up to and including this instant
	owner string // "": the client has given none
	slot  uint32
}

// leaseSet holds the leases of a shard, whose lock guards it.
type leaseSet struct {
	all   map[watchKey]*lease
	wheel *wheel.Wheel // nil before the first
	slots []leaseSlot  // the entries that the wheel refers to; 0 is not used
	free  []uint32
}

type leaseSlot struct {
	entry wheel.Entry
	l     *lease
}

// Entry implements wheel.Resolver.
func (s *leaseSet) Entry(ref uint32) *wheel.Entry { return &s.slots[ref].entry }

// next returns the time in ms of the end of the next lease.
func (s *leaseSet) next() (ms int64, ok bool) {
	if len(s.all) == 0 {
		return 0, false
	}
	return s.wheel.Next()
}

// Freshness is the state of a value that GetFresh returns.
type Freshness uint8

// These are the states.
const (
	FreshAbsent  Freshness = iota // there is no value
	FreshFresh                    // the value is fresh
	FreshStale                    // the value is stale
	FreshRefresh                  // the caller must load a new value, and has a token for it
)

// String returns the word for the state in the replies of GETFRESH.
func (f Freshness) String() string {
	return [...]string{"absent", "fresh", "stale", "refresh"}[f]
}

// FreshOptions configure GetFresh. The zero value only reads.
type FreshOptions struct {
	Lease  int64  // ms, up to MaxRefreshLease: the caller can load a value, and gets a lease of this length if it is elected; 0: it cannot
	Token  int64  // above 0: renew the lease with this token, and elect no client otherwise
	Owner  []byte // the caller's name, up to MaxRefreshOwner bytes: renew the lease of this owner if it has one; empty: no name
	Behind bool   // other clients wait in the key's line: the caller must not be elected before them
}

// FreshValue is the result of GetFresh.
type FreshValue struct {
	State Freshness
	Value []byte // in the engine's memory, valid until the next write; nil: there is no value
	Token int64  // of FreshRefresh
	// Millis is, in ms: for a fresh value the time until it is stale; for a stale one the time until it expires;
	// for FreshRefresh the caller's lease; for FreshAbsent the remaining time of another client's lease; -1 for
	// never, or if no other client has one.
	Millis  int64
	Loading bool // another client loads the value, or will be elected before the caller
}

// GetFresh returns a string with its freshness. If the string is stale or missing, no other client loads it,
// and o.Lease is set, GetFresh elects the caller. A string without a fresh deadline is fresh. On a replica it
// elects no client. It counts as an access. Expected O(1). Errors: ErrWrongType.
func (tx *Tx) GetFresh(key []byte, o FreshOptions) (v FreshValue, err error) {
	h := tx.read(key)
	if h.r != nil {
		if h.r.Kind() != String {
			return v, ErrWrongType
		}
		v.Value, v.State, v.Millis = h.sp.value(h.r), FreshFresh, -1
		if v.Value == nil {
			v.Value = []byte{}
		}
		until := h.r.freshUntil()
		if until == 0 {
			return v, nil
		}
		if v.Millis = until - tx.ms; v.Millis >= 0 {
			return v, nil
		}
	}

	l := tx.leaseOf(key)
	switch {
	case o.Lease <= 0 || tx.db.passive.Load():
	case l != nil && (o.Token != 0 && l.token == o.Token || o.Token == 0 && l.ownedBy(o.Owner)):
		return tx.refresh(v, key, l.token, o.Lease, l.owner), nil
	case o.Token != 0 || l != nil:
	case h.r != nil || !o.Behind:
		return tx.refresh(v, key, tx.NextToken(), o.Lease, string(o.Owner)), nil
	}

	v.Loading = l != nil
	switch {
	case h.r != nil && h.r.has(flagDeadline):
		v.State, v.Millis = FreshStale, h.r.deadline()-tx.ms
	case h.r != nil:
		v.State, v.Millis = FreshStale, -1
	case l != nil:
		v.Millis = l.until - tx.ms
	default:
		v.Millis = -1
		if o.Behind {
			v.Loading = true
			tx.Signal(key) // the lease has ended, and the reclaimer has not removed it yet
		}
	}
	return v, nil
}

// refresh gives the caller a lease, and returns the reply.
func (tx *Tx) refresh(v FreshValue, key []byte, token, ms int64, owner string) FreshValue {
	tx.putLease(key, token, tx.ms+ms, owner)
	tx.emitLease(key, token, tx.ms+ms, owner)
	v.State, v.Token, v.Millis = FreshRefresh, token, ms
	return v
}

// HoldsToken reports whether token is the refresh token of a key. O(1).
func (tx *Tx) HoldsToken(key []byte, token int64) bool {
	l := tx.leaseOf(key)
	return l != nil && l.token == token
}

// Unlease ends the lease with a token before its time, and reports whether there was one: the next client
// in line is elected. O(1).
func (tx *Tx) Unlease(key []byte, token int64) bool {
	if !tx.HoldsToken(key, token) {
		return false
	}
	tx.revoke(key)
	return true
}

// UnleaseOwner ends the lease of an owner, which may not know its token, as Unlease does. O(1).
func (tx *Tx) UnleaseOwner(key, owner []byte) bool {
	if l := tx.leaseOf(key); l == nil || !l.ownedBy(owner) {
		return false
	}
	tx.revoke(key)
	return true
}

// ownedBy reports whether a named owner has the lease.
func (l *lease) ownedBy(owner []byte) bool { return len(owner) > 0 && l.owner == string(owner) }

// Leased executes EBB.LEASE in a replay. Errors: those of CheckToken.
func (tx *Tx) Leased(key []byte, token, until int64, owner []byte) error {
	if err := tx.CheckToken(token); err != nil {
		return err
	}
	tx.SawToken(token)
	if until > 0 {
		tx.putLease(key, token, min(until, MaxDeadline), string(owner))
		return nil
	}
	if tx.db.leases.Load() > 0 {
		tx.voidLease(key)
		tx.Signal(key)
	}
	return nil
}

// leaseOf returns the lease of a key of the selected database; nil: there is none. The transaction holds
// the key's shard.
func (tx *Tx) leaseOf(key []byte) *lease {
	if tx.db.leases.Load() == 0 {
		return nil
	}
	l := tx.db.shards[tx.shardID(key)].leases.all[watchKey{tx.dbi, string(key)}]
	if l == nil || l.until < tx.ms {
		return nil
	}
	return l
}

// putLease stores a lease of a key, and replaces the one that the key has.
func (tx *Tx) putLease(key []byte, token, until int64, owner string) {
	sh := tx.db.shards[tx.shardID(key)]
	s := &sh.leases
	l := s.all[watchKey{tx.dbi, string(key)}]
	if l == nil {
		l = &lease{key: watchKey{tx.dbi, string(key)}, owner: owner}
		s.add(sh, l)
		tx.db.leases.Add(1)
		tx.db.ChargeApart(l.bytes())
	} else {
		s.wheel.Remove(l.slot)
		tx.db.ChargeApart(int64(len(owner) - len(l.owner)))
	}
	l.token, l.until, l.owner = token, until, owner
	s.wheel.Add(l.slot, until)
	sh.workAt(until + 1)
}

func (l *lease) bytes() int64 { return leaseBytes + int64(len(l.key.key)+len(l.owner)) }

// add adds a lease to the table, and gives it a slot.
func (s *leaseSet) add(sh *shard, l *lease) {
	if s.wheel == nil {
		s.all, s.slots = map[watchKey]*lease{}, make([]leaseSlot, 1)
		s.wheel = wheel.New(sh.last/1000, s)
	}
	if n := len(s.free); n > 0 {
		l.slot, s.free = s.free[n-1], s.free[:n-1]
	} else {
		l.slot = uint32(len(s.slots))
		s.slots = append(s.slots, leaseSlot{})
	}
	s.slots[l.slot] = leaseSlot{l: l}
	s.all[l.key] = l
}

// remove removes a lease whose entry is no longer in the wheel.
func (s *leaseSet) remove(db *DB, l *lease) {
	delete(s.all, l.key)
	s.slots[l.slot].l = nil
	s.free = append(s.free, l.slot)
	db.leases.Add(-1)
	db.ChargeApart(-l.bytes())
}

// voidLease ends the lease of a key without an effect, because the replay of the change that ends it does the
// same.
func (tx *Tx) voidLease(key []byte) {
	s := &tx.db.shards[tx.shardID(key)].leases
	if l := s.all[watchKey{tx.dbi, string(key)}]; l != nil {
		s.wheel.Remove(l.slot)
		s.remove(tx.db, l)
	}
}

// revoke ends the lease of a key that does not change, with an effect, and serves the line.
func (tx *Tx) revoke(key []byte) {
	if tx.db.leases.Load() == 0 {
		return
	}
	s := &tx.db.shards[tx.shardID(key)].leases
	if l := s.all[watchKey{tx.dbi, string(key)}]; l != nil {
		tx.emitLease(key, l.token, 0, "")
		tx.voidLease(key)
		tx.Signal(key)
	}
}

// voidLeases ends the leases of a database, or of all databases if dbi is -1, and reports whether there were
// any. The transaction holds all shards. O(leases).
func (tx *Tx) voidLeases(dbi int) (any bool) {
	if tx.db.leases.Load() == 0 {
		return false
	}
	for _, sh := range tx.db.shards {
		for k, l := range sh.leases.all {
			if dbi < 0 || k.db == dbi {
				sh.leases.wheel.Remove(l.slot)
				sh.leases.remove(tx.db, l)
				any = true
			}
		}
	}
	return any
}

// endLeases ends the leases whose time is over, at most budget of them, and signals their lines. It reports
// whether there are more. During a load it ends none: the log's instants are not the clock's. The
// transaction holds the shard.
func (sh *shard) endLeases(tx *Tx, budget int) (more bool) {
	s := &sh.leases
	if len(s.all) == 0 || tx.db.filling.Load() {
		return false
	}
	s.wheel.Advance(tx.ms, budget, func(slot uint32) {
		l := s.slots[slot].l
		s.remove(tx.db, l)
		tx.signalIn(l.key.db, []byte(l.key.key))
	})
	next, ok := s.next()
	return ok && next <= tx.ms
}

// Leases visits the refresh leases of all databases, including expired ones that the reclaimer has not
// removed yet. The transaction holds all shards. O(leases).
func (tx *Tx) Leases(visit func(db int, key string, token, until int64, owner string)) {
	for _, sh := range tx.db.shards {
		for k, l := range sh.leases.all {
			visit(k.db, k.key, l.token, l.until, l.owner)
		}
	}
}

func (tx *Tx) emitLease(key []byte, token, until int64, owner string) {
	if owner == "" {
		tx.emit(OwnPrefix+"LEASE", key, tx.itoa(0, token), tx.itoa(1, until))
		return
	}
	tx.emit(OwnPrefix+"LEASE", key, tx.itoa(0, token), tx.itoa(1, until), []byte(owner))
}

// keepLease logs the lease of a key of the selected database again, after an effect whose replay ends it.
func (tx *Tx) keepLease(key []byte) {
	if l := tx.leaseOf(key); l != nil {
		tx.emitLease(key, l.token, l.until, l.owner)
	}
}

// keepLeaseIn is keepLease in a database that need not be the selected one.
func (tx *Tx) keepLeaseIn(dbi int, key []byte) {
	if tx.db.leases.Load() == 0 {
		return
	}
	defer tx.Select(tx.dbi)
	tx.Select(dbi)
	tx.keepLease(key)
}

// savedLease is a lease in a file.
type savedLease struct {
	key          watchKey
	token, until int64
	owner        string
}

// encodeLeases returns the text of all leases for a file; nil if there are none. The transaction holds all
// shards. O(leases).
func (tx *Tx) encodeLeases() []byte {
	n := 0
	var b []byte
	for _, sh := range tx.db.shards {
		for k, l := range sh.leases.all {
			n++
			b = binary.AppendUvarint(b, uint64(k.db))
			b = append(binary.AppendUvarint(b, uint64(len(k.key))), k.key...)
			b = binary.AppendUvarint(b, uint64(l.token))
			b = binary.AppendUvarint(b, uint64(l.until))
			b = append(binary.AppendUvarint(b, uint64(len(l.owner))), l.owner...)
		}
	}
	if n == 0 {
		return nil
	}
	return append(binary.AppendUvarint([]byte{leasesVersion}, uint64(n)), b...)
}

// parseLeases parses the text of a file's leases.
func (db *DB) parseLeases(text []byte) (all []savedLease, err error) {
	in := queueReader{b: text}
	if in.number(0, 255) != leasesVersion {
		return nil, errAux
	}
	for n := in.number(0, int64(len(text))); n > 0 && !in.bad; n-- {
		var l savedLease
		l.key.db = int(in.number(0, int64(db.ndb)-1))
		l.key.key = string(in.text())
		l.token = in.number(1, maxToken)
		l.until = in.number(0, MaxDeadline)
		l.owner = string(in.text())
		all = append(all, l)
	}
	if in.bad || len(in.b) > 0 {
		return nil, errAux
	}
	return all, nil
}

// loadLeases applies the text of a file's leases. It locks all shards.
func (db *DB) loadLeases(text []byte) error {
	all, err := db.parseLeases(text)
	if err != nil {
		return err
	}
	tx := db.BeginAll(0)
	tx.setLeases(all)
	tx.Commit()
	return nil
}

// setLeases adds the leases of a file. The transaction holds all shards.
func (tx *Tx) setLeases(all []savedLease) {
	dbi := tx.dbi
	for _, l := range all {
		if tx.CheckToken(l.token) == nil {
			tx.dbi = l.key.db
			tx.putLease([]byte(l.key.key), l.token, l.until, l.owner)
			tx.SawToken(l.token)
		}
	}
	tx.dbi = dbi
}

// loadFreshText records the fresh deadline of the next string.
func (db *DB) loadFreshText(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > MaxDeadline {
		return errAux
	}
	db.loadFresh = n
	return nil
}

// appendFresh appends the text of a string with a fresh deadline.
func (r *rec) appendFresh(b []byte) []byte {
	const opAux = 250
	var num [20]byte
	b = appendString(append(b, opAux), []byte(auxFresh))
	return appendString(b, strconv.AppendInt(num[:0], r.freshUntil(), 10))
}

// checkLeases verifies the leases of all shards, which are locked.
func (db *DB) checkLeases() error {
	n := 0
	for _, sh := range db.shards {
		s := &sh.leases
		n += len(s.all)
		if s.wheel == nil {
			continue
		}
		if err := s.wheel.Check(); err != nil {
			return err
		}
		if len(s.all) != s.wheel.Len() || len(s.all)+len(s.free)+1 != len(s.slots) {
			return fmt.Errorf("there are %d leases, but the wheel has %d, and %d of %d slots are free",
				len(s.all), s.wheel.Len(), len(s.free), len(s.slots)-1)
		}
		for k, l := range s.all {
			if s.slots[l.slot].l != l || l.key != k || s.slots[l.slot].entry.Deadline() != l.until {
				return fmt.Errorf("the lease of %.100q has a wrong slot", k.key)
			}
		}
	}
	if int64(n) != db.leases.Load() {
		return fmt.Errorf("the count of leases is %d, want %d", db.leases.Load(), n)
	}
	return nil
}
