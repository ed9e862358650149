package engine

import "time"

// Each method of this file is a transaction of one operation.

// Get appends a string's value to dst. If there is no such key, ok is false and Get
// returns dst unchanged. It allocates nothing if dst has room.
func (db *DB) Get(dbi int, key, dst []byte) (val []byte, ok bool, err error) {
	tx := db.txs.Get().(*Tx)
	tx.LockKey(dbi, key)
	v, ok, err := tx.Get(key)
	dst = append(dst, v...)
	tx.Commit()
	return dst, ok, err
}

// Set stores a string that lives for ttl, or for ever if ttl is 0. It allocates nothing.
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

// Expire sets a key's time to live to ttl, and reports whether the key exists.
func (db *DB) Expire(dbi int, key []byte, ttl time.Duration) bool {
	tx := db.txs.Get().(*Tx)
	tx.LockKey(dbi, key)
	ok := tx.Expire(key, tx.After(ttl), 0, 0)
	tx.Commit()
	return ok
}

// TTL returns a key's remaining time to live: NoDeadline ms if it has no deadline, and NoKey ms if
// there is no such key. It does not count as an access.
func (db *DB) TTL(dbi int, key []byte) time.Duration {
	tx := db.txs.Get().(*Tx)
	tx.LockKey(dbi, key)
	d := tx.TTL(key)
	tx.Commit()
	return time.Duration(d) * time.Millisecond
}

// After returns the deadline, in ms since 1970, that lies d after the transaction's
// instant. It rounds d up to a whole millisecond.
func (tx *Tx) After(d time.Duration) int64 {
	return tx.ms + int64((d+time.Millisecond-1)/time.Millisecond)
}
