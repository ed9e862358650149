package console

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A viewer's stream ends and is opened again: its tab was hidden, its screen has other topics, or the network
// failed. The next stream names the last event that the page has received, and continues with the expirations
// after it. So the server remembers, for each stream, which event reported which entry of a rule's stream.

const (
	// maxEndedTrails is the number of ended streams whose trails the console remembers. trailSteps is the number
	// of events of each, about 100 bytes.
	maxEndedTrails = 64
	trailSteps     = 256
)

// source is a stream into which expiry rules write.
type source struct {
	db   int
	name string
}

// mark is a position in a source: the last entry that was sent, and the number of entries that the rules had
// written until then.
type mark struct {
	id    string
	fired int64
}

// trail has the position of a stream at each of its events.
type trail struct {
	user string
	id   uint32
	live bool // the stream has not ended; guarded by trails.mu

	mu    sync.Mutex // guards the fields below
	from  map[source]mark
	after uint32 // the number of the event after which steps begin
	steps []step
}

// step is an event about an expiration.
type step struct {
	seq uint32
	at  source
	to  mark
}

// number returns an event's number, which is unique among all streams.
func (t *trail) number(seq uint32) uint64 { return uint64(t.id)<<32 | uint64(seq) }

// start stores the position at which the stream begins to read a source.
func (t *trail) start(at source, m mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.from[at] = m
}

// record records that an event was about an entry.
func (t *trail) record(seq uint32, at source, m mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.steps) == trailSteps {
		old := t.steps[0]
		t.from[old.at], t.after = old.to, old.seq
		t.steps = append(t.steps[:0], t.steps[1:]...)
	}
	t.steps = append(t.steps, step{seq, at, m})
}

// marks returns the position in each source after an event; ok is false if the trail no longer has it.
func (t *trail) marks(seq uint32) (all map[source]mark, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seq < t.after {
		return nil, false
	}
	all = maps.Clone(t.from)
	for _, s := range t.steps {
		if s.seq > seq {
			break
		}
		all[s.at] = s.to
	}
	return all, true
}

// trails holds the trails of the latest streams. The zero value is empty.
type trails struct {
	mu   sync.Mutex // guards all
	next uint32
	all  []*trail // the oldest first: the open streams' trails, and maxEndedTrails of ended streams
}

// newTrail returns a new stream's trail, and the trail of the previous stream if the server still knows its
// position. last is the id of the last event that the page has received.
func (x *trails) newTrail(user, epoch, last string) (t, from *trail) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.next++
	t = &trail{user: user, id: x.next, live: true, from: map[source]mark{}}
	if name, number, ok := strings.Cut(last, "-"); ok && name == epoch {
		n, err := strconv.ParseUint(number, 10, 64)
		for i := len(x.all) - 1; i >= 0 && err == nil && from == nil; i-- {
			if old := x.all[i]; old.id == uint32(n>>32) && old.user == user {
				if marks, ok := old.marks(uint32(n)); ok {
					from, t.from = old, marks
				}
			}
		}
	}
	x.all = append(x.all, t)
	return t, from
}

// close records that the stream of a trail has ended.
func (x *trails) close(t *trail) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t.live = false
	ended := 0
	for _, t := range x.all {
		if !t.live {
			ended++
		}
	}
	if ended > maxEndedTrails {
		oldest := slices.IndexFunc(x.all, func(t *trail) bool { return !t.live })
		x.all = slices.Delete(x.all, oldest, oldest+1)
	}
}

// mark returns the position in a source at the beginning of the trail.
func (t *trail) mark(at source) (m mark, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m, ok = t.from[at]
	return m, ok
}

// tail is the position of a console's stream in the expiry rules' streams of a database.
type tail struct {
	at    map[string]*mark // by the name of the rules' stream
	older bool             // one of them continues where an earlier stream ended
}
