package engine

import (
	"encoding/base64"
	"strconv"
	"unicode/utf8"
)

// This file has the entries of rules that write to a delay queue (Rule.ToQueue). An entry is a job:
//
//	id       rule:key:item:deadline; the item is empty if a key has expired
//	payload  {"key":"k","item":"i","level":"field","value":"v","deadline":1700000001000,
//	         "fired-at":1700000001001,"rule":"r"}
//
// The payload has the fields of a stream's entry in the same order; item and value are missing if a stream's
// entry lacks them. The two instants are numbers, the others are strings. JSON cannot hold bytes that are not
// UTF-8: the name of such a string has "-base64" appended, and the string is in base64, in the standard
// alphabet with padding: {"key-base64":"/w==", ...}.
//
// Two expirations may have the same id: elements of a list may be equal, and the parts of an id may
// hold colons. The queue gets a job for each. A later one has ":2", ":3" ... behind its id while the
// id is taken.

// job appends the id and the payload of an entry.
func (tx *Tx) job(dst [][]byte, f *firing) [][]byte {
	b := tx.fbuf[f.at:]
	take := func(n int) (part []byte) {
		part, b = b[:n:n], b[n:]
		return part
	}
	key, item := take(f.klen), take(f.ilen)
	var value []byte
	if f.vlen >= 0 {
		value = take(f.vlen)
	}
	deadline := take(f.dlen)

	id := make([]byte, 0, len(f.r.Name)+f.klen+f.ilen+f.dlen+3)
	id = append(append(id, f.r.Name...), ':')
	id = append(append(id, key...), ':')
	id = append(append(id, item...), ':')
	id = append(id, deadline...)

	p := make([]byte, 0, len(f.r.Name)+f.klen+f.ilen+max(f.vlen, 0)+160)
	p = appendField(append(p, '{'), entryKey, key)
	if f.item {
		p = appendField(append(p, ','), entryItem, item)
	}
	p = appendField(append(p, ','), entryLevel, []byte(f.level.String()))
	if f.vlen >= 0 {
		p = appendField(append(p, ','), entryValue, value)
	}
	p = append(append(append(p, `,"`...), entryDeadline...), `":`...)
	p = append(p, deadline...)
	p = append(append(append(p, `,"`...), entryFiredAt...), `":`...)
	p = strconv.AppendInt(p, tx.ms, 10)
	p = appendField(append(p, ','), entryRule, []byte(f.r.Name))
	return append(dst, id, append(p, '}'))
}

// appendField appends a member of a JSON object whose value is a string.
func appendField(b, name, s []byte) []byte {
	b = append(append(b, '"'), name...)
	if !utf8.Valid(s) {
		b = append(b, `-base64":"`...)
		return append(base64.StdEncoding.AppendEncode(b, s), '"')
	}
	b = append(b, `":"`...)
	for _, c := range s {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			const hex = "0123456789abcdef"
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// writeJob adds the job of an entry to the queue of a rule, in the selected database. Errors:
// ErrWrongType, ErrQueueFull, ErrFull.
func (tx *Tx) writeJob(r *rule, job [][]byte) error {
	_, q, err := tx.queue(r.key)
	if err != nil {
		return err
	}
	id := job[0]
	if q != nil {
		id = freeID(id, func(id []byte) bool { _, there := q.Find(id); return there })
	}
	_, _, err = tx.QueueAdd(r.key, &QueueAdd{ID: id, Payload: job[1], Due: tx.DeadlineAfter(r.Delay), Priority: r.Priority})
	return err
}

// freeID returns id, or, if that is taken, id with the first free number appended. O(log n) calls of taken
// for n taken ids.
func freeID(id []byte, taken func(id []byte) bool) []byte {
	if !taken(id) {
		return id
	}
	base := append(id[:len(id):len(id)], ':')
	with := func(n int64) []byte { return strconv.AppendInt(base[:len(base):len(base)], n, 10) }
	lo, hi := int64(1), int64(2) // lo is taken
	for taken(with(hi)) {
		lo, hi = hi, hi*2
	}
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; taken(with(mid)) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return with(hi)
}
