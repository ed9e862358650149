package session

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/command"
)

// pause implements CLIENT PAUSE: it holds the commands that wait until the pause ends.
type pause struct {
	svc *Service
	on  atomic.Bool // for the fast check of dispatch

	mu       sync.Mutex // guards the fields below
	until    int64      // us since 1970; 0: no pause
	all      bool       // reads wait as well
	waiting  map[*Session]bool
	over     bool // the service closes
	held     bool // writes wait independently of the time: FAILOVER
	still    bool // no pause, but expiration and eviction are suspended: SetGroupWritable
	timer    *time.Timer
	ended    chan struct{} // closed at the end of the pause; nil: no link waits for it
	deferred []func()      // the deferred work of waiters that have left their lines
}

// errPaused is returned for a command that must be dispatched again later.
var errPaused = errors.New("clients are paused")

// errHeldBack is the reply to a write of a console user. Such a session has no connection that could wait:
// the console answers the request, and its user tries again.
var errHeldBack = command.ReplyError("PAUSED writes wait for the end of CLIENT PAUSE or FAILOVER, and the " +
	"console does not: try again later")

func (p *pause) active() bool { return p.on.Load() }

// holds returns errPaused if the pause stops this command now, otherwise nil. It records the session, and the
// end of the pause wakes it. The program's own commands continue. A console user may read even if all clients
// wait, and gets errHeldBack for a write.
func (p *pause) holds(c *Session, spec *command.Spec, args [][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	timed, guest := p.until > p.svc.steady(), c.conn == nil && c.origin != nil
	if !timed && !p.held || c.conn == nil && !guest || p.over {
		return nil
	}
	writes := c.effectiveFlags(spec, args)&(command.Write|command.MayReplicate) != 0
	switch {
	case guest && writes:
		return errHeldBack
	case guest, !writes && !(timed && p.all), spec.Name == "client|unpause", spec.Name == "client|pause":
		return nil
	}
	if p.waiting == nil {
		p.waiting = map[*Session]bool{}
	}
	p.waiting[c] = true
	if c.peerGone.Load() { // the client left while another command waited
		delete(p.waiting, c)
		c.conn.Kill(io.EOF)
	}
	return errPaused
}

// leave closes the connection of a session that waits for the end of the pause, because its client has left:
// the command must not run later.
func (p *pause) leave(c *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waiting[c] {
		delete(p.waiting, c)
		c.conn.Kill(io.EOF)
	}
}

// count returns the number of clients that wait for the end of the pause.
func (p *pause) count() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(len(p.waiting))
}

// forget removes a session that has ended from the list.
func (p *pause) forget(c *Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, c)
}

// defers reports whether the pause is active. If so, the end of the pause calls do, in the background: a
// waiter that has left its lines changes data, or lets others change data.
func (p *pause) defers(do func()) bool {
	if !p.active() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.active() || p.over {
		return false
	}
	p.deferred = append(p.deferred, do)
	return true
}

// relook calls what the pause has deferred, if it is over. The caller holds mu.
func (p *pause) relook() {
	if len(p.deferred) == 0 || p.active() {
		return
	}
	all := p.deferred
	if p.deferred = nil; p.over {
		return
	}
	p.svc.background.Go(func() {
		for _, do := range all {
			do()
		}
	})
}

// begin starts a pause of some milliseconds. A current pause that is longer or stricter stays in force.
func (p *pause) begin(ms int64, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.svc.steady()
	if p.until > now {
		all = all || p.all
	}
	until := int64(math.MaxInt64)
	if ms < (math.MaxInt64-now)/1000 {
		until = now + ms*1000
	}
	p.until, p.all = max(p.until, until), all
	p.set(true)
	if p.timer != nil {
		p.timer.Stop()
	}
	// The timer waits one tick longer, so that the pause is over by the clock too.
	wait := time.Duration(math.MaxInt64)
	if us := p.until - now; us < math.MaxInt64/2000 {
		wait = time.Duration(us+1000) * time.Microsecond
	}
	p.timer = time.AfterFunc(wait, p.timeUp)
}

// timeUp ends the pause if it was not prolonged meanwhile. If the clock is behind, it checks again later.
func (p *pause) timeUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.until - p.svc.steady(); left > 0 && p.timer != nil {
		p.timer.Reset(time.Duration(min(left, 1e6)+1000) * time.Microsecond)
		return
	}
	p.release()
}

// state returns the reason for the pause, the paused actions, and the remaining ms, as INFO shows them.
func (p *pause) state() (reason, actions string, ms int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.until - p.svc.steady()
	switch {
	case p.held:
		return "failover_in_progress", "write", max(left, 0) / 1000
	case left <= 0 || p.over:
		return "none", "none", 0
	case p.all:
		return "client_pause", "all", left / 1000
	}
	return "client_pause", "write", left / 1000
}

// end wakes all waiting sessions.
func (p *pause) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release()
}

// close ends the pause and allows no further one.
func (p *pause) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.release()
}

// set records whether a pause is active. During a pause the engine expires and evicts nothing, as
// in Redis, so that the data does not change.
func (p *pause) set(on bool) {
	p.on.Store(on)
	p.svc.DB.SetStill((on || p.still) && !p.over)
}

// keepStill makes the engine expire and evict nothing, as in a pause, although no client waits.
func (p *pause) keepStill(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.still = on
	p.set(p.on.Load())
}

// await waits until the pause permits the stream of a master, which counts as a write. It returns an error
// when ctx ends.
func (p *pause) await(ctx context.Context) error {
	for p.active() {
		p.mu.Lock()
		if p.over || p.until <= p.svc.steady() {
			p.mu.Unlock()
			return nil
		}
		if p.ended == nil {
			p.ended = make(chan struct{})
		}
		ended := p.ended
		p.mu.Unlock()
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (p *pause) release() {
	p.set(p.held && !p.over)
	if p.ended != nil {
		close(p.ended)
		p.ended = nil
	}
	p.until, p.all = 0, false
	p.relook()
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	for c := range p.waiting {
		delete(p.waiting, c)
		c.conn.Wake()
	}
}

// handOver makes writes wait, or lets them continue, for FAILOVER. It is independent of CLIENT PAUSE.
func (p *pause) handOver(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = on
	if on {
		p.set(true)
		return
	}
	p.set(p.until > p.svc.steady())
	p.relook()
	for c := range p.waiting {
		delete(p.waiting, c)
		c.conn.Wake()
	}
}

// Pause suspends the clients for some ms: all their commands, or only writes. If there are two pauses, the
// later end and the stricter mode apply.
func (s *Service) Pause(ms int64, all bool) { s.pause.begin(ms, all) }

// Unpause ends a Pause.
func (s *Service) Unpause() { s.pause.end() }
