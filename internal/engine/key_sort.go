package engine

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

// ErrNotSortable: an element, or the value that a pattern finds for it, is not a number.
var ErrNotSortable = errors.New("one or more scores can't be converted into double")

// SortOptions are the options of Sort. The zero value sorts by number, ascending.
type SortOptions struct {
	By     []byte   // a pattern for the keys to sort by; one without '*' keeps the order; nil: sort by the elements
	Get    [][]byte // patterns for the values to return for each element; none: the element itself
	Desc   bool
	Alpha  bool  // by bytes, not by number
	Offset int64 // the number of elements to skip
	Count  int64 // the greatest number of elements to return; below 0: all
	Store  bool  // the caller stores the result, so it must have an order
	// Settled sorts the elements of a set by their bytes where By would keep their order. Scripts
	// set it, so that equal data gives equal results.
	Settled bool
}

// Patterned reports whether a pattern of SORT refers to other keys.
func Patterned(pattern []byte) bool { return bytes.IndexByte(pattern, '*') >= 0 }

// Sorted is the result of a Sort: the wanted elements, in order. It is valid until the
// transaction's next Sort.
type Sorted struct {
	tx    *Tx
	get   [][]byte
	elems texts
	by    texts // the bytes of other keys, if the elements are sorted by them
	order []sortPlace
	key   []byte // scratch memory for the keys of patterns
}

// keepSorted is the largest buffer that a transaction keeps for its next Sort, in elements and in
// bytes.
const keepSorted = 16 << 10

// sortPlace is an element's place in the result. It has no pointers, so that moving it,
// and keeping it from one Sort to the next, costs little.
type sortPlace struct {
	score float64 // when sorting by bytes: 0, or -1 if the element has no key
	elem  int
}

// texts is a list of strings in one buffer.
type texts struct {
	bytes []byte
	ends  []int
}

func (t *texts) add(s []byte) {
	t.bytes = append(t.bytes, s...)
	t.ends = append(t.ends, len(t.bytes))
}

func (t *texts) at(i int) []byte {
	start := 0
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.bytes[start:t.ends[i]:t.ends[i]]
}

// reset empties the list, and keeps its buffers unless they are large.
func (t *texts) reset() {
	if cap(t.bytes) > keepSorted || cap(t.ends) > keepSorted {
		*t = texts{}
	}
	t.bytes, t.ends = t.bytes[:0], t.ends[:0]
}

// newSorted returns the transaction's Sorted, empty.
func (tx *Tx) newSorted(get [][]byte) *Sorted {
	if tx.sorted == nil {
		tx.sorted = &Sorted{tx: tx}
	}
	s := tx.sorted
	s.get = get
	s.elems.reset()
	s.by.reset()
	if cap(s.order) > keepSorted {
		s.order = nil
	}
	s.order = s.order[:0]
	return s
}

// Sort returns elements of a list, set or sorted set in the requested order, and none if there is
// no such key. Patterns may refer to any key, so the transaction holds all shards if one of them is
// Patterned. Sort copies the elements: O(n log n). Errors: ErrWrongType, ErrNotSortable.
func (tx *Tx) Sort(key []byte, o SortOptions) (*Sorted, error) {
	h := tx.read(key)
	s := tx.newSorted(o.Get)
	if h.r == nil {
		return s, nil
	}
	kind := h.r.Kind()
	if kind != List && kind != Set && kind != ZSet {
		return nil, ErrWrongType
	}
	keep := o.By != nil && !Patterned(o.By)
	if keep && kind == Set && (o.Store || o.Settled) {
		keep, o.By, o.Alpha = false, nil, true // a set has no order
	}
	if keep && kind != Set {
		s.loadPart(&h, &o)
		return s, nil
	}
	Key{tx: tx, sp: h.sp, r: h.r}.Items(func(it Item) { s.elems.add(it.Key) })
	s.keepOrder()
	if !keep {
		if err := s.sort(&o); err != nil {
			return nil, err
		}
	}
	from, to := o.part(len(s.order))
	s.order = s.order[:copy(s.order, s.order[from:to])]
	return s, nil
}

// part returns the range [from, to) of n elements that the caller wants.
func (o *SortOptions) part(n int) (from, to int) {
	offset := min(max(o.Offset, 0), int64(n))
	count := o.Count
	if count < 0 || count > int64(n)-offset {
		count = int64(n) - offset
	}
	return int(offset), int(offset + count)
}

// loadPart loads the wanted range of a list or a sorted set whose order Sort keeps. O(log
// n), and O(1) for each.
func (s *Sorted) loadPart(h *hit, o *SortOptions) {
	if h.r.Kind() == ZSet {
		v := s.tx.viewZSet(h)
		from, to := o.part(v.Len())
		if from == to {
			return
		}
		w := v.Range(&ZRange{Start: int64(from), Stop: int64(to - 1), Rev: o.Desc})
		for w.Next() {
			s.elems.add(w.Member())
		}
		s.keepOrder()
		return
	}
	v := s.tx.viewList(h)
	n := v.Len()
	from, to := o.part(n)
	if o.Desc {
		from, to = n-to, n-from
	}
	if from == to {
		return
	}
	v.Range(from, to-1, s.elems.add)
	s.keepOrder()
	if o.Desc {
		slices.Reverse(s.order)
	}
}

// keepOrder leaves the elements in the order in which they were loaded.
func (s *Sorted) keepOrder() {
	s.order = slices.Grow(s.order, len(s.elems.ends))
	for i := range s.elems.ends {
		s.order = append(s.order, sortPlace{elem: i})
	}
}

// sort sorts the elements by their own values or by the values of other keys. It orders equal
// numbers by the elements' bytes.
func (s *Sorted) sort(o *SortOptions) error {
	var p pattern
	if o.By != nil {
		p = parsePattern(o.By)
	}
	for i := range s.order {
		by, ok := s.elems.at(i), true
		if o.By != nil {
			by, ok = s.follow(&p, by)
		}
		switch {
		case o.Alpha && o.By != nil:
			s.by.add(by) // copy: the next lookup may move the value
			if !ok {
				s.order[i].score = -1
			}
		case o.Alpha || !ok:
		default:
			if s.order[i].score, ok = sortNumber(by); !ok {
				return ErrNotSortable
			}
		}
	}
	if o.Alpha && o.By != nil {
		slices.SortStableFunc(s.order, s.compareKeys) // equal keys leave the order as it was
	} else {
		slices.SortFunc(s.order, s.compare)
	}
	if o.Desc {
		slices.Reverse(s.order)
	}
	return nil
}

func (s *Sorted) compare(a, b sortPlace) int {
	switch {
	case a.score < b.score:
		return -1
	case a.score > b.score:
		return 1
	}
	return bytes.Compare(s.elems.at(a.elem), s.elems.at(b.elem))
}

// compareKeys puts elements without a key before the others.
func (s *Sorted) compareKeys(a, b sortPlace) int {
	if a.score != b.score {
		return cmp.Compare(a.score, b.score)
	}
	return bytes.Compare(s.by.at(a.elem), s.by.at(b.elem))
}

// sortNumber parses a number as SORT does, with C's strtod: it allows leading spaces and
// hexadecimal digits, and an empty string is 0. A number that overflows or underflows is invalid.
func sortNumber(b []byte) (float64, bool) {
	if n, err := parseInt(b); err == nil {
		return float64(n), true
	}
	s := string(bytes.ToLower(bytes.TrimLeft(b, " \t\n\v\f\r")))
	if s == "" {
		return 0, true
	}
	digits, _, _ := strings.Cut(s, "e")
	if hex := strings.TrimLeft(s, "+-"); strings.HasPrefix(hex, "0x") {
		var exponent bool
		if digits, _, exponent = strings.Cut(hex[2:], "p"); !exponent {
			s += "p0" // Go requires an exponent after hexadecimal digits, C does not
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	vanished := f == 0 && strings.Trim(digits, "+-.0") != ""
	return f, err == nil && !math.IsNaN(f) && !vanished && !strings.Contains(s, "_")
}

// Len returns the number of values that Each visits.
func (s *Sorted) Len() int { return len(s.order) * max(1, len(s.get)) }

// Each visits the values: the elements, or for each of them the values that the GET patterns find; ok is
// false if a pattern finds nothing. val is valid only during the call.
func (s *Sorted) Each(visit func(val []byte, ok bool)) {
	patterns := make([]pattern, len(s.get))
	for i, g := range s.get {
		patterns[i] = parsePattern(g)
	}
	for _, p := range s.order {
		elem := s.elems.at(p.elem)
		if len(patterns) == 0 {
			visit(elem, true)
		}
		for i := range patterns {
			visit(s.follow(&patterns[i], elem))
		}
	}
}

// Store stores a list of the values under a key, and replaces any value of the key. A missing value becomes
// an empty element; if there are no values, Store deletes the key. It returns the length. Errors: ErrFull.
func (s *Sorted) Store(dst []byte) (n int, err error) {
	tx := s.tx
	vals := &s.by // the order is final, so the buffer of the sort keys is free
	vals.reset()
	s.Each(func(val []byte, _ bool) { vals.add(val) })
	if n = len(vals.ends); n == 0 {
		tx.Del(dst)
		return 0, nil
	}
	h := tx.find(dst)
	r := &restorer{tx: tx}
	_ = r.BeginList(n)
	for i := 0; err == nil && i < n; i++ {
		err = r.Element(vals.at(i))
	}
	there := h.r != nil
	if err == nil {
		err = tx.install(&h, dst, r, 0)
	}
	if err != nil {
		r.discard()
		return 0, err
	}
	if there {
		tx.emit("DEL", dst)
	}
	if tx.db.logging.Load() {
		all := make([][]byte, n)
		for i := range all {
			all[i] = vals.at(i)
		}
		for part := range slices.Chunk(all, effectItems) {
			tx.emitItems("RPUSH", dst, part)
		}
	}
	tx.dirty += n - 1
	tx.changed(dst, EventList, "sortstore")
	return n, nil
}

// pattern is a BY or GET pattern: "prefix*suffix", "prefix*suffix->field", or
// "#" for the element itself.
type pattern struct {
	self           bool
	prefix, suffix []byte
	field          []byte // nil: the key is a string
	keys           bool   // the pattern contains a '*'
}

func parsePattern(b []byte) pattern {
	if string(b) == "#" {
		return pattern{self: true}
	}
	var p pattern
	p.prefix, p.suffix, p.keys = bytes.Cut(b, []byte("*"))
	if at := bytes.Index(p.suffix, []byte("->")); at >= 0 && at+2 < len(p.suffix) {
		p.suffix, p.field = p.suffix[:at], p.suffix[at+2:]
	}
	return p
}

// follow returns the value that a pattern finds for an element: a string, or a field of a
// hash. ok is false if there is none, or the key holds another kind.
func (s *Sorted) follow(p *pattern, elem []byte) (val []byte, ok bool) {
	switch {
	case p.self:
		return elem, true
	case !p.keys:
		return nil, false
	}
	s.key = append(append(append(s.key[:0], p.prefix...), elem...), p.suffix...)
	h := s.tx.read(s.key)
	switch {
	case h.r == nil:
		return nil, false
	case p.field != nil && h.r.Kind() == Hash:
		v := s.tx.viewHash(&h)
		return v.Get(p.field)
	case p.field == nil && h.r.Kind() == String:
		return h.sp.value(h.r), true
	}
	return nil, false
}
