package engine

import "time"

// The methods of this file are transactions of one operation, for the tests of this package.

// single runs a transaction with one key. It allocates nothing.
func (db *DB) single(dbi int, key []byte) *Tx {
	tx := db.txs.Get().(*Tx)
	tx.LockKey(dbi, key)
	return tx
}

// after is the deadline, in ms since 1970, that lies d after the transaction's instant; 0 if d is 0.
func (tx *Tx) after(d time.Duration) int64 {
	if d == 0 {
		return 0
	}
	return tx.ms + d.Milliseconds()
}

// get appends a string's value to dst.
func (db *DB) get(dbi int, key, dst []byte) (val []byte, ok bool, err error) {
	tx := db.single(dbi, key)
	v, ok, err := tx.Get(key)
	dst = append(dst, v...)
	tx.Commit()
	return dst, ok, err
}

// set stores a string that lives for ttl, or for ever if ttl is 0.
func (db *DB) set(dbi int, key, val []byte, ttl time.Duration) error {
	tx := db.single(dbi, key)
	_, _, err := tx.Set(key, val, SetOptions{Deadline: tx.after(ttl)}, nil)
	tx.Commit()
	return err
}

// del deletes a key.
func (db *DB) del(dbi int, key []byte) {
	tx := db.single(dbi, key)
	tx.Del(key)
	tx.Commit()
}
