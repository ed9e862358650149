package console

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
)

const (
	// walkSlice is the time for which a walk works before it pauses. The pause is walkRest times as long as the
	// slice took: a walk uses about a tenth of a core. If a slice took walkLongest or more, the clock was
	// stepped or the machine stood still.
	walkSlice   = 2 * time.Millisecond
	walkRest    = 11
	walkLongest = 50 * time.Millisecond
	// walkStep is the number of keys that a walk examines under the lock of a shard, some 20 us.
	walkStep = 128
	// walkSteps is the limit of steps of a slice. It also ends a slice on a clock that stands still, as in
	// tests.
	walkSteps = 160
	// walkTries is the number of attempts to lock a shard that others hold, before the walk pauses.
	walkTries = 20
	// walkPrefixes is the limit of prefixes that a walk counts; the keys of others count under "".
	walkPrefixes = 20_000
	// walkRows is the limit of rows in an answer: the rows with the most bytes.
	walkRows = 1000
	// walkBig is the number of biggest keys that a walk keeps.
	walkBig = 50
)

// walkBounds are the upper bounds, in ms, of the remaining times that a walk distinguishes. The count of keys
// without a deadline comes before them, and the count of all later deadlines after them.
var walkBounds = [...]int64{60_000, 3_600_000, 86_400_000, 30 * 86_400_000}

// walkOrder is the request for a walk.
type walkOrder struct {
	DB    int64  `json:"db"`
	Kind  string `json:"kind"`
	Sep   string `json:"sep"`
	Depth int    `json:"depth"`
	Match string `json:"match"`
}

// walk is a background run over all keys of a database, as the user who has started it.
type walk struct {
	walkOrder
	id    string
	v     *viewer
	total int64
	began int64 // ms
	end   context.CancelFunc

	mu     sync.Mutex // guards the fields below; the walk holds it for one walkStep
	looked int64
	took   int64
	done   bool
	err    string
	rows   map[string]*walkRow
	all    walkSum
	big    []bigRow // biggest first
}

// walkSum counts keys.
type walkSum struct {
	Keys     int64    `json:"keys"`
	Bytes    int64    `json:"bytes"`
	BytesTTL int64    `json:"bytesTTL"` // of keys with a deadline
	TTL      [6]int64 `json:"ttl"`
	types    [engine.Bloom + 1]int64
}

// walkRow is a prefix and its keys.
type walkRow struct {
	P blob `json:"p"`
	walkCount
}

// walkCount is a walkSum for a page.
type walkCount struct {
	walkSum
	Types map[string]int64 `json:"types"`
}

// bigRow is one of the biggest keys.
type bigRow struct {
	K     blob   `json:"k"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
	TTL   int64  `json:"pttl"`
}

// walks holds the last walk. There is one at a time.
type walks struct {
	mu   sync.Mutex
	last *walk
	next int64
}

// walkState is the progress of a walk.
type walkState struct {
	ID     string  `json:"id"`
	Kind   string  `json:"kind"`
	Done   float64 `json:"done"`
	Over   bool    `json:"over"`
	Looked int64   `json:"looked"`
	Total  int64   `json:"total"`
	Took   int64   `json:"took"` // ms
	Error  string  `json:"error,omitempty"`
}

// state returns the progress of the walk. The caller holds w.mu.
func (w *walk) state(now int64) walkState {
	s := walkState{ID: w.id, Kind: w.Kind, Done: 1, Over: w.done, Looked: w.looked, Total: w.total, Took: w.took, Error: w.err}
	if !w.done {
		s.Done = min(0.99, float64(w.looked)/float64(max(1, w.total)))
		s.Took = now - w.began
	}
	return s
}

// over reports whether the walk has ended.
func (w *walk) over() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.done
}

// walkVisitor examines the keys of a slice, under the user's current rules.
type walkVisitor struct {
	w        *walk
	n        int
	may      func(key []byte) bool
	sep      []byte
	match    func(key []byte) bool // nil: all
	ttl      bool                  // the user may see TTLs
	usage    bool
	kind     bool
	sequence *walkRow // the row of the previous key
	prefix   []byte   // its prefix
}

// key counts a key. The engine holds its shard's lock.
func (v *walkVisitor) key(k engine.Key) {
	v.n++
	name := k.Name()
	if v.match != nil && !v.match(name) || !v.may(name) {
		return
	}
	p := prefixOf(name, v.sep, v.w.Depth)
	r := v.sequence
	if r == nil || !bytes.Equal(p, v.prefix) {
		r = v.w.row(p)
		v.sequence, v.prefix = r, append(v.prefix[:0], p...)
	}
	ttl, at, size := int64(engine.NoDeadline), -1, int64(0)
	if v.ttl {
		at = 0
		if ttl = k.TTL(); ttl >= 0 {
			for at = 1; at <= len(walkBounds) && ttl >= walkBounds[at-1]; at++ {
			}
		}
	}
	if v.usage {
		size = k.MemoryUsage()
	}
	for _, s := range [...]*walkSum{&r.walkSum, &v.w.all} {
		s.Keys++
		s.Bytes += size
		if ttl >= 0 {
			s.BytesTTL += size
		}
		if at >= 0 {
			s.TTL[at]++
		}
		if v.kind {
			s.types[k.Kind()]++
		}
	}
	if big := v.w.big; v.usage && (len(big) < walkBig || big[len(big)-1].Bytes < size) {
		kind := ""
		if v.kind {
			kind = k.Kind().String()
		}
		v.w.keepBig(bigRow{bytesOf(string(name)), kind, size, ttl})
	}
}

// prefixOf returns a name up to and including its depth-th separator, or the last one if it has fewer.
func prefixOf(name, sep []byte, depth int) []byte {
	at := 0
	for range depth {
		i := bytes.Index(name[at:], sep)
		if i < 0 {
			break
		}
		at += i + len(sep)
	}
	return name[:at]
}

// row returns the row of a prefix. Prefixes beyond walkPrefixes share the row "".
func (w *walk) row(prefix []byte) *walkRow {
	if r := w.rows[string(prefix)]; r != nil {
		return r
	}
	if len(w.rows) >= walkPrefixes {
		prefix = nil
	}
	r := w.rows[string(prefix)]
	if r == nil {
		r = &walkRow{P: bytesOf(string(prefix))}
		w.rows[r.P.s] = r
	}
	return r
}

// add adds the counts of another sum.
func (s *walkSum) add(x *walkSum) {
	s.Keys += x.Keys
	s.Bytes += x.Bytes
	s.BytesTTL += x.BytesTTL
	for i, n := range x.TTL {
		s.TTL[i] += n
	}
	for i, n := range x.types {
		s.types[i] += n
	}
}

// count returns the sum for a page.
func (s *walkSum) count() walkCount {
	c := walkCount{*s, map[string]int64{}}
	for kind, n := range s.types {
		if n > 0 {
			c.Types[engine.Kind(kind).String()] = n
		}
	}
	return c
}

// keepBig keeps a key if it is one of the biggest.
func (w *walk) keepBig(row bigRow) {
	at, _ := slices.BinarySearchFunc(w.big, row.Bytes, func(b bigRow, bytes int64) int { return int(min(1, max(-1, bytes-b.Bytes))) })
	w.big = slices.Insert(w.big, at, row)
	w.big = w.big[:min(len(w.big), walkBig)]
}
