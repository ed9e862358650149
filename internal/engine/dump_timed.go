package engine

import (
	"encoding/binary"
	"math"

	"github.com/ebbdb/ebb/internal/packed"
	"github.com/ebbdb/ebb/internal/rdb"
)

// Dump and Restore use modules of ebb's own for sets, sorted sets and lists that have items with
// deadlines. Only ebb reads these modules. Other containers, and hashes whose fields have
// deadlines, have Redis's types.
//
//	version 1 │ items │ earliest deadline │ item ...
//	item:  deadline - earliest + 1, or 0 for none │ [score 8] │ length │ bytes
//
// Numbers are varints. A score is the bits of a float64, little endian. The items of lists and
// sorted sets are in their order.

// timedVersion is the version of the format, the first byte.
const timedVersion = 1

// timedName returns the name of the module for values of a kind whose items have deadlines; "" if
// the kind has no such module.
func timedName(k Kind) string {
	switch k {
	case Set:
		return "ebb-tsets"
	case ZSet:
		return "ebb-tzset"
	case List:
		return "ebb-tlist"
	}
	return ""
}

// timedKind returns the kind that a module's name stands for; ok is false for other modules.
func timedKind(name string) (k Kind, ok bool) {
	for _, k := range [...]Kind{Set, ZSet, List} {
		if timedName(k) == name {
			return k, true
		}
	}
	return None, false
}

// dumpTimed encodes a container whose earliest deadline is first, as module.dump does. O(items).
func (tx *Tx) dumpTimed(e *rdb.Encoder, h *hit, first int64) []byte {
	k := Key{tx: tx, sp: h.sp, r: h.r}
	out := []byte{timedVersion}
	out = binary.AppendUvarint(out, uint64(k.Len()))
	out = binary.AppendUvarint(out, uint64(first))
	k.Items(func(it Item) {
		at := uint64(0)
		if it.Deadline != 0 {
			at = uint64(it.Deadline - first + 1)
		}
		out = binary.AppendUvarint(out, at)
		if k.Kind() == ZSet {
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(it.Score))
		}
		out = binary.AppendUvarint(out, uint64(len(it.Key)))
		out = e.Spill(append(out, it.Key...))
	})
	return out
}

// timedReader reads the output of dumpTimed, and bytes that it does not trust. After an error, bad
// is set and every read returns zero.
type timedReader struct {
	b   []byte
	bad bool
}

func (r *timedReader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *timedReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *timedReader) score() float64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	score := math.Float64frombits(binary.LittleEndian.Uint64(b))
	r.bad = r.bad || math.IsNaN(score)
	return score
}

// timed builds a container from bytes that it does not trust. Errors: rdb.ErrFormat, ErrFull.
func (r *restorer) timed(k Kind, data []byte) error {
	in := timedReader{b: data}
	if v := in.take(1); v == nil || v[0] != timedVersion {
		return rdb.ErrFormat
	}
	n, first := in.number(), in.number()
	if in.bad || n == 0 || n > uint64(len(in.b))/2 || first == 0 || first > MaxItemDeadline {
		return rdb.ErrFormat
	}
	if err := r.beginTimed(k, int(n)); err != nil {
		return err
	}
	for ; n > 0; n-- {
		at, score := in.number(), 0.0
		if at > MaxItemDeadline+1 {
			return rdb.ErrFormat
		}
		if at != 0 {
			at += first - 1
		}
		if k == ZSet {
			score = in.score()
		}
		item := in.take(in.number())
		if in.bad || at > MaxItemDeadline {
			return rdb.ErrFormat
		}
		if err := r.timedItem(k, item, score, int64(at)); err != nil {
			return err
		}
	}
	if len(in.b) > 0 {
		return rdb.ErrFormat
	}
	return nil
}

func (r *restorer) beginTimed(k Kind, n int) (err error) {
	switch k {
	case Set:
		if err = r.BeginSet(n); r.box == nil { // a set of integers cannot store deadlines
			r.image = packed.New(r.roomFor(n), packed.KindSet)
		}
	case ZSet:
		err = r.BeginZSet(n)
	default:
		err = r.BeginList(n)
	}
	return err
}

func (r *restorer) timedItem(k Kind, item []byte, score float64, deadline int64) error {
	if r.dead(deadline) {
		r.left = true
		return nil
	}
	switch k {
	case Set:
		return r.member(item, deadline)
	case ZSet:
		return r.scored(item, score, deadline)
	}
	return r.element(item, deadline)
}
