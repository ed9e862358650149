package servercmd

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"

	"github.com/ebbdb/ebb/internal/engine"
)

// digest is the signature of data that DEBUG DIGEST shows. It has 20 bytes, which are the same on
// Redis up to 7.2 for the same data. Two operations build it: mix depends on the order and is for
// ordered data; xor does not, and is for the keys of a keyspace and the members of a set.
type digest [sha1.Size]byte

// xor adds b independently of the order.
func (d *digest) xor(b []byte) {
	sum := sha1.Sum(b)
	for i := range d {
		d[i] ^= sum[i]
	}
}

// mix adds b in its order.
func (d *digest) mix(b []byte) {
	d.xor(b)
	*d = sha1.Sum(d[:])
}

func (d *digest) String() string { return hex.EncodeToString(d[:]) }

// typeCodes holds Redis's numbers of the data types; all others have the number of a module's type.
var typeCodes = map[engine.Kind]uint32{engine.String: 0, engine.List: 1, engine.Set: 2, engine.ZSet: 3, engine.Hash: 4, engine.Stream: 6,
	engine.Limiter: 5, engine.Lock: 5, engine.Semaphore: 5, engine.DelayQueue: 5, engine.Bloom: 5}

func bigEndian(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// value adds a key's value, and whether the key has a deadline. The instant of the deadline and the
// deadlines of items do not count.
func (d *digest) value(k engine.Key) {
	d.mix(bigEndian(typeCodes[k.Kind()]))
	switch k.Kind() {
	case engine.String:
		d.mix(k.Value())
	case engine.List:
		k.Items(func(x engine.Item) { d.mix(x.Key) })
	case engine.Set:
		k.Items(func(x engine.Item) { d.xor(x.Key) })
	case engine.ZSet:
		k.Items(func(x engine.Item) { d.pair(x.Key, appendScore(nil, x.Score)) })
	case engine.Hash:
		k.Items(func(x engine.Item) { d.pair(x.Key, x.Value) })
	case engine.Stream:
		d.entries(k)
	default:
		d.mix([]byte(k.Kind().String()))
		d.mix(k.Payload())
	}
	if k.Deadline() != 0 {
		d.xor([]byte("!!expire!!"))
	}
}

// entries adds the entries of a stream; its groups do not count.
func (d *digest) entries(k engine.Key) {
	var num [64]byte
	for it := k.Stream().Iter(engine.StreamID{}); it.Next(); {
		id := it.ID()
		text := append(strconv.AppendUint(num[:0], id.Ms, 10), '.')
		d.mix(strconv.AppendUint(text, id.Seq, 10))
		for range it.Fields() {
			name, value := it.Field()
			d.mix(name)
			d.mix(value.Append(num[:0]))
		}
	}
}

// pair adds two strings that belong together, independently of the order of the pairs.
func (d *digest) pair(a, b []byte) {
	var e digest
	e.mix(a)
	e.mix(b)
	d.xor(e[:])
}

// appendScore appends a score in the format "%.17g" of C.
func appendScore(dst []byte, f float64) []byte {
	if math.IsInf(f, 1) {
		return append(dst, "inf"...)
	}
	return bytes.ToLower(strconv.AppendFloat(dst, f, 'g', 17, 64))
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
			d.value(k)
			all.xor(d[:])
		})
	}
	return all
}
