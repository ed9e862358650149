package command

import (
	"errors"
	"sort"
	"sync"
	"sync/atomic"
)

// view is what other goroutines may read of a session.
type view struct {
	last   atomic.Pointer[Spec]
	active atomic.Int64 // us of the last batch
	name   atomic.Pointer[string]
	lib    atomic.Pointer[[2]string] // LIB-NAME, LIB-VER
	user   atomic.Pointer[string]
	dbi    atomic.Int32
	multi  atomic.Int32 // commands queued, -1 outside MULTI
	watch  atomic.Int32
	flags  atomic.Uint32
}

// clients is the set of sessions, in the order in which they came.
type clients struct {
	mu   sync.Mutex // guards what follows
	next int64
	all  map[int64]*Session
}

func (r *clients) init() { r.all = map[int64]*Session{} }

// add gives a session its id.
func (r *clients) add(c *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	c.id = r.next
	r.all[c.id] = c
}

func (r *clients) remove(c *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, c.id)
}

// list returns the sessions that have connections, by id.
func (r *clients) list() []*Session {
	r.mu.Lock()
	var l []*Session
	for _, c := range r.all {
		if c.conn != nil {
			l = append(l, c)
		}
	}
	r.mu.Unlock()
	sort.Slice(l, func(i, j int) bool { return l[i].id < l[j].id })
	return l
}

// get returns a session by id, or nil.
func (r *clients) get(id int64) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[id]
}

func (r *clients) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// pause is CLIENT PAUSE: commands that wait until a time is up.
type pause struct {
	on atomic.Bool // the quick look

	mu      sync.Mutex // guards what follows
	until   int64      // us; 0: none
	all     bool       // reads as well
	waiting map[*Session]bool
	over    bool // the service closes
	stop    func()
}

// errPaused says that a command is to be dispatched again later.
var errPaused = errors.New("clients are paused")

func (p *pause) active() bool { return p.on.Load() }

// holds reports whether the pause stops this command now, and if so notes the
// session, to be woken at the end.
func (p *pause) holds(c *Session, spec *Spec) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until <= c.svc.DB.Clock().Micros() || c.conn == nil || p.over {
		return false
	}
	if !p.all && !spec.Has(Write) && !spec.Has(MayReplicate) || spec.Name == "client|unpause" || spec.Name == "client|pause" {
		return false
	}
	if p.waiting == nil {
		p.waiting = map[*Session]bool{}
	}
	p.waiting[c] = true
	return true
}

// forget takes a session that is gone off the list.
func (p *pause) forget(c *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, c)
}

// begin pauses until a time in us; a longer pause of the same kind stays.
func (p *pause) begin(until int64, all bool, after func(f func()) (stop func())) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = max(p.until, until)
	p.all = all
	p.on.Store(true)
	if p.stop != nil {
		p.stop()
	}
	p.stop = after(p.end)
}

// end wakes all who wait.
func (p *pause) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on.Store(false)
	p.until = 0
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	for c := range p.waiting {
		delete(p.waiting, c)
		c.conn.Wake()
	}
}
