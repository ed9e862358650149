package routing

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/resp"
)

// Probe runs the capability probe of a server once; its result is a C. A driver that opens
// its own client runs the probe at once. A driver over a client of the program runs it at
// the first use, and again until the server answers. The fields are set before the first
// use; the methods are safe for concurrent use.
type Probe[C any] struct {
	// Name begins the errors.
	Name string
	// Ask runs the commands of the probe.
	Ask func(ctx context.Context) (C, error)
	// Better reports whether a server with these capabilities must not be used as one with
	// the zero C, which callers may have assumed.
	Better func(c C) bool

	known atomic.Pointer[C] // nil: not known yet
	sure  atomic.Bool       // no caller still acts on an assumption

	mu      sync.Mutex    // guards what follows
	guessed bool          // a caller got the zero C before the server answered
	refused int           // calls, since the server has answered
	settle  *time.Timer   // since the first of them
	asking  chan struct{} // closed when the attempt that runs has ended; nil: none runs
	err     error         // of the last attempt
	quiet   *time.Timer   // since it failed
}

// ErrGuessed is the error of Known for a call that may be based on the zero C.
var ErrGuessed = errors.New("the server has just answered for the first time: repeat the call")

// probeTimeout limits the attempt of a caller that has no context. For the same time after
// a failed attempt, such callers get its error without another attempt, because an object
// calls several times for each of its operations.
const probeTimeout = time.Second

// The time after the first answer in which Known refuses calls, if callers have got the
// zero C before, and the most calls that it refuses. A caller acts on such a result within
// microseconds, and on a busy machine within milliseconds.
const (
	probeSettle = 50 * time.Millisecond
	probeRefuse = 64
)

// Guess returns the known capabilities. If there are none yet, it runs the probe for up to
// a second, and returns the zero C if the server does not answer.
func (p *Probe[C]) Guess(ctx context.Context) (c C) {
	if known := p.known.Load(); known != nil {
		return *known
	}
	if !p.failedJustNow() {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		_ = p.Run(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.known.Load(); known != nil {
		return *known
	}
	p.guessed = true
	return c
}

// failedJustNow reports whether an attempt has failed within probeTimeout.
func (p *Probe[C]) failedJustNow() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.quiet == nil {
		return false
	}
	select {
	case <-p.quiet.C:
		p.quiet = nil
		return false
	default:
		return true
	}
}

// Known makes sure, before a command is sent, that the probe has succeeded. A caller that
// got the zero C may have chosen scripts, another layout, or another kind of channel. It
// must not use them on a server that supports the better form, so Known refuses such calls
// with ErrGuessed.
func (p *Probe[C]) Known(ctx context.Context) error {
	if p.sure.Load() {
		return nil
	}
	if p.known.Load() == nil {
		if err := p.Run(ctx); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.guessed || !p.Better(*p.known.Load()) || p.settled() {
		p.sure.Store(true)
		return nil
	}
	p.refused++
	return ErrGuessed
}

// settled reports whether Known has refused enough calls. The caller holds mu.
func (p *Probe[C]) settled() bool {
	if p.settle == nil {
		p.settle = time.NewTimer(probeSettle)
	}
	if p.refused >= probeRefuse {
		return true
	}
	select {
	case <-p.settle.C:
		return true
	default:
		return false
	}
}

// Run runs the probe, or waits for the caller that runs it. If that caller's context ends
// first, the next caller runs it.
func (p *Probe[C]) Run(ctx context.Context) error {
	for {
		p.mu.Lock()
		done := p.asking
		if done == nil {
			done = make(chan struct{})
			p.asking = done
			p.mu.Unlock()
			return p.attempt(ctx, done)
		}
		p.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("%s: the first call: %w", p.Name, ctx.Err())
		}
		p.mu.Lock()
		err := p.err
		p.mu.Unlock()
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// attempt runs the probe once, and closes done at the end.
func (p *Probe[C]) attempt(ctx context.Context, done chan struct{}) error {
	c, err := p.Ask(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	close(done)
	p.asking, p.err = nil, err
	if p.quiet != nil {
		p.quiet.Stop()
	}
	if err == nil {
		p.known.Store(&c)
	} else {
		p.quiet = time.NewTimer(probeTimeout)
	}
	return err
}

// ProbeCommands are the commands whose presence shows the capabilities of a server, in the
// order of COMMAND INFO's reply.
var ProbeCommands = [...]string{ProbeHashFieldTTL: "HPEXPIRE", ProbeFunctions: "FCALL", ProbeShardedPubSub: "SSUBSCRIBE",
	ProbeNative: "LOCK.ACQUIRE"}

// The positions in ProbeCommands.
const (
	ProbeHashFieldTTL = iota
	ProbeFunctions
	ProbeShardedPubSub
	ProbeNative
)

// Handshake checks that a server answers, and requests the replies that driverutil.CapabilitiesOf
// reads: INFO server, which is "" if the user may not run it, and COMMAND INFO.
func Handshake(run func(words ...string) (resp.Value, error)) (info string, commands resp.Value, err error) {
	v, err := run("PING")
	if err == nil {
		err = v.Err()
	}
	if err != nil {
		return "", commands, err
	}
	if v, err = run("INFO", "server"); err != nil {
		return "", commands, err
	}
	if v.Err() == nil {
		info = v.Str
	}
	commands, err = run(append([]string{"COMMAND", "INFO"}, ProbeCommands[:]...)...)
	return info, commands, err
}
