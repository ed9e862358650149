package rdb

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/packed"
)

// The limits of small containers, which the Encoder writes as one packed string, as Redis stores
// them with its defaults.
const (
	smallItems  = 128 // items of a hash or a sorted set
	smallBytes  = 64  // bytes of each field, value and member
	smallInts   = 512 // members of a set of integers
	nodeBytes   = 8192
	streamBytes = 4096 // bytes of a stream's node
	streamItems = 100
)

// An Encoder appends values, each with its type before it, to Buf. The calls for a value have the
// order of a Builder's, and an End call concludes a container. The counts at the beginning must be
// exact, because Redis reads as many elements as the count says. An Encoder reuses its buffers for
// the next value. It is not safe for concurrent use.
type Encoder struct {
	Buf []byte
	// Compress compresses strings of more than 20 bytes with LZF if that makes them shorter.
	Compress bool
	// Plain leaves out data that redis-server 7.0 does not know. Fields selects how it writes the
	// deadlines of fields.
	Plain  bool
	Fields FieldForm
	// The Encoder writes Key, if not nil, after each value's type, as in a file.
	Key []byte
	// The Encoder calls Drain, if not nil, with the contents of Buf whenever these reach some 256
	// KiB, or more with a longer element. At the end of a value, Buf has the rest. Drain must not
	// keep b. With Drain, Nodes must be the number of nodes of a list or a stream: the NodeCount of
	// an earlier run.
	Drain func(b []byte)
	Nodes int

	at       int  // the position of the type
	keyed    bool // the next value belongs to a record, and Key is written even if nil
	timed    bool
	earliest int64

	small bool // the Encoder collects the elements in pack
	wide  bool // one of the elements is too long for a small container
	items int  // the number of elements to come
	count int  // the position of the number of nodes
	nodes int
	parts int // the number of parts of a module's value
	pack  packer
	node  streamNode
	lzf   *lzfTable
	nums  [3][20]byte
	ints  []int64 // of a small set
}

// FieldForm selects how a plain Encoder writes a hash whose fields have deadlines.
type FieldForm uint8

// The forms: without the deadlines, for redis-server 7.0; as Redis from 7.4 on; as Valkey
// from 9.0 on.
const (
	NoFields FieldForm = iota
	RedisFields
	ValkeyFields
)

// Version returns the version of a file with such hashes, for Writer.Header.
func (f FieldForm) Version() int { return [...]int{PlainVersion, Version, valkeyVersion}[f] }

// Reset begins new values, which the Encoder appends to buf.
func (e *Encoder) Reset(buf []byte) { e.Buf, e.timed, e.keyed = buf, false, false }

// Record begins a file's record, whose value follows and is written with Key: deadline is in ms
// since 1970; 0: none. idle is in seconds since the last access, and freq is a counter of accesses
// up to 255; -1: none. At most one of the two is given.
func (e *Encoder) Record(deadline, idle, freq int64) {
	e.keyed = true
	if deadline != 0 {
		e.Buf = append(e.Buf, opDeadline)
		e.uint64(uint64(deadline))
	}
	if idle >= 0 {
		e.Buf = append(e.Buf, opIdle)
		e.length(uint64(idle))
	}
	if freq >= 0 {
		e.Buf = append(e.Buf, opFreq, byte(min(freq, 255)))
	}
}

// Version returns the lowest version of the format that can contain the values written since Reset.
func (e *Encoder) Version() int {
	if e.timed {
		return Version
	}
	return PlainVersion
}

func (e *Encoder) begin(t Type) {
	e.at = len(e.Buf)
	e.Buf = append(e.Buf, byte(t))
	if e.keyed || e.Key != nil {
		e.keyed = false
		e.string(e.Key)
	}
}

func (e *Encoder) length(n uint64) {
	switch {
	case n < 1<<6:
		e.Buf = append(e.Buf, byte(n))
	case n < 1<<14:
		e.Buf = append(e.Buf, 0x40|byte(n>>8), byte(n))
	case n < 1<<32:
		e.Buf = binary.BigEndian.AppendUint32(append(e.Buf, 0x80), uint32(n))
	default:
		e.Buf = binary.BigEndian.AppendUint64(append(e.Buf, 0x81), n)
	}
}

func (e *Encoder) uint64(n uint64) { e.Buf = binary.LittleEndian.AppendUint64(e.Buf, n) }

// shortest is the greatest length of a string, in bytes, that the Encoder does not try to compress.
const shortest = 20

// string appends a string, or an integer if the string is a small one.
func (e *Encoder) string(s []byte) {
	if len(s) <= 11 {
		if n, ok := numeral.ParseInt(s); ok && n == int64(int32(n)) {
			e.integer(int32(n))
			return
		}
	}
	if e.Compress && len(s) > shortest && e.compressed(s) {
		return
	}
	e.length(uint64(len(s)))
	e.Buf = append(e.Buf, s...)
}

func (e *Encoder) integer(n int32) {
	switch {
	case n == int32(int8(n)):
		e.Buf = append(e.Buf, 0xc0+formInt8, byte(n))
	case n == int32(int16(n)):
		e.Buf = append(e.Buf, 0xc0+formInt16, byte(n), byte(n>>8))
	default:
		e.Buf = binary.LittleEndian.AppendUint32(append(e.Buf, 0xc0+formInt32), uint32(n))
	}
}

// compressed appends a compressed string, if it is shorter.
func (e *Encoder) compressed(s []byte) bool {
	if len(s) > math.MaxInt32 {
		return false
	}
	if e.lzf == nil {
		e.lzf = new(lzfTable)
	}
	// The length stands before the bytes: reserve space for the longest length, and close the gap
	// later.
	start := len(e.Buf)
	room := start + 1 + 5 + 5
	e.Buf = slices.Grow(e.Buf, 1+5+5+len(s)+2*lzfSpare)[:room]
	out, ok := e.lzf.packLZF(e.Buf, s)
	if !ok {
		e.Buf = e.Buf[:start]
		return false
	}
	data := out[room:]
	e.Buf = append(out[:start], 0xc0|formLZF)
	e.length(uint64(len(data)))
	e.length(uint64(len(s)))
	e.Buf = append(e.Buf, data...)
	return true
}

// String appends a string.
func (e *Encoder) String(val []byte) {
	e.begin(TypeString)
	e.string(val)
}

// counted reserves space for the number of nodes that follow.
func (e *Encoder) counted() {
	e.count, e.nodes = len(e.Buf), 0
	if e.Drain != nil {
		e.knownNodes()
		return
	}
	e.Buf = append(e.Buf, 0x80, 0, 0, 0, 0)
}

// endCounted fills in the number of nodes. It uses one byte if moving the nodes costs little.
func (e *Encoder) endCounted() {
	const little = 64 << 10
	if e.Drain != nil {
		return
	}
	if e.nodes < 1<<6 && len(e.Buf)-e.count < little {
		e.Buf[e.count] = byte(e.nodes)
		e.Buf = slices.Delete(e.Buf, e.count+1, e.count+5)
		return
	}
	binary.BigEndian.PutUint32(e.Buf[e.count+1:], uint32(e.nodes))
}

// BeginList begins a list: Element for each, then EndList.
func (e *Encoder) BeginList() {
	e.begin(TypeQuicklist2)
	e.counted()
	e.pack.reset()
}

// Element appends a list's next element.
func (e *Encoder) Element(elem []byte) {
	if e.pack.n > 0 && len(e.pack.b)+len(elem) > nodeBytes {
		e.listNode()
	}
	if len(elem) > math.MaxInt32 {
		e.nodes++
		e.length(nodePlain)
		e.string(elem)
		e.drain()
		return
	}
	e.pack.add(elem)
}

func (e *Encoder) listNode() {
	e.nodes++
	e.length(nodePacked)
	e.string(e.pack.finish())
	e.pack.reset()
	e.drain()
}

// EndList ends a list.
func (e *Encoder) EndList() {
	if e.pack.n > 0 {
		e.listNode()
	}
	e.endCounted()
}

// beginSmall begins a container of n items: packed if small, else of type t.
func (e *Encoder) beginSmall(t Type, n int, small bool) {
	e.begin(t)
	e.small, e.wide, e.items = small, false, n
	if small {
		e.pack.reset()
		return
	}
	e.length(uint64(n))
}

func (e *Encoder) collect(s []byte) {
	e.wide = e.wide || len(s) > smallBytes
	e.pack.add(s)
}

// collected ends the collection of a container's items. If the container stays packed, it writes it
// with type t. Otherwise it calls each for the n items.
func (e *Encoder) collected(t Type, n int, each func(c cursor)) {
	b := e.pack.finish()
	if !e.wide {
		e.Buf[e.at] = byte(t)
		e.string(b)
		return
	}
	e.length(uint64(e.items))
	for c := newListpack(b); n > 0; n-- {
		each(c)
		e.drain()
	}
}

// BeginSet begins a set of n members: Member for each, then EndSet.
func (e *Encoder) BeginSet(n int) { e.beginSmall(TypeSet, n, n <= smallInts) }

// Member appends a set's next member.
func (e *Encoder) Member(member []byte) {
	if !e.small {
		e.string(member)
		e.drain()
		return
	}
	if !e.wide {
		_, ok := numeral.ParseInt(member)
		e.wide = !ok
	}
	e.pack.add(member)
	if e.overflows() {
		e.EndSet()
		e.small = false
	}
}

// EndSet ends a set. It writes a set of integers as an intset.
func (e *Encoder) EndSet() {
	if !e.small {
		return
	}
	b, n := e.pack.finish(), e.pack.n
	if e.wide {
		e.length(uint64(e.items))
		for c := newListpack(b); n > 0; n-- {
			e.string(c.next().bytes(&e.nums[first]))
			e.drain()
		}
		return
	}
	ints := e.ints[:0]
	for c := newListpack(b); n > 0; n-- {
		ints = append(ints, c.next().n)
	}
	slices.Sort(ints)
	e.ints = ints
	e.intset(ints)
}

// intset appends sorted integers as the set that begins at e.at.
func (e *Encoder) intset(ints []int64) {
	e.Buf[e.at] = byte(TypeSetIntset)
	e.pack.b = appendIntset(e.pack.b[:0], ints)
	e.string(e.pack.b)
}

// appendIntset appends sorted integers in the narrowest width that holds them.
func appendIntset(b []byte, ints []int64) []byte {
	width := 2
	for _, n := range ints {
		switch {
		case n != int64(int32(n)):
			width = 8
		case n != int64(int16(n)):
			width = max(width, 4)
		}
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(width))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(ints)))
	for _, n := range ints {
		switch width {
		case 2:
			b = binary.LittleEndian.AppendUint16(b, uint16(n))
		case 4:
			b = binary.LittleEndian.AppendUint32(b, uint32(n))
		default:
			b = binary.LittleEndian.AppendUint64(b, uint64(n))
		}
	}
	return b
}

// BeginZSet begins a sorted set of n members: Scored for each, in ascending
// order, then EndZSet.
func (e *Encoder) BeginZSet(n int) { e.beginSmall(TypeZSet2, n, n <= smallItems) }

// Scored appends a sorted set's next member.
func (e *Encoder) Scored(member []byte, score float64) {
	if e.small {
		e.collect(member)
		if n, ok := packed.WholeScore(score); ok {
			e.pack.addInt(n)
		} else {
			e.pack.add(packed.AppendScore(e.nums[second][:0], score))
		}
		if e.overflows() {
			e.EndZSet()
			e.small = false
		}
		return
	}
	e.string(member)
	e.uint64(math.Float64bits(score))
	e.drain()
}

// EndZSet ends a sorted set.
func (e *Encoder) EndZSet() {
	if !e.small {
		return
	}
	e.collected(TypeZSetListpack, e.pack.n/2, func(c cursor) {
		e.string(c.next().bytes(&e.nums[first]))
		score, _ := parseScore(c.next().bytes(&e.nums[second]))
		e.uint64(math.Float64bits(score))
	})
}

// BeginHash begins a hash of n fields: Field for each, then EndHash. earliest is
// the earliest of the fields' deadlines in ms, or 0 if none has one.
func (e *Encoder) BeginHash(n int, earliest int64) {
	if e.Plain && e.Fields == NoFields {
		earliest = 0
	}
	if e.earliest = earliest; earliest == 0 {
		e.beginSmall(TypeHash, n, n <= smallItems)
		return
	}
	e.timed, e.small = true, false
	if e.valkey() {
		e.begin(TypeHashValkey)
		e.length(uint64(n))
		return
	}
	e.begin(TypeHashTimed)
	e.uint64(uint64(earliest))
	e.length(uint64(n))
}

// Field appends a hash's next field; deadline is 0, or not before the earliest.
func (e *Encoder) Field(field, value []byte, deadline int64) {
	if e.small {
		e.collect(field)
		e.collect(value)
		if e.overflows() {
			e.EndHash()
			e.small = false
		}
		return
	}
	valkey := e.earliest != 0 && e.valkey()
	if e.earliest != 0 && !valkey {
		if deadline != 0 {
			deadline -= e.earliest - 1
		}
		e.length(uint64(deadline))
	}
	e.string(field)
	e.string(value)
	if valkey {
		if deadline == 0 {
			deadline = -1
		}
		e.uint64(uint64(deadline))
	}
	e.drain()
}

// valkey reports whether the Encoder writes hashes whose fields have deadlines in Valkey's form.
func (e *Encoder) valkey() bool { return e.Plain && e.Fields == ValkeyFields }

// EndHash ends a hash.
func (e *Encoder) EndHash() {
	if !e.small {
		return
	}
	e.collected(TypeHashListpack, e.pack.n/2, func(c cursor) {
		e.string(c.next().bytes(&e.nums[first]))
		e.string(c.next().bytes(&e.nums[second]))
	})
}
