// Package hotkeys finds the keys that clients use most, from a sample of their commands.
//
//	dispatch ──Sample──▶ one command in N ──Note──▶ live window (calls) ──when it is over──▶ last window
//	                                           └──▶ collection (CPU time, bytes), between Start and Stop
//
// There are two ways to ask, for the clients of two servers. The windows count calls while the
// configuration or a viewer wants them; Last returns the keys of the latest that has ended. A collection
// adds up the time and the bytes of commands by key, from Start on. Both keep their keys in sketches of
// internal/topk: 128 keys, with a bound for the error of each.
//
// Nothing is sampled and nothing is held while neither is on. Time is an argument, in us since 1970.
// Start reading at Tracker.Note.
package hotkeys

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/topk"
)

// MaxKeys is the greatest number of keys that a sketch has.
const MaxKeys = topk.Size

var (
	// ErrActive: a collection is under way.
	ErrActive = errors.New("a collection of hot keys is under way")
	// ErrOff: the windows are off.
	ErrOff = errors.New("the windows of hot keys are off")
)

// Config configures the windows.
type Config struct {
	Keys    int   // the number of keys that Last returns at most, up to MaxKeys; 0: the windows are off
	Span    int64 // the length of a window, us
	Percent int   // the part of commands that is sampled, 1 to 100
}

// Options configures a collection.
type Options struct {
	CPU, Net bool  // what to add up by key
	Keys     int   // the number of keys of each list, up to MaxKeys
	Ratio    int   // of this number of commands one is sampled
	Span     int64 // the time after which the collection stops by itself, us; 0: never
	Slots    []int // the hash slots whose keys count, for the report; Counts decides
	Counts   func(key []byte) bool
	// Sys and User are the CPU times of the process at the start, for the report.
	Sys, User time.Duration
}

// Access is the use of a key by a command.
type Access struct {
	DB  int
	Key []byte
}

// Hot is a key of a window.
type Hot struct {
	DB    int
	Key   []byte
	QPS   float64 // calls a second, estimated; too high by the chance of the sample alone
	Error float64 // by which the sketch may make QPS too low
}

// Window has the counts of the last window that has ended.
type Window struct {
	Keys  []Hot   // most calls first
	Total float64 // calls with keys a second, estimated
	Span  int64   // us
}

// Cost is a key of a collection with what it cost.
type Cost struct {
	DB  int
	Key []byte
	Sum int64 // us or bytes
}

// Report is the result of a collection. Sums are those of the sampled commands times Ratio.
type Report struct {
	Options
	Active         bool
	Started        int64 // us since 1970
	Took           int64 // us
	Micros, Bytes  int64 // of all commands with keys
	ByCPU, ByBytes []Cost
}

// Tracker finds hot keys. Its methods are safe for concurrent use. New returns one.
type Tracker struct {
	// The windows and the collection sample one command of this number; 0: none.
	calls, costs atomic.Uint32

	switched func(on bool) // is called with mu held when the first sampling begins and the last one ends
	seed     maphash.Seed

	mu      sync.Mutex // guards the fields below
	config  Config
	watched int64 // a viewer wants the windows up to this instant
	live    *topk.Sketch
	total   uint64 // sampled calls with keys in the live window
	began   int64  // of the live window
	last    Window
	run     *collection // nil before Start and after Reset
	buf     []byte
}

// collection is one between Start and Reset.
type collection struct {
	Options
	started, stopped int64 // us since 1970; stopped is 0 while it is active
	cpu, net         topk.Sketch
	micros, bytes    int64
}

// New returns a Tracker. It calls switched when sampling begins and when it ends.
func New(switched func(on bool)) *Tracker {
	return &Tracker{switched: switched, seed: maphash.MakeSeed()}
}

// Wanted says for what a command is sampled. The zero Wanted says for nothing.
type Wanted uint8

const (
	forCalls Wanted = 1 << iota
	forCosts
)

// Sample decides whether a command is sampled, by chance. It costs some ns, and takes no lock.
func (t *Tracker) Sample() (w Wanted) {
	if n := t.calls.Load(); n != 0 && (n == 1 || rand.Uint32N(n) == 0) {
		w |= forCalls
	}
	if n := t.costs.Load(); n != 0 && (n == 1 || rand.Uint32N(n) == 0) {
		w |= forCosts
	}
	return w
}

// Timed reports whether Note needs the time of the command.
func (w Wanted) Timed() bool { return w&forCosts != 0 }

// Note counts a sampled command for each of its keys. It keeps copies of the keys. O(keys).
func (t *Tracker) Note(w Wanted, now int64, used []Access, micros, bytes int64) {
	if len(used) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(now)
	if w&forCalls != 0 && t.live != nil {
		t.total++
		for _, a := range used {
			h, key := t.named(a)
			t.live.Add(h, key, 1, now)
		}
	}
	if c := t.run; w&forCosts != 0 && c != nil && c.stopped == 0 {
		c.micros += micros
		c.bytes += bytes
		for _, a := range used {
			if c.Counts != nil && !c.Counts(a.Key) {
				continue
			}
			h, key := t.named(a)
			if c.CPU {
				c.cpu.Add(h, key, uint64(max(micros, 1)), now)
			}
			if c.Net {
				c.net.Add(h, key, uint64(max(bytes, 1)), now)
			}
		}
	}
}

// dbBytes is the length of the database's number in the key of a sketch.
const dbBytes = 4

// named returns the key of a sketch and its hash. The key is valid until the next call.
func (t *Tracker) named(a Access) (uint64, []byte) {
	t.buf = append(binary.BigEndian.AppendUint32(t.buf[:0], uint32(a.DB)), a.Key...)
	return maphash.Bytes(t.seed, t.buf), t.buf
}

func unnamed(key []byte) (db int, name []byte) {
	return int(binary.BigEndian.Uint32(key)), bytes.Clone(key[dbBytes:])
}

// settle does what the time brings: it ends the live window, the interest of viewers, and a collection.
func (t *Tracker) settle(now int64) {
	if c := t.run; c != nil && c.stopped == 0 && c.Span > 0 && now-c.started >= c.Span {
		c.stopped = c.started + c.Span
		t.tune()
	}
	if t.live == nil {
		return
	}
	if t.watched != 0 && now > t.watched {
		t.watched = 0
		t.tune()
		if t.live == nil {
			return
		}
	}
	if span := now - t.began; span >= t.config.Span || span < 0 {
		t.last = t.frozen(span)
		*t.live, t.total, t.began = topk.Sketch{}, 0, now
	}
}

// frozen returns the live window, which has lasted span us.
func (t *Tracker) frozen(span int64) Window {
	if span <= 0 {
		return Window{} // the clock went back
	}
	per := float64(t.calls.Load()) * 1e6 / float64(span)
	w := Window{Total: float64(t.total) * per, Span: span}
	t.live.Each(func(r topk.Row) {
		db, key := unnamed(r.Key)
		w.Keys = append(w.Keys, Hot{DB: db, Key: key, QPS: float64(r.Count-r.Error) * per, Error: float64(r.Error) * per})
	})
	slices.SortFunc(w.Keys, func(a, b Hot) int {
		return cmp.Or(cmp.Compare(b.QPS, a.QPS), cmp.Compare(a.Error, b.Error), cmp.Compare(a.DB, b.DB), bytes.Compare(a.Key, b.Key))
	})
	return w
}

// tune sets what Sample does, and makes or drops the windows.
func (t *Tracker) tune() {
	was := t.calls.Load()|t.costs.Load() != 0
	calls, costs := uint32(0), uint32(0)
	if t.config.Keys > 0 || t.watched != 0 {
		calls = uint32(100 / max(t.config.Percent, 1))
		if t.live == nil {
			t.live = new(topk.Sketch)
		}
	} else {
		t.live, t.last, t.total = nil, Window{}, 0
	}
	if t.run != nil && t.run.stopped == 0 {
		costs = uint32(t.run.Ratio)
	}
	t.calls.Store(calls)
	t.costs.Store(costs)
	if on := calls|costs != 0; on != was {
		t.switched(on)
	}
}

// Configure sets the configuration. A window under way goes on, unless its length or its part of the
// commands changes.
func (t *Tracker) Configure(c Config, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := t.live == nil || c.Span != t.config.Span || c.Percent != t.config.Percent
	t.config = c
	t.tune()
	if fresh && t.live != nil {
		*t.live, t.total, t.began = topk.Sketch{}, 0, now
	}
}

// Watch keeps the windows on up to an instant, whatever the configuration says: a viewer looks.
func (t *Tracker) Watch(until, now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	off := t.live == nil
	t.watched = max(t.watched, until)
	t.tune()
	if off {
		t.began = now
	}
}

// Last returns the latest window that has ended, with at most n keys, fewer if the configuration says so and no
// viewer looks. Errors: ErrOff.
func (t *Tracker) Last(n int, now int64) (Window, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(now)
	if t.live == nil {
		return Window{}, ErrOff
	}
	w := t.last
	w.Keys = slices.Clone(w.Keys[:min(n, len(w.Keys))])
	return w, nil
}

// Keys returns the number of keys that the configuration allows; 0: the windows are off.
func (t *Tracker) Keys() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.config.Keys
}

// Start begins a collection, and forgets the one before. Errors: ErrActive.
func (t *Tracker) Start(o Options, now int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(now)
	if t.run != nil && t.run.stopped == 0 {
		return ErrActive
	}
	t.run = &collection{Options: o, started: now}
	t.tune()
	return nil
}

// Stop ends a collection, which keeps what it has found. It reports whether one was under way.
func (t *Tracker) Stop(now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(now)
	if t.run == nil || t.run.stopped != 0 {
		return false
	}
	t.run.stopped = now
	t.tune()
	return true
}

// Reset forgets the collection and what the windows have counted. Errors: ErrActive, and nothing is
// forgotten.
func (t *Tracker) Reset(now int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(now)
	if t.run != nil && t.run.stopped == 0 {
		return ErrActive
	}
	t.run = nil
	t.clear(now)
	return nil
}

// Clear forgets what the windows have counted.
func (t *Tracker) Clear(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear(now)
}

func (t *Tracker) clear(now int64) {
	t.last = Window{}
	if t.live != nil {
		*t.live, t.total, t.began = topk.Sketch{}, 0, now
	}
}

// Report returns what the collection has found; ok is false if there is none.
func (t *Tracker) Report(now int64) (r Report, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settle(now)
	c := t.run
	if c == nil {
		return r, false
	}
	ratio := int64(c.Ratio)
	r = Report{Options: c.Options, Active: c.stopped == 0, Started: c.started, Micros: c.micros * ratio, Bytes: c.bytes * ratio}
	r.Took = now - c.started
	if !r.Active {
		r.Took = c.stopped - c.started
	}
	r.ByCPU, r.ByBytes = costs(&c.cpu, c.Keys, ratio), costs(&c.net, c.Keys, ratio)
	return r, true
}

// costs returns the keys of a sketch, most costs first.
func costs(s *topk.Sketch, n int, ratio int64) (all []Cost) {
	s.Each(func(r topk.Row) {
		db, key := unnamed(r.Key)
		all = append(all, Cost{DB: db, Key: key, Sum: int64(r.Count) * ratio})
	})
	slices.SortFunc(all, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(b.Sum, a.Sum), cmp.Compare(a.DB, b.DB), bytes.Compare(a.Key, b.Key))
	})
	return all[:min(n, len(all))]
}
