package engine

import (
	"github.com/ebbdb/ebb/internal/arena"
	"github.com/ebbdb/ebb/internal/hll"
)

// HyperLogLogs are strings, byte for byte the same as those of Redis; package hll describes the
// format. For a string that is not a HyperLogLog, the methods return ErrNotHLL. For one with a
// valid header and invalid contents, they return ErrCorruptHLL when they find the fault.

// hll looks up a key that must hold a sketch or be missing. If it is missing, img is nil.
func (tx *Tx) hll(key []byte) (h hit, img []byte, err error) {
	if h, err = tx.str(key); err != nil || h.r == nil {
		return h, nil, err
	}
	img = h.sp.value(h.r)
	if !hll.Valid(img) {
		return h, nil, ErrNotHLL
	}
	return h, img, nil
}

// readHLL is hll for commands that read the sketch.
func (tx *Tx) readHLL(key []byte) (h hit, img []byte, err error) {
	if h = tx.read(key); h.r == nil {
		return h, nil, nil
	}
	if h.r.Kind() != String {
		return h, nil, ErrWrongType
	}
	if img = h.sp.value(h.r); !hll.Valid(img) {
		return h, nil, ErrNotHLL
	}
	return h, img, nil
}

// PFAdd adds elements to a sketch and reports whether the sketch changed. It creates a missing
// sketch, even without elements. O(1) for each element if the sketch is dense, else O(bytes); it
// allocates nothing. Errors: ErrWrongType, ErrNotHLL, ErrCorruptHLL, ErrFull.
func (tx *Tx) PFAdd(key []byte, elems [][]byte) (changed bool, err error) {
	h, img, err := tx.hll(key)
	if err != nil {
		return false, err
	}
	n := 0 // the number of changes
	if img != nil && hll.EncodingOf(img) == hll.Dense {
		n, err = tx.addDense(&h, key, img, elems)
	} else {
		n, err = tx.addSparse(&h, key, img, elems)
	}
	if n == 0 || err != nil {
		return false, err
	}
	if tx.db.logging.Load() {
		tx.emit("PFADD", append([][]byte{key}, elems...)...)
	}
	tx.changed(key, EventString, "pfadd")
	tx.dirty += n - 1
	return true, nil
}

// addDense adds to a dense sketch, in place.
func (tx *Tx) addDense(h *hit, key, img []byte, elems [][]byte) (n int, err error) {
	for _, e := range elems {
		register, value := hll.Locate(e)
		if n == 0 {
			if raises, _ := hll.Raises(img, register, value); !raises {
				continue
			}
			if img, err = tx.resize(h, key, len(img)); err != nil {
				return 0, err
			}
		}
		if _, raised, _ := hll.Raise(img, register, value, 0); raised {
			n++
		}
	}
	return n, nil
}

// addSparse adds to a sparse or missing sketch, in a copy.
func (tx *Tx) addSparse(h *hit, key, img []byte, elems [][]byte) (n int, err error) {
	buf, limit := tx.hllBuffer(), tx.db.layout.Load().HyperLogLogSparse
	if img == nil {
		buf, n = hll.New(buf), 1
		hll.Invalidate(buf)
	} else {
		buf = append(buf, img...)
	}
	for _, e := range elems {
		register, value := hll.Locate(e)
		var raised bool
		if buf, raised, err = hll.Raise(buf, register, value, limit); err != nil {
			return 0, ErrCorruptHLL
		}
		if raised {
			n++
		}
	}
	if n == 0 {
		return 0, nil
	}
	return n, tx.putHLL(h, key, buf)
}

// hllBuffer returns an empty scratch buffer for a sketch.
func (tx *Tx) hllBuffer() []byte {
	if cap(tx.vbuf) < hll.DenseSize {
		tx.vbuf = make([]byte, hll.DenseSize)
	}
	return tx.vbuf[:0]
}

// putHLL stores a sketch from the scratch buffer.
func (tx *Tx) putHLL(h *hit, key, img []byte) error {
	if tx.vbuf = img; len(img) > arena.MaxRecord {
		tx.vbuf = nil // the buffer becomes the key's value
	}
	return tx.replace(h, key, img, flagRaw)
}

// PFCount estimates how many different elements were added to the sketches of keys, all together.
// For one key, it stores the estimate in the sketch, which changes the value. O(1) for one key with
// a stored estimate; otherwise O(1) for each sparse byte, and 16384 steps for each dense sketch.
// Errors: ErrWrongType, ErrNotHLL, ErrCorruptHLL.
func (tx *Tx) PFCount(keys [][]byte) (int64, error) {
	if len(keys) == 1 {
		return tx.pfCount(keys[0])
	}
	var set hll.Set
	if _, err := tx.unite(&set, keys); err != nil {
		return 0, err
	}
	return int64(set.Count()), nil
}

func (tx *Tx) pfCount(key []byte) (int64, error) {
	h, img, err := tx.readHLL(key)
	if img == nil {
		return 0, err
	}
	if n, ok := hll.Cached(img); ok {
		return int64(n), nil
	}
	n, err := hll.Count(img)
	if err != nil {
		return 0, ErrCorruptHLL
	}
	h.preserve() // this read writes
	if img, err = tx.resize(&h, key, len(img)); err != nil {
		return 0, err
	}
	hll.Cache(img, n)
	tx.emit("PFCOUNT", key)
	tx.changed(key, 0, "")
	return int64(n), nil
}

// unite unites the sketches of keys and reports whether one of them is dense.
func (tx *Tx) unite(set *hll.Set, keys [][]byte) (dense bool, err error) {
	for _, key := range keys {
		_, img, err := tx.readHLL(key)
		if err != nil {
			return false, err
		}
		if img == nil {
			continue
		}
		if hll.EncodingOf(img) == hll.Dense {
			dense = true
		}
		if set.Unite(img) != nil {
			return false, ErrCorruptHLL
		}
	}
	return dense, nil
}

// PFMerge stores the union of the sketches of srcs and dst in dst. It creates dst, even without
// sources. O(registers) for each sketch. Errors: ErrWrongType, ErrNotHLL, ErrCorruptHLL, ErrFull.
func (tx *Tx) PFMerge(dst []byte, srcs [][]byte) error {
	var set hll.Set
	dense, err := tx.unite(&set, [][]byte{dst})
	if err == nil {
		var more bool
		more, err = tx.unite(&set, srcs)
		dense = dense || more
	}
	if err != nil {
		return err
	}
	h, img, err := tx.hll(dst)
	if err != nil {
		return err
	}
	buf := tx.hllBuffer()
	if img == nil {
		var empty [hll.HeaderSize + 2]byte
		img = hll.New(empty[:0])
	}
	if dense {
		buf, err = hll.ToDense(buf, img)
	} else {
		buf = append(buf, img...)
	}
	if err == nil {
		buf, err = set.RaiseAll(buf, tx.db.layout.Load().HyperLogLogSparse)
	}
	if err != nil {
		return ErrCorruptHLL
	}
	if err := tx.putHLL(&h, dst, buf); err != nil {
		return err
	}
	if tx.db.logging.Load() {
		tx.emit("PFMERGE", append([][]byte{dst}, srcs...)...)
	}
	tx.changed(dst, EventString, "pfadd")
	return nil
}

// HLL returns the stored bytes of a sketch, nil if there is no such key. They are valid until the
// next write. It does not count as an access.
func (tx *Tx) HLL(key []byte) ([]byte, error) {
	_, img, err := tx.hll(key)
	return img, err
}

// PFDense makes a sparse sketch dense and reports whether it did.
func (tx *Tx) PFDense(key []byte) (bool, error) {
	h, img, err := tx.hll(key)
	if img == nil || hll.EncodingOf(img) == hll.Dense {
		return false, err
	}
	buf, err := hll.ToDense(tx.hllBuffer(), img)
	if err != nil {
		return false, ErrCorruptHLL
	}
	if err := tx.putHLL(&h, key, buf); err != nil {
		return false, err
	}
	tx.emit("PFDEBUG", []byte("TODENSE"), key)
	tx.changed(key, 0, "")
	return true, nil
}
