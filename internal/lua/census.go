package lua

import (
	"math"
	"runtime"
	"runtime/metrics"
	"unsafe"
)

// heap counts the memory of values. All code that allocates for a program charges it. A
// census finds the memory that the garbage collector has freed since: it walks over all
// values that the program can reach. It runs when as many bytes have been charged as were
// reachable at the last census (or an eighth of the limit). So the walks cost a constant
// for each allocated byte.
type heap struct {
	state *State
	// since is the number of bytes charged since the last census, which found live bytes.
	// When since reaches threshold it is time for the next one.
	since, threshold, live int
	limit                  int // 0: none
	// refused is set when a charge fails, for callers that cannot return errors.
	refused bool
	epoch   uint32 // of the last census: what has it as mark was counted
	total   int    // what was charged up to the last census
	// collected is the number of bytes that the process's objects took when the garbage
	// collector had last run, as far as a census has seen.
	collected uint64
	recent    [recentStrings]recent
}

// recent is a string that the census has counted.
type recent struct {
	p unsafe.Pointer
	n int
}

func (h *heap) init(s *State) { h.state, h.threshold = s, math.MaxInt }

func (h *heap) setLimit(bytes int) {
	h.limit = bytes
	h.schedule()
}

// schedule sets the threshold. That is at least a sixteenth of the limit, however
// little is left, so that a program cannot make each allocation cost a census.
func (h *heap) schedule() {
	h.threshold = math.MaxInt
	if h.limit > 0 {
		h.threshold = max(h.limit/16, min(max(h.live, h.limit/8), h.limit-h.live))
	}
}

// charge counts n bytes. The error is errMemory; the bytes were counted all the
// same, until the next census.
func (h *heap) charge(n int) error {
	if h.since += n; h.since < h.threshold {
		return nil
	}
	return h.settle(n)
}

// settle runs the census that is due because of n more bytes.
func (h *heap) settle(n int) error {
	before := h.since
	if err := h.census(); err != nil {
		return err
	}
	h.total += before
	h.collect()
	if h.live+n > h.limit {
		h.since = 0
		h.refused = true
		h.schedule()
		return errMemory
	}
	h.since = n
	h.schedule()
	// The walk takes time, and the program must pay for it with steps.
	return h.state.Spend(min(before, h.live) / 256)
}

// Live returns the bytes of the State's values, with those that the program has released
// since the last census.
func (s *State) Live() int { return s.heap.live + s.heap.since }

// Charged returns how many bytes were charged since the State was made.
func (s *State) Charged() int { return s.heap.total + s.heap.since }

// objectBytes names the metric of the bytes of the process's objects, with garbage.
var objectBytes = "/memory/classes/heap/objects:bytes"

// collect makes the garbage collector run when the process has allocated half the limit
// since its last run. With Go's default pace, the garbage could become as large as all
// live memory of the process.
func (h *heap) collect() {
	sample := []metrics.Sample{{Name: objectBytes}}
	metrics.Read(sample)
	now := sample[0].Value.Uint64()
	if now > h.collected+uint64(h.limit)/2 {
		runtime.GC()
		metrics.Read(sample)
		now = sample[0].Value.Uint64()
	} else if now > h.collected {
		return
	}
	h.collected = now
}

// census counts what is reachable. An error of the interrupt function ends it.
func (h *heap) census() error {
	s := h.state
	h.epoch++
	clear(h.recent[:])
	w := walk{state: s, epoch: h.epoch, recent: &h.recent, seen: map[unsafe.Pointer]int{}}
	w.table(s.globals)
	w.table(s.registry)
	if s.strings != nil {
		w.table(s.strings)
	}
	w.thread(s.main)
	w.thread(s.current)
	if err := w.drain(); err != nil {
		return err
	}
	h.live = w.bytes + s.concat.size() + cap(s.scratch)
	h.since = 0
	return nil
}

// walk is the state of a census.
type walk struct {
	state *State
	epoch uint32
	bytes int
	steps int // since the last tick: values that were looked at
	// The values that were counted, but whose contents were not.
	tables   []*Table
	closures []*Closure
	threads  []*Thread
	// seen holds prototypes, and the longer strings by their address with the
	// length that was counted: one string is a value in many places, and the
	// beginnings of one that has grown share its bytes. Of strings of medium
	// length only those are known that were counted lately: a million of them
	// would take more memory here than they do themselves.
	seen   map[unsafe.Pointer]int
	recent *[recentStrings]recent
}

const (
	// sharedString is the length from which strings are told apart. Shorter ones
	// are counted wherever they are.
	sharedString = 64
	// seenString is the length from which all of them are.
	seenString = 1024
	// recentStrings is the number of those between that are known.
	recentStrings = 4096
	// walkTick is the number of values that are counted between two ticks, in some 200 us.
	walkTick = 1 << 15
)

func (w *walk) value(v Value) {
	switch v.w >> tagShift {
	case tagString:
		if v.w >= minNumber {
			return
		}
		n := v.length()
		switch {
		case n >= seenString:
			counted := w.seen[v.p]
			if counted >= n {
				return
			}
			w.seen[v.p] = n
			n -= counted
		case n >= sharedString:
			at := &w.recent[uintptr(v.p)>>4%recentStrings]
			if at.p == v.p && at.n >= n {
				return
			}
			*at = recent{v.p, n}
		}
		w.bytes += n
	case tagTable:
		w.table(v.table())
	case tagClosure:
		w.closure(v.closure())
	case tagBuiltin:
		b := v.builtin()
		if b.mark != w.epoch {
			b.mark = w.epoch
			w.bytes += int(unsafe.Sizeof(*b))
			w.value(b.Held)
		}
	case tagThread:
		w.thread(v.thread())
	}
}

func (w *walk) table(t *Table) {
	if t.mark != w.epoch {
		t.mark = w.epoch
		w.bytes += t.size()
		w.tables = append(w.tables, t)
	}
}

func (w *walk) closure(f *Closure) {
	if f.mark != w.epoch {
		f.mark = w.epoch
		w.bytes += closureBytes + 8*len(f.upvalues)
		w.closures = append(w.closures, f)
	}
}

func (w *walk) thread(t *Thread) {
	if t.mark != w.epoch {
		t.mark = w.epoch
		w.bytes += threadBytes + len(t.stack)*valueBytes + t.frames*frameBytes
		w.threads = append(w.threads, t)
	}
}

// drain counts the contents of counted values until it finds no new value.
func (w *walk) drain() error {
	for {
		if w.steps++; w.steps >= walkTick {
			w.steps = 0
			if err := w.state.tick(); err != nil {
				return err
			}
		}
		switch {
		case len(w.tables) > 0:
			t := w.tables[len(w.tables)-1]
			w.tables = w.tables[:len(w.tables)-1]
			if t.meta != nil {
				w.table(t.meta)
			}
			t.references(w.value)
			w.steps += (t.size() - tableSize) / valueSize
		case len(w.closures) > 0:
			f := w.closures[len(w.closures)-1]
			w.closures = w.closures[:len(w.closures)-1]
			w.table(f.env)
			if p := unsafe.Pointer(f.proto); w.seen[p] == 0 {
				w.seen[p] = 1
				w.bytes += f.proto.size
			}
			for _, u := range f.upvalues {
				if u != nil && u.marked != w.epoch {
					u.marked = w.epoch
					w.bytes += upvalueBytes
					w.value(*u.p)
				}
			}
		case len(w.threads) > 0:
			t := w.threads[len(w.threads)-1]
			w.threads = w.threads[:len(w.threads)-1]
			w.stack(t)
		default:
			return nil
		}
	}
}

// stack looks at the part of a thread's stack that is in use, and clears the
// rest, which would keep alive what is not counted.
func (w *walk) stack(t *Thread) {
	end := max(t.top, t.kept, t.freeTop())
	for ci := t.ci; ci != &t.root; ci = ci.prev {
		if ci.closure != nil {
			w.closure(ci.closure)
			end = max(end, ci.base+ci.closure.proto.Registers)
		}
	}
	if t.body != nil {
		w.closure(t.body)
	}
	end = min(end, len(t.stack))
	for _, v := range t.stack[:end] {
		w.value(v)
	}
	clear(t.stack[end:])
}
