package engine

import "time"

// The methods of this file are single operations: a transaction each.

// Get appends a string's value to dst. ok is false, and dst is returned as it
// is, if there is no such key. It allocates nothing if dst has room.
func (db *DB) Get(dbi int, key, dst []byte) (val []byte, ok bool, err error) {
	tx := db.txs.Get().(*Tx)
	tx.LockKey(dbi, key)
	v, ok, err := tx.Get(key)
	dst = append(dst, v...)
	tx.Commit()
	return dst, ok, err
}

// Set stores a string that lives for ttl, for ever if ttl is 0. It allocates
// nothing.
func (db *DB) Set(dbi int, key, val []byte, ttl time.Duration) error {
	tx := db.txs.Get().(*Tx)
	tx.LockKey(dbi, key)
	var o SetOptions
	if ttl > 0 {
		o.Deadline = tx.After(ttl)
	}
	_, _, err := tx.Set(key, val, o, nil)
	tx.Commit()
	return err
}

// Del deletes a key and reports whether it was there.
func (db *DB) Del(dbi int, key []byte) bool {
	tx := db.txs.Get().(*Tx)
	tx.LockKey(dbi, key)
	ok := tx.Del(key)
	tx.Commit()
	return ok
}

// Expire lets a key live for another ttl, and reports whether it is there.
func (db *DB) Expire(dbi int, key []byte, ttl time.Duration) bool {
	tx := db.txs.Get().(*Tx)
	tx.LockKey(dbi, key)
	ok := tx.Expire(key, tx.After(ttl), 0, 0)
	tx.Commit()
	return ok
}

// TTL returns how long a key lives on: NoDeadline ms if for ever, NoKey ms if
// it is not there.
func (db *DB) TTL(dbi int, key []byte) time.Duration {
	tx := db.txs.Get().(*Tx)
	tx.LockKey(dbi, key)
	d := tx.TTL(key)
	tx.Commit()
	return time.Duration(d) * time.Millisecond
}

// After returns the deadline, in ms since 1970, of what is to live for d from
// the transaction's instant on; a part of a millisecond counts as a whole one.
func (tx *Tx) After(d time.Duration) int64 {
	return tx.ms + int64((d+time.Millisecond-1)/time.Millisecond)
}
