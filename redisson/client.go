package redisson

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/locking"
	"github.com/ebbdb/ebb/internal/wake"
	"github.com/ebbdb/ebb/lock"
)

// Client is this process among the programs that share locks. The holder of a lock is the client's
// id with the number of a thread, which the caller chooses, because goroutines have none.
type Client struct {
	c  *conn.Conn
	id string
}

// NewClient returns a client. id is a UUID; if it is "", NewClient makes one. A process that has
// several clients of one id shares the holds of a thread among them. NewClient sends nothing to
// the backend. It returns no error: NewLock and its like check the connection.
func NewClient(c *conn.Conn, id string) *Client {
	if id == "" {
		id = kit.UUID()
	}
	return &Client{c: c, id: id}
}

// ID returns the client's id.
func (c *Client) ID() string { return c.id }

func (c *Client) holder(thread int64) string { return c.id + ":" + strconv.FormatInt(thread, 10) }

// conn returns the connection, nil for a nil client.
func (c *Client) conn() *conn.Conn {
	if c == nil {
		return nil
	}
	return c.c
}

// LockOptions configures locks, semaphores and latches. The zero value works.
type LockOptions struct {
	// TTL is the length of a lease: the time for which others wait for a holder that has died, and
	// for which a holder may be unable to reach the backend. A lease is renewed at a third of it.
	// Default: 30 s, as Redisson's lockWatchdogTimeout; at least 10 ms.
	TTL time.Duration
	// UntilRelease lets a lease outlive the context that acquired it: see lock.Options.
	UntilRelease bool
	// Logger gets lost leases, backends that do not reply, and leases whose context ended before
	// their Release. Default: no log.
	Logger *slog.Logger
}

// object is the part that locks, semaphores and latches share.
type object struct{ core locking.Object }

// init checks the arguments of a constructor. kind is the kind of the object, as "lock", and wakeups the name of its channel.
func (o *object) init(c *conn.Conn, kind, name string, opts []LockOptions, wakes wake.Wakes, channel func(name string) string) error {
	label := "redisson: " + kind
	name, given, err := kit.Make(c, label, name, opts)
	if err != nil {
		return err
	}
	o.core = locking.Object{Conn: c, Label: label, What: "Redisson " + kind, Name: name,
		TTL: given.TTL, UntilRelease: given.UntilRelease, Logger: given.Logger,
		Wakeups: wake.Channel{Conn: c, Name: channel(name), Settles: true, Wakes: wakes}}
	return o.core.Check()
}

func (o *object) tryAcquire(ctx context.Context, acq locking.Acquirer, holder string) (*lock.Lease, error) {
	l, err := o.core.TryAcquire(ctx, acq, holder)
	return (*lock.Lease)(l), err
}

func (o *object) acquire(ctx context.Context, acq locking.Acquirer, holder string, wait time.Duration) (*lock.Lease, error) {
	l, err := o.core.Acquire(ctx, acq, holder, wait)
	return (*lock.Lease)(l), err
}

var numberSet = conn.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
redis.pcall('PUBLISH', ARGV[2], ARGV[3])
return 1
`)

// trySet sets the integer of the object unless it exists, and reports whether it did. Waiting calls get the message.
func (o *object) trySet(ctx context.Context, n int64, message any) (bool, error) {
	ok, err := locking.Boolean(locking.Integer(o.core.Conn.Script(ctx, numberSet, []string{o.core.Name}, n, o.core.Wakeups.Name, message)))
	if err != nil {
		err = o.core.Wrap("set", err)
	}
	return ok, err
}

// readNumber returns the integer of the object; 0 if there is none.
func (o *object) readNumber(ctx context.Context) (int64, error) {
	v, err := o.core.Conn.Do(ctx, "GET", o.core.Name)
	if err == nil && v.IsNull() {
		return 0, nil
	}
	n, err := kit.Number(v, err)
	if err != nil {
		return 0, o.core.Wrap("look at", err)
	}
	return n, nil
}
