package migrate

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/ebbdb/ebb/internal/rdb"
)

// A value is what a DUMP payload says, without its layout: the same data in a listpack, a hash table or a server's own
// form has the same sum. It implements rdb.Builder. The items of sets, hashes, sorted sets and streams count in any
// order, and those of lists in theirs.
type value struct {
	kind   string // string, list, set, zset, hash or stream; for a module its name
	sum    [2]uint64
	items  int
	timed  int // items with a deadline; for hashes, and for ebb's sets, sorted sets and lists
	number int // of the next element of a list
	group  []byte
	owner  []byte
	buf    []byte
	plain  bool // deadlines of items do not count
}

// readValue decodes a payload of DUMP. If plain is set, it leaves out the deadlines of items, so that the value equals
// what a server without them has.
func readValue(payload string, plain bool) (*value, error) {
	body, version, err := rdb.Open([]byte(payload))
	if err != nil {
		return nil, err
	}
	v := &value{plain: plain}
	var d rdb.Decoder
	if err := d.Restore(body, version, v); err != nil {
		return nil, err
	}
	return v, nil
}

// same reports whether two values are equal.
func (v *value) same(o *value) bool { return v.kind == o.kind && v.sum == o.sum && v.items == o.items }

// item counts an item, which is given in parts.
func (v *value) item(parts ...[]byte) {
	v.buf = v.buf[:0]
	for _, p := range parts {
		v.buf = binary.AppendUvarint(v.buf, uint64(len(p)))
		v.buf = append(v.buf, p...)
	}
	h := sha256.Sum256(v.buf)
	v.sum[0] += binary.LittleEndian.Uint64(h[:])
	v.sum[1] += binary.LittleEndian.Uint64(h[8:])
	v.items++
}

func fixed(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// String implements rdb.Builder.
func (v *value) String(val []byte) error {
	v.kind = "string"
	if len(val) > 16 && string(val[:4]) == "HYLL" { // bytes 8 to 15 cache the count: reads change them
		v.item(val[:8], val[16:])
		return nil
	}
	v.item(val)
	return nil
}

// BeginList implements rdb.Builder.
func (v *value) BeginList(int) error { v.kind = "list"; return nil }

// Element implements rdb.Builder.
func (v *value) Element(elem []byte) error {
	v.item(fixed(uint64(v.number)), elem)
	v.number++
	return nil
}

// BeginSet implements rdb.Builder.
func (v *value) BeginSet(int) error { v.kind = "set"; return nil }

// Member implements rdb.Builder.
func (v *value) Member(member []byte) error { v.item(member); return nil }

// BeginZSet implements rdb.Builder.
func (v *value) BeginZSet(int) error { v.kind = "zset"; return nil }

// Scored implements rdb.Builder.
func (v *value) Scored(member []byte, score float64) error {
	v.item(member, fixed(math.Float64bits(score+0))) // -0 + 0 is 0
	return nil
}

// BeginHash implements rdb.Builder.
func (v *value) BeginHash(int) error { v.kind = "hash"; return nil }

// Field implements rdb.Builder.
func (v *value) Field(field, val []byte, deadline int64) error {
	if deadline != 0 {
		v.timed++
	}
	if v.plain {
		deadline = 0
	}
	v.item(field, val, fixed(uint64(deadline)))
	return nil
}

// BeginStream implements rdb.Builder.
func (v *value) BeginStream(int) error { v.kind = "stream"; return nil }

// Entry implements rdb.Builder.
func (v *value) Entry(id rdb.StreamID, pairs [][]byte) error {
	v.item(append([][]byte{fixed(id.Ms), fixed(id.Seq)}, pairs...)...)
	return nil
}

// EndEntries implements rdb.Builder.
func (v *value) EndEntries(s rdb.StreamInfo) error {
	v.item([]byte("last"), fixed(s.Last.Ms), fixed(s.Last.Seq), fixed(s.MaxDeleted.Ms), fixed(s.MaxDeleted.Seq), fixed(s.Added))
	return nil
}

// Group implements rdb.Builder.
func (v *value) Group(g rdb.Group) error {
	v.group, v.owner = append([]byte(nil), g.Name...), nil
	v.item([]byte("group"), v.group, fixed(g.Last.Ms), fixed(g.Last.Seq))
	return nil
}

// Consumer implements rdb.Builder. A consumer counts with its pending entries. One that only waits does not: XREADGROUP creates it
// without a word to the replicas. The times at which a consumer was seen do not count either.
func (v *value) Consumer(c rdb.Consumer) error {
	v.owner = append([]byte(nil), c.Name...)
	return nil
}

// Pending implements rdb.Builder.
func (v *value) Pending(p rdb.Pending) error {
	v.item([]byte("pending"), v.group, v.owner, fixed(p.ID.Ms), fixed(p.ID.Seq), fixed(uint64(p.Delivered)), fixed(p.Count))
	return nil
}

// Module implements rdb.Builder.
func (v *value) Module(name string, data []byte) error {
	v.kind = name
	if strings.HasPrefix(name, "ebb-t") {
		return v.timedItems(name, data)
	}
	v.item(data)
	return nil
}

// timedItems reads a set, sorted set or list of ebb's whose items have deadlines (internal/engine/dump_timed.go).
func (v *value) timedItems(name string, data []byte) error {
	next := func() uint64 {
		x, k := binary.Uvarint(data)
		data = data[max(k, 0):]
		return x
	}
	take := func(n uint64) (b []byte) {
		n = min(n, uint64(len(data)))
		b, data = data[:n], data[n:]
		return b
	}
	if version := next(); version != 1 {
		return fmt.Errorf("%s has version %d, want 1", name, version)
	}
	items, first := next(), next()
	for range items {
		if len(data) == 0 {
			return rdb.ErrFormat
		}
		at := next()
		if at != 0 {
			v.timed++
			at += first - 1
		}
		var score []byte
		if name == "ebb-tzset" {
			score = take(8)
		}
		v.timedItem(name, take(next()), score, at)
	}
	return nil
}

// timedItem counts an item, in plain values as the type of Redis does.
func (v *value) timedItem(name string, item, score []byte, at uint64) {
	if !v.plain {
		if name == "ebb-tlist" {
			item = append(fixed(uint64(v.number)), item...)
			v.number++
		}
		v.item(item, score, fixed(at))
		return
	}
	switch name {
	case "ebb-tsets":
		v.kind = "set"
		_ = v.Member(item)
	case "ebb-tlist":
		v.kind = "list"
		_ = v.Element(item)
	case "ebb-tzset":
		v.kind = "zset"
		_ = v.Scored(item, math.Float64frombits(binary.LittleEndian.Uint64(append(score[:len(score):len(score)], make([]byte, 8)...))))
	}
}
