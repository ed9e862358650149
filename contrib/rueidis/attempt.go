package rueidisebb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/resp"
)

// answer is what came of a command. One that has not run for certain is sent again:
// it was never written, or its reply says so.
type answer struct {
	v     conn.Value
	err   error // there was no reply
	ran   bool  // it may have run, or has
	stray bool  // it was to use a connection that another call opened, and gave up
}

// answer reads a result.
func (d *driver) answer(ctx context.Context, doing string, r rueidis.RedisResult) answer {
	err := r.NonRedisError()
	if err == nil {
		v := value(r)
		return answer{v: v, ran: !routing.Untouched(v)}
	}
	if d.ctx.Err() != nil {
		return answer{err: conn.ErrClosed, ran: true}
	}
	if v, ok := refusedGreeting(err); ok {
		return answer{v: v, ran: !routing.Untouched(v)}
	}
	a := answer{ran: !unsent(err)}
	if a.stray = !a.ran && ctx.Err() == nil && errors.Is(err, context.Canceled); a.stray {
		err = errors.New("the connection was given up by the call that opened it")
	}
	a.err = unavailable(ctx, doing, err)
	return a
}

// unsent reports whether an error says that nothing was written: there was no
// connection.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, rueidis.ErrNoSlot)
}

// refusedGreeting is the error reply that a new connection got instead of a welcome,
// and every command for it with it.
func refusedGreeting(err error) (conn.Value, bool) {
	var refused *rueidis.RedisError
	if !errors.As(err, &refused) || refused.IsNil() {
		return conn.Value{}, false
	}
	s := refused.Error()
	if code, _, _ := strings.Cut(s, " "); code != strings.ToUpper(code) { // rueidis takes ERR away
		s = "ERR " + s
	}
	return conn.Value{Kind: resp.KindError, Str: s}, true
}

// unavailable is the error of a server that did not answer. Where the context has
// ended that is the reason, and the server is not to blame. Where it has not, a context's
// error is not in the chain: it is that of rueidis's own timeouts.
func unavailable(ctx context.Context, doing string, err error) error {
	if c := ctx.Err(); c != nil {
		return fmt.Errorf("rueidisebb: %s: %w", doing, c)
	}
	if at, ok := ctx.Deadline(); ok && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)) && time.Until(at) <= 0 {
		return fmt.Errorf("rueidisebb: %s: %w", doing, context.DeadlineExceeded) // the context's own timer is late
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("rueidisebb: %s: %w: %v", doing, conn.ErrUnavailable, err) //nolint:errorlint // hidden on purpose
	}
	return fmt.Errorf("rueidisebb: %s: %w: %w", doing, conn.ErrUnavailable, err)
}

// refusal is the error of a command that was not run for a reason that passes, and did
// not for as long as we tried.
func refusal(doing string, v conn.Value) error {
	return fmt.Errorf("rueidisebb: %s: %w: %w", doing, conn.ErrUnavailable, v.Err())
}

// persist tries until there is an answer that counts, or it was tried enough.
func (d *driver) persist(ctx context.Context, doing string, try func() answer) (conn.Value, error) {
	return d.insist(ctx, doing, try(), try)
}

// insist is persist after the first try.
func (d *driver) insist(ctx context.Context, doing string, a answer, try func() answer) (conn.Value, error) {
	r := routing.Retry{Closed: d.ctx.Done()}
	defer r.Stop()
	r.Next(ctx) // that was a
	for d.again(ctx, a) && r.Next(ctx) {
		a = try()
	}
	if a.err == nil && routing.Untouched(a.v) {
		a.err = refusal(doing, a.v)
	}
	if c := ctx.Err(); c != nil && a.err != nil && !a.ran && !errors.Is(a.err, c) { // it ended between two tries
		a.err = fmt.Errorf("rueidisebb: %s: %w, after: %w", doing, c, a.err)
	}
	return a.v, a.err
}

// again reports whether another try does no harm, and may help. A single server that
// is a replica, or away, stays so.
func (d *driver) again(ctx context.Context, a answer) bool {
	switch {
	case a.ran || ctx.Err() != nil || d.ctx.Err() != nil:
		return false
	case a.err == nil:
		return routing.Untouched(a.v) && (d.follows || !strings.HasPrefix(a.v.Str, "READONLY"))
	}
	return a.stray || d.follows && errors.Is(a.err, conn.ErrUnavailable)
}

// rest waits, and reports whether it did to the end.
func (d *driver) rest(ctx context.Context, pause time.Duration, over <-chan time.Time) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-over:
	case <-ctx.Done():
	case <-d.ctx.Done():
	}
	return false
}
