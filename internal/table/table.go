// Package table is the keyspace's hash table: it finds records by key, grows and shrinks one bucket
// at a time, and can be scanned meanwhile.
//
//	hash ─ low bits ─► bucket (64 bytes)
//	                   12 tags of 1 byte │ overflow │ 12 Refs of 4 bytes
//
// Growth is linear hashing: with 2^level + split buckets, bucket numbers take level bits of the
// hash, and one more where the bucket was split already. An insertion beyond the load limit splits
// the bucket at split in two; a deletion below the lower limit joins the last two. So no operation
// costs more than a few buckets, there is never a second table, and the memory follows the count
// smoothly.
//
// A bucket holds all hashes that end in the bits of its number. Scan walks these suffixes in the
// order of their reversed bits. In this order the two halves of a split bucket follow each other,
// so the walk never misses an entry that stays.
//
// Each bucket has a mark that says whether a snapshot has saved it; see saved.go.
//
// Invariants: a Ref is in the chain of the bucket its hash belongs to, once; a tag is zero exactly
// where there is no Ref; an overflow bucket is never empty, and has no mark. Start reading at
// Table.Find.
package table

import (
	"math/bits"
	"runtime"
	"unsafe"

	"github.com/ebbdb/ebb/internal/arena"
)

const (
	slots = 12

	// An average chain is at most growNum/growDen long after an insertion.
	// In linear hashing the buckets not yet split hold up to twice the
	// average of the others: 6.5 keeps overflow chains below one in ten and
	// costs about ten bytes an entry.
	growNum, growDen = 13, 2
	// With fewer than shrinkAt entries per bucket, the table joins buckets.
	shrinkAt = 2
)

// A page is a slab of the pool.
const pageBuckets = arena.SlabSize / 64

type bucket struct {
	tags [slots]uint8
	over uint32 // overflow bucket number + 1, and mark
	refs [slots]arena.Ref
}

// next returns the number of the overflow bucket + 1, 0 if there is none.
func (b *bucket) next() uint32 { return b.over &^ mark }

// Records gives the table access to the keys of the records that it refers to.
type Records interface {
	// Equal reports whether the record's key is key.
	Equal(r arena.Ref, key []byte) bool
	// Hash returns the hash of the record's key.
	Hash(r arena.Ref) uint64
	// Touch reads a byte of the record that Hash reads too.
	Touch(r arena.Ref) byte
}

// Table maps keys to records. New returns one. It is not safe for concurrent use: the shard's lock
// guards it.
type Table struct {
	recs  Records
	level uint   // 2^level buckets, and
	split uint32 // of these, the number that are split
	count int
	main  pages
	over  pages
	spare uint32 // free overflow buckets: number+1 of the first, linked by over
	chain uint32 // overflow buckets in use
	saved uint32 // the mark of buckets that are saved: 0 or mark
	saver Saver
}

// Pos is the position of a Ref in the table. It is valid until the next Insert or Delete.
type Pos struct {
	b *bucket
	i int
}

// Ref returns the record at the position.
func (p Pos) Ref() arena.Ref { return p.b.refs[p.i] }

// Set replaces the record at the position with another record with the same key.
func (p Pos) Set(r arena.Ref) { p.b.refs[p.i] = r }

// New returns an empty table whose memory comes from pool.
func New(pool *arena.Pool, recs Records) *Table {
	t := &Table{recs: recs, main: pages{pool: pool}, over: pages{pool: pool}}
	t.main.grow()
	return t
}

// Len returns the number of entries.
func (t *Table) Len() int { return t.count }

// Bytes returns the memory of the buckets in use.
func (t *Table) Bytes() int { return (t.main.n + t.over.n) * int(unsafe.Sizeof(bucket{})) }

// Buckets returns the number of buckets, without overflow buckets.
func (t *Table) Buckets() int { return t.main.n }

// Release returns the memory to the pool. The table must not be used afterwards.
func (t *Table) Release() {
	t.main.release()
	t.over.release()
}

func tagOf(h uint64) uint8 {
	tag := uint8(h >> 48)
	if tag == 0 {
		return 0x80
	}
	return tag
}

// BucketOf returns the number of the bucket that keys with hash h belong to. It is valid until the next Insert or Delete.
func (t *Table) BucketOf(h uint64) uint32 {
	b := uint32(h) & (1<<t.level - 1)
	if b < t.split {
		b = uint32(h) & (1<<(t.level+1) - 1)
	}
	return b
}

const lows, highs = 0x0101010101010101, 0x8080808080808080

// matches returns a word whose high bits mark the bytes of w that equal tag; a byte after a marked
// one may be marked wrongly.
func matches(w uint64, tag uint8) uint64 {
	x := w ^ lows*uint64(tag)
	return (x - lows) &^ x & highs
}

// Find returns the position of key, whose hash is h. It costs one cache miss for the bucket and one
// for each record with the same tag.
func (t *Table) Find(h uint64, key []byte) (Pos, bool) {
	tag := tagOf(h)
	b := t.main.at(t.BucketOf(h))
	for {
		for m := matches(*(*uint64)(unsafe.Pointer(&b.tags[0])), tag); m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m) / 8
			if b.tags[i] == tag && t.recs.Equal(b.refs[i], key) {
				return Pos{b, i}, true
			}
		}
		for m := matches(uint64(*(*uint32)(unsafe.Pointer(&b.tags[8])))|0xffffffff<<32, tag) & 0xffffffff; m != 0; m &= m - 1 {
			i := 8 + bits.TrailingZeros64(m)/8
			if b.tags[i] == tag && t.recs.Equal(b.refs[i], key) {
				return Pos{b, i}, true
			}
		}
		n := b.next()
		if n == 0 {
			return Pos{}, false
		}
		b = t.over.at(n - 1)
	}
}

// Touch reads the bucket of hash h. A caller that is about to look up several keys
// touches their buckets first: the cache misses overlap then. The result only keeps the
// compiler from removing the read.
func (t *Table) Touch(h uint64) uint64 {
	return *(*uint64)(unsafe.Pointer(&t.main.at(t.BucketOf(h)).tags[0]))
}

// Line returns the address of the bucket of hash h, for a caller that reads it without the shard's lock and does not use what it reads.
// The memory stays mapped until the pool is closed.
func (t *Table) Line(h uint64) unsafe.Pointer { return unsafe.Pointer(t.main.at(t.BucketOf(h))) }

// First returns the record at which Find looks first in the bucket of hash h, 0 if the bucket has none. It does not read the record.
func (t *Table) First(h uint64) arena.Ref {
	b, i := t.main.at(t.BucketOf(h)), 0
	if m := matches(*(*uint64)(unsafe.Pointer(&b.tags[0])), tagOf(h)); m != 0 {
		i = bits.TrailingZeros64(m) / 8
	} else if m = matches(uint64(*(*uint32)(unsafe.Pointer(&b.tags[8])))|0xffffffff<<32, tagOf(h)) & 0xffffffff; m != 0 {
		i = 8 + bits.TrailingZeros64(m)/8
	} else {
		return 0
	}
	return b.refs[i]
}

// TouchRecord reads the record of First, if there is one. A caller that is about to look up several keys touches their records after
// their buckets.
func (t *Table) TouchRecord(h uint64) byte {
	if r := t.First(h); r != 0 {
		return t.recs.Touch(r)
	}
	return 0
}

// FindRef returns the position of the record r, whose key's hash is h.
func (t *Table) FindRef(h uint64, r arena.Ref) (Pos, bool) {
	b := t.main.at(t.BucketOf(h))
	for {
		for i := range b.refs {
			if b.refs[i] == r && b.tags[i] != 0 {
				return Pos{b, i}, true
			}
		}
		n := b.next()
		if n == 0 {
			return Pos{}, false
		}
		b = t.over.at(n - 1)
	}
}

// Insert adds a record whose key, with hash h, is not in the table, and returns its position. It
// touches one bucket, and one or two more if the table grows.
func (t *Table) Insert(h uint64, r arena.Ref) Pos {
	t.count++
	for i := 0; i < 2 && t.count*growDen > t.main.n*growNum; i++ {
		t.grow()
	}
	return t.put(t.main.at(t.BucketOf(h)), tagOf(h), r)
}

// Delete removes the entry at p, in the chain of hash h.
func (t *Table) Delete(h uint64, p Pos) {
	t.remove(t.main.at(t.BucketOf(h)), p)
	t.count--
	for i := 0; i < 2 && t.main.n > 1 && t.count < t.main.n*shrinkAt; i++ {
		t.shrink()
	}
}

func (t *Table) put(b *bucket, tag uint8, r arena.Ref) Pos {
	for {
		for i := range b.tags {
			if b.tags[i] == 0 {
				b.tags[i], b.refs[i] = tag, r
				return Pos{b, i}
			}
		}
		if b.next() == 0 {
			b.over |= t.newOver() + 1
		}
		b = t.over.at(b.next() - 1)
	}
}

// remove empties the slot at p and fills it from the end of its chain.
func (t *Table) remove(head *bucket, p Pos) {
	var before *bucket
	last := head
	for last.next() != 0 {
		before, last = last, t.over.at(last.next()-1)
	}
	if last == head {
		p.b.tags[p.i], p.b.refs[p.i] = 0, 0
		return
	}
	left := 0
	for i := slots - 1; i >= 0; i-- {
		if last.tags[i] == 0 {
			continue
		}
		if left == 0 {
			p.b.tags[p.i], p.b.refs[p.i] = last.tags[i], last.refs[i]
			last.tags[i], last.refs[i] = 0, 0
		}
		left++
	}
	if left == 1 {
		t.freeOver(before.next() - 1)
		before.over &= mark
	}
}

func (t *Table) newOver() uint32 {
	t.chain++
	if t.spare != 0 {
		n := t.spare - 1
		t.spare = t.over.at(n).over
		*t.over.at(n) = bucket{}
		return n
	}
	return t.over.grow()
}

func (t *Table) freeOver(n uint32) {
	*t.over.at(n) = bucket{over: t.spare}
	t.spare = n + 1
	t.chain--
	if t.chain == 0 {
		t.over.release()
		t.spare = 0
	}
}

// grow splits the bucket at split.
func (t *Table) grow() {
	to := t.main.grow() // to == 2^level + split
	bit := uint64(1) << t.level
	from := t.split
	t.split++
	if t.split == 1<<t.level {
		t.level++
		t.split = 0
	}
	keep, dst := t.main.at(from), t.main.at(to)
	old := *keep
	*keep = bucket{over: old.over & mark}
	dst.over = old.over & mark
	for {
		runtime.KeepAlive(t.touch(&old))
		for i, tag := range old.tags {
			if tag == 0 {
				continue
			}
			if t.recs.Hash(old.refs[i])&bit != 0 {
				t.put(dst, tag, old.refs[i])
			} else {
				t.put(keep, tag, old.refs[i])
			}
		}
		n := old.next()
		if n == 0 {
			return
		}
		n--
		old = *t.over.at(n)
		t.freeOver(n)
	}
}

// touch reads the records of a bucket, so that their cache misses overlap. The result only keeps the compiler from removing the reads.
func (t *Table) touch(b *bucket) (sum byte) {
	for i, tag := range b.tags {
		if tag != 0 {
			sum += t.recs.Touch(b.refs[i])
		}
	}
	return sum
}

// shrink joins the last bucket with the one it was split from.
func (t *Table) shrink() {
	if t.split == 0 {
		t.level--
		t.split = 1 << t.level
	}
	t.split--
	last := uint32(t.main.n - 1)
	t.saveOne(t.split, last)
	old := *t.main.at(last)
	t.main.shrink()
	dst := t.main.at(t.split)
	for {
		for i, tag := range old.tags {
			if tag != 0 {
				t.put(dst, tag, old.refs[i])
			}
		}
		n := old.next()
		if n == 0 {
			return
		}
		n--
		old = *t.over.at(n)
		t.freeOver(n)
	}
}

// pages is a growing array of buckets on slabs of the pool.
type pages struct {
	pool *arena.Pool
	base []unsafe.Pointer
	n    int
}

func (p *pages) at(i uint32) *bucket {
	return (*bucket)(unsafe.Add(p.base[i/pageBuckets], uintptr(i%pageBuckets)*64))
}

// grow adds an empty bucket and returns its number.
func (p *pages) grow() uint32 {
	if p.n == len(p.base)*pageBuckets {
		p.base = append(p.base, p.pool.Get())
	}
	n := uint32(p.n)
	p.n++
	*p.at(n) = bucket{}
	return n
}

func (p *pages) shrink() {
	p.n--
	// Keep one page more than needed, so that a table at a page's edge does
	// not map and unmap it with every other operation.
	if len(p.base) > 1 && p.n+pageBuckets/2 <= (len(p.base)-1)*pageBuckets {
		p.pool.Put(p.base[len(p.base)-1])
		p.base = p.base[:len(p.base)-1]
	}
}

func (p *pages) release() {
	for _, b := range p.base {
		p.pool.Put(b)
	}
	p.base, p.n = nil, 0
}
