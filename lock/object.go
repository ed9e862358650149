package lock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/internal/wake"
)

// DefaultTTL is the lease if Options.TTL is 0. It outlasts a pause of the program or a failover
// of the backend, and is short enough to wait for after a crash.
const DefaultTTL = locking.DefaultTTL

// Options configures locks and leases. The zero value works.
type Options struct {
	// TTL is the length of a lease: the time for which others wait for a holder that has died, and
	// for which a holder may be unable to reach the backend. A lease is renewed at a third of it.
	// Default: 30 s; at least 10 ms.
	TTL time.Duration
	// Owner is the part of the owner's name that others see, for instance in LOCK.INFO: a host or
	// a worker. 32 random digits follow it. Default: "".
	Owner string
	// Later is the delay with which RunLater pushes work to its queue. Default: a third of TTL.
	Later time.Duration
	// UntilRelease lets a lease outlive the context that acquired it. The context then bounds the
	// acquisition alone, and the lease is renewed until Release or until it is lost. A lease that
	// the program forgets to release stays held while the process lives. Default: the context
	// bounds the life of the lease.
	UntilRelease bool
	// Logger receives lost leases, backends that do not reply, and leases whose context ended before their
	// Release. Default: no log.
	Logger *slog.Logger
}

// object is the part that all objects of this package share: its layout, and a locking.Object, which sends requests and waits.
type object struct {
	c    *conn.Conn
	name string
	opts Options
	keys keys
	core locking.Object

	native        nativeLock
	ttl, fenceTTL string // in ms, as texts: the lease, and the time for which its token is kept
}

// init checks the arguments of a constructor; see setup.
func (o *object) init(c *conn.Conn, label, name string, opts []Options) error {
	name, given, err := kit.Make(c, label, name, opts)
	if err != nil {
		return err
	}
	return o.setup(c, label, name, given)
}

// setup checks the options, fills in defaults, and makes the names. label is the kind of the object in its
// errors: "lock: fair lock", and "lock" for Lock.
func (o *object) setup(c *conn.Conn, label, name string, opts Options) error {
	o.c, o.name, o.opts = c, name, opts
	o.core = locking.Object{Conn: c, Label: label, What: strings.TrimPrefix(label, "lock: "), Name: name,
		TTL: opts.TTL, UntilRelease: opts.UntilRelease, Logger: opts.Logger}
	if err := o.core.Check(); err != nil {
		return err
	}
	o.opts.TTL, o.opts.Logger = o.core.TTL, o.core.Logger
	if o.opts.Later < 0 {
		return o.argument("Later is %v; it must be positive, or 0 for the default", o.opts.Later)
	}
	o.opts.Later = cmp.Or(o.opts.Later, o.opts.TTL/3)
	o.native = nativeLock{c: c, name: name, ttl: o.opts.TTL}
	o.keys = keysOf(o.name)
	o.core.Wakeups = wake.Channel{Conn: o.c, Name: o.keys.wake, Settles: true}
	var room [40]byte
	ttl := kit.Millis(o.opts.TTL)
	first := strconv.AppendInt(room[:0], ttl, 10)
	both := string(strconv.AppendInt(first, ttl+fenceLife, 10))
	o.ttl, o.fenceTTL = both[:len(first)], both[len(first):]
	return nil
}

// owner returns a new, unique owner.
func (o *object) owner() string {
	if o.opts.Owner == "" {
		return kit.ID()
	}
	return o.opts.Owner + ":" + kit.ID()
}

func (o *object) tryAcquire(ctx context.Context, acq locking.Acquirer) (*Lease, error) {
	switch l, done := o.acquireDirect(ctx, acq, false); {
	case l != nil:
		return l, nil
	case done:
		return nil, o.wrap("acquire", ErrTaken)
	}
	l, err := o.core.TryAcquire(ctx, acq, o.owner())
	return (*Lease)(l), err
}

func (o *object) acquire(ctx context.Context, acq locking.Acquirer, wait time.Duration) (*Lease, error) {
	if wait >= 0 {
		if l, _ := o.acquireDirect(ctx, acq, true); l != nil {
			return l, nil
		}
	}
	l, err := o.core.Acquire(ctx, acq, o.owner(), wait)
	return (*Lease)(l), err
}

// acquireDirect requests the lease by a direct call of the embedded engine. done is false if the call changed
// nothing. waits says that the caller would wait: then a refusal counts as not done.
func (o *object) acquireDirect(ctx context.Context, acq locking.Acquirer, waits bool) (_ *Lease, done bool) {
	d, ok := acq.(locking.Direct)
	if !ok || direct.Of(o.c) == nil {
		return nil, false
	}
	l := new(locking.Lease)
	granted, done := l.AcquireDirect(ctx, &o.core, d, o.opts.Owner, waits)
	if !granted {
		return nil, done
	}
	return (*Lease)(l), true
}

func (o *object) describe(detail, native string) string     { return o.core.Describe(detail, native) }
func (o *object) leases() string                            { return o.core.Leases() }
func (o *object) logFirstUse(self fmt.Stringer)             { o.core.LogFirstUse(self) }
func (o *object) wrap(doing string, err error) error        { return o.core.Wrap(doing, err) }
func (o *object) argument(format string, args ...any) error { return o.core.Argument(format, args...) }
