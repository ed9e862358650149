package kit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/drivers"
)

// The rules that all objects follow; docs/design/toolkit.md explains them.

// Check checks the connection and the name of an object. Its error has ebb.ErrArgument in
// its chain. A name is one or more bytes. Helper keys share its hash slot: so it has
// either no braces, or a hash tag in the sense of Redis Cluster, which is what stands
// between the first "{" and the next "}" and is not empty.
func Check(c *conn.Conn, what, name string) error {
	wrong := ""
	switch {
	case c == nil:
		wrong = "the connection is nil; it must be one that ebb.Open, ebb.Wrap or ebb.Use returned"
	case name == "":
		wrong = "the name is empty; it must have at least one character"
	case (strings.IndexByte(name, '{') >= 0 || strings.IndexByte(name, '}') >= 0) && !Tagged(name): // faster than ContainsAny
		wrong = `the name has braces that are not a hash tag; it must have none, or a "{" that is followed by at least one character ` +
			`and "}", as in "{eu}:jobs"`
	default:
		return nil
	}
	return Argument(what, name, "%s", wrong)
}

// Argument returns the error of an object about a bad argument. The argument what names the package, and the
// kind of the object where the package has several: "queue", "limit: concurrency". The text
// is `queue "mail": ebb: unusable argument: ...`; ebb.ErrArgument is in the chain.
func Argument(what, name, format string, args ...any) error {
	return fmt.Errorf("%s %q: %w: %s", what, name, conn.ErrArgument, fmt.Sprintf(format, args...))
}

// Make checks what all constructors get, and returns the name that the object has at the
// backend and its options: the connection and the name as Check does, the options as Option
// does.
func Make[O any](c *conn.Conn, what, name string, opts []O) (full string, o O, err error) {
	if full, err = Name(c, what, name); err != nil {
		return name, o, err
	}
	if o, err = Option(opts); err != nil {
		err = fmt.Errorf("%s %q: %w", what, name, err)
	}
	return full, o, err
}

// Name checks the connection and the name of an object as Check does, and returns the name
// that the object has at the backend: with the prefix of the Conn. The delay queue of a
// stream, which Key has named, has the prefix already.
func Name(c *conn.Conn, what, name string) (full string, err error) {
	if err := Check(c, what, name); err != nil {
		return name, err
	}
	if p := c.Prefix(); p != "" && strings.HasPrefix(name, "{"+p) && strings.HasSuffix(name, "}:"+Later) {
		return name, nil
	}
	return c.Prefix() + name, nil
}

// Later is the suffix of the key of the delay queue of a stream; stream.Stream.Later returns
// that key, and queue.New accepts it.
const Later = "later"

// Given returns the name with which a constructor makes an object again, from its name at the
// backend.
func Given(c *conn.Conn, full string) string { return strings.TrimPrefix(full, c.Prefix()) }

// Option returns the options of a call that takes one optional struct: its zero value if
// the caller passed none. Two or more are ebb.ErrArgument, because all but one of them would
// have no effect.
func Option[O any](opts []O) (o O, err error) {
	switch len(opts) {
	case 0:
		return o, nil
	case 1:
		return opts[0], nil
	}
	return o, fmt.Errorf("%w: the call got %d values of %T; it takes one, or none for the defaults", conn.ErrArgument, len(opts), o)
}

// Callable returns an error if the caller of an operation gave it a nil function, else
// nil.
func Callable(given bool, what string) error {
	if given {
		return nil
	}
	return fmt.Errorf("%w: the function %s is nil; it must be one to call", conn.ErrArgument, what)
}

// Tagged reports whether a key has a hash tag, in the sense of Redis Cluster.
func Tagged(key string) bool {
	_, rest, ok := strings.Cut(key, "{")
	return ok && strings.Index(rest, "}") > 0
}

// Ended reports whether err, of a call with ctx, comes from the end of ctx. If it reports
// true, ctx has ended. Client libraries notice a deadline some ms before ctx does: Ended
// waits for ctx.
func Ended(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	at, ends := ctx.Deadline()
	if !ends || !errors.Is(err, context.DeadlineExceeded) || time.Until(at) > early {
		return false
	}
	<-ctx.Done()
	return true
}

// early is much more than the time by which a client library may notice a deadline before
// its context.
const early = time.Second

const (
	// ReleaseFor is the time for which Release tries.
	ReleaseFor = 3 * time.Second
	// ReleaseOnce is the time limit of one attempt: after one that hangs, there is time for
	// another.
	ReleaseOnce = ReleaseFor / 2
	// GraceAfterEnd is the time for which Release tries after the end of its context. It is also
	// the limit of ReleaseBriefly, for state that the backend or another program cleans up a
	// little later anyway.
	GraceAfterEnd = time.Second

	// The pauses between the attempts of a release.
	firstReleasePause, maxReleasePause = 5 * time.Millisecond, 250 * time.Millisecond
)

// Release calls fn until the backend has answered. fn releases something that other
// clients wait for: a lease, a slot, a place in a line, the marker of a load, a finished
// job. The end of ctx does not end Release, because the other clients still need the
// release: fn gets a context of its own, with the values of ctx. Release calls fn again
// after each error for which again returns true, for at most ReleaseFor, and for at most
// GraceAfterEnd beyond the end of ctx. The error is that of the last call.
//
// failed is the error of the call whose effects fn takes back, nil for none: what of that call is under way reaches the backend
// before fn does, unless that takes longer than lateFor, a part of the time of Release. If the call got no answer by then, fn
// runs again some time later, in the background: see driverutil.NoReply. Such an fn names an owner that no other call has, takes
// nothing (see Repeated), and uses nothing that the caller changes.
func Release(ctx context.Context, failed error, again func(error) bool, fn func(ctx context.Context) error) error {
	return release(ctx, ReleaseFor, failed, again, fn)
}

// ReleaseBriefly runs Release with GraceAfterEnd as the time limit.
func ReleaseBriefly(ctx context.Context, failed error, again func(error) bool, fn func(ctx context.Context) error) error {
	return release(ctx, GraceAfterEnd, failed, again, fn)
}

// ExtendDeadline returns a context for a request whose reply comes at the deadline of ctx: it ends d later than that deadline. A
// cancellation of ctx ends it too. The caller calls end.
func ExtendDeadline(ctx context.Context, d time.Duration) (longer context.Context, end func()) {
	at, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	longer, cancel := context.WithDeadline(context.WithoutCancel(ctx), at.Add(d))
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// Outlive returns a context with the values of ctx that ends d after ctx, for work whose result others need although the caller may
// have left. If ctx has ended, d counts from now. The caller calls end.
func Outlive(ctx context.Context, d time.Duration) (longer context.Context, end func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(d, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// lateFor is the time limit of Late: half of the time that a call may take beyond the end of its context.
const lateFor = GraceAfterEnd / 2

// Late waits for what a failed call has left under way, for at most half a second, and returns its answer: see
// drivers.AwaitReply. The end of ctx does not end it.
func Late(ctx context.Context, failed error) (answer conn.Value, ok bool) {
	if failed == nil {
		return answer, false
	}
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateFor)
	defer cancel()
	return drivers.AwaitReply(patient, failed)
}

func release(ctx context.Context, limit time.Duration, failed error, again func(error) bool, fn func(ctx context.Context) error) error {
	whole, began := context.WithoutCancel(ctx), time.Now()
	left := func() time.Duration { return limit - time.Since(began) }
	if at, ok := ctx.Deadline(); ok {
		limit = min(limit, max(at.Sub(began), 0)+GraceAfterEnd)
	}
	ended := ctx.Err() != nil
	if ended {
		limit = min(limit, GraceAfterEnd)
	}
	if _, answered := Late(ctx, failed); !answered {
		defer drivers.RepeatLater(failed, func(life context.Context) { repeat(whole, life, fn) })
	}
	for n := 0; ; n++ {
		if !ended && ctx.Err() != nil {
			ended, limit = true, min(limit, time.Since(began)+GraceAfterEnd)
		}
		within := min(left(), ReleaseOnce)
		once, cancel := context.WithTimeout(whole, within)
		err := fn(once)
		if errors.Is(err, context.DeadlineExceeded) && Overdue(whole, once, err) {
			err = NoReply(within)
		}
		cancel()
		if err == nil || !again(err) {
			return err
		}
		pause := Backoff(firstReleasePause, maxReleasePause, n)
		if pause >= left() {
			return err
		}
		_ = Sleep(whole, pause) // whole has no end
	}
}

// repeat calls fn once more, some time after its call.
func repeat(whole, life context.Context, fn func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithValue(whole, repeated{}, true), ReleaseOnce)
	defer cancel()
	defer context.AfterFunc(life, cancel)()
	_ = fn(ctx) // its state is cleaned up without it: this is more than Release promises
}

type repeated struct{}

// Repeated reports whether ctx is that of a function of Release that runs again some time after its call. Most likely there is
// nothing left to take back then.
func Repeated(ctx context.Context) bool { return ctx.Value(repeated{}) != nil }
