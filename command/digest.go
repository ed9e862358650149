package command

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"

	"github.com/ebbdb/ebb/engine"
)

// digest is the signature of data that DEBUG DIGEST shows: 20 bytes, which are
// the same on Redis up to 7.2 for the same data. Two operations build it. One
// makes the order count, for what is in order; the other does not, for the
// elements of a keyspace.
type digest [sha1.Size]byte

// xor adds b whatever the order.
func (d *digest) xor(b []byte) {
	sum := sha1.Sum(b)
	for i := range d {
		d[i] ^= sum[i]
	}
}

// mix adds b in order.
func (d *digest) mix(b []byte) {
	d.xor(b)
	*d = sha1.Sum(d[:])
}

func (d *digest) String() string { return hex.EncodeToString(d[:]) }

// typeCodes are Redis's numbers of the data types.
var typeCodes = map[engine.Kind]uint32{engine.String: 0, engine.List: 1, engine.Set: 2, engine.ZSet: 3, engine.Hash: 4, engine.Stream: 6}

func bigEndian(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// value adds a value, and whether it has a deadline; which one does not matter.
func (d *digest) value(kind engine.Kind, value []byte, deadline bool) {
	d.mix(bigEndian(typeCodes[kind]))
	d.mix(value)
	if deadline {
		d.xor([]byte("!!expire!!"))
	}
}

// digestOf returns the digest of all databases. The transaction holds every
// shard.
func digestOf(tx *engine.Tx) (all digest) {
	selected := tx.Selected()
	defer tx.Select(selected)
	for db := range tx.DB().Databases() {
		tx.Select(db)
		if tx.Size() == 0 {
			continue
		}
		all.mix(bigEndian(uint32(db)))
		tx.Each(func(k engine.Key) {
			var d digest
			d.mix(k.Name())
			d.value(k.Kind(), k.Value(), k.Deadline() != 0)
			all.xor(d[:])
		})
	}
	return all
}
