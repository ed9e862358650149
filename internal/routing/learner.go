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

// Learner finds out once what a server is, as a C. A door that opens does at once; one
// over a client that was there is asked at the first use, and again until the server
// answers. Its fields are set before it is used; its methods are safe for all.
type Learner[C any] struct {
	// Door begins the errors.
	Door string
	// Ask asks the server.
	Ask func(ctx context.Context) (C, error)
	// Better reports whether a server that was guessed to be the zero C must not be
	// used as one.
	Better func(c C) bool

	known atomic.Pointer[C] // nil: not known yet
	sure  atomic.Bool       // nobody acts on a guess any more

	mu      sync.Mutex    // guards what follows
	guessed bool          // somebody was told that nothing is known
	refused int           // calls, since the server has answered
	settle  *time.Timer   // since the first of them
	asking  chan struct{} // closed when the attempt that runs has ended; nil: none runs
	err     error         // of the last attempt
	quiet   *time.Timer   // since it failed
}

// ErrGuessed is what Known refuses calls with that may be made on a guess.
var ErrGuessed = errors.New("it has answered for the first time just now: try again")

// learnWithin bounds the attempt of a caller that has no context, and is how long such
// callers are told, without another, what the last attempt came to: an object asks
// several times for each of its calls.
const learnWithin = time.Second

// How long after the first answer, and how many calls at most, are refused where there
// were guesses: whoever has one is about to act on it, within microseconds, and on a
// machine that is busy within milliseconds.
const (
	learnSettle = 50 * time.Millisecond
	learnRefuse = 64
)

// Guess returns what is known, and asks first, for up to a second, if that is nothing;
// the zero C if it stays so.
func (l *Learner[C]) Guess(ctx context.Context) (c C) {
	if known := l.known.Load(); known != nil {
		return *known
	}
	if !l.failedJustNow() {
		ctx, cancel := context.WithTimeout(ctx, learnWithin)
		defer cancel()
		_ = l.Learn(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.known.Load(); known != nil {
		return *known
	}
	l.guessed = true
	return c
}

// failedJustNow reports whether an attempt has failed within learnWithin.
func (l *Learner[C]) failedJustNow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.quiet == nil {
		return false
	}
	select {
	case <-l.quiet.C:
		l.quiet = nil
		return false
	default:
		return true
	}
}

// Known makes sure, before a command is sent, that the server is known. Who was told
// that nothing is known may have chosen scripts, another layout, or another kind of
// channel, and must not use them on a server that turns out to have better: those calls
// are refused, with ErrGuessed.
func (l *Learner[C]) Known(ctx context.Context) error {
	if l.sure.Load() {
		return nil
	}
	if l.known.Load() == nil {
		if err := l.Learn(ctx); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.guessed || !l.Better(*l.known.Load()) || l.settled() {
		l.sure.Store(true)
		return nil
	}
	l.refused++
	return ErrGuessed
}

// settled reports whether enough calls were refused. The caller holds mu.
func (l *Learner[C]) settled() bool {
	if l.settle == nil {
		l.settle = time.NewTimer(learnSettle)
	}
	if l.refused >= learnRefuse {
		return true
	}
	select {
	case <-l.settle.C:
		return true
	default:
		return false
	}
}

// Learn asks the server what it is, or waits for the one who does: if only his context
// has ended, the next one asks.
func (l *Learner[C]) Learn(ctx context.Context) error {
	for {
		l.mu.Lock()
		done := l.asking
		if done == nil {
			done = make(chan struct{})
			l.asking = done
			l.mu.Unlock()
			return l.attempt(ctx, done)
		}
		l.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("%s: the first call: %w", l.Door, ctx.Err())
		}
		l.mu.Lock()
		err := l.err
		l.mu.Unlock()
		if !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// attempt is that of who asks; it ends with done closed.
func (l *Learner[C]) attempt(ctx context.Context, done chan struct{}) error {
	c, err := l.Ask(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	close(done)
	l.asking, l.err = nil, err
	if l.quiet != nil {
		l.quiet.Stop()
	}
	if err == nil {
		l.known.Store(&c)
	} else {
		l.quiet = time.NewTimer(learnWithin)
	}
	return err
}

// ProbeCommands are the commands whose presence tells what a server can do, in the order
// of COMMAND INFO's reply.
var ProbeCommands = [...]string{ProbeHashFieldTTL: "HPEXPIRE", ProbeFunctions: "FCALL", ProbeShardedPubSub: "SSUBSCRIBE", ProbeNative: "LOCK.ACQUIRE"}

// The places in ProbeCommands.
const (
	ProbeHashFieldTTL = iota
	ProbeFunctions
	ProbeShardedPubSub
	ProbeNative
)

// Greet makes sure that a server is there, and asks it what ebb.CapabilitiesOf reads:
// INFO server, "" where that is not allowed, and COMMAND INFO.
func Greet(run func(words ...string) (resp.Value, error)) (info string, commands resp.Value, err error) {
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
