package rueidisebb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
	"github.com/ebbdb/ebb/internal/remote"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/resp"
)

// answer converts a result of rueidis.
func (d *driver) answer(ctx context.Context, doing string, r rueidis.RedisResult) remote.Answer {
	err := r.NonRedisError()
	if err == nil {
		return remote.Of(value(r))
	}
	if d.ctx.Err() != nil {
		return remote.Answer{Err: conn.ErrClosed, Ran: true}
	}
	if v, ok := refusedGreeting(err); ok {
		return remote.Of(v)
	}
	a := remote.Answer{Ran: !unsent(err)}
	if a.Stray = !a.Ran && ctx.Err() == nil && errors.Is(err, context.Canceled); a.Stray {
		err = errors.New("the call that opened the connection has given it up")
	}
	a.Err = unavailable(ctx, doing, err)
	return a
}

// unsent reports whether an error says that there was no connection, so that nothing was
// written.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" || errors.Is(err, rueidis.ErrNoSlot)
}

// refusedGreeting returns the error reply of a server that refused the handshake of a new
// connection. Every command for that connection gets it.
func refusedGreeting(err error) (conn.Value, bool) {
	var refused *rueidis.RedisError
	if !errors.As(err, &refused) || refused.IsNil() {
		return conn.Value{}, false
	}
	s := refused.Error()
	if code, _, _ := strings.Cut(s, " "); code != strings.ToUpper(code) { // rueidis removes ERR
		s = "ERR " + s
	}
	return conn.Value{Kind: resp.KindError, Str: s}, true
}

// unavailable returns the error of a call that got no reply, as driverutil.Unavailable does. If the context has not ended, a deadline is
// that of another call: rueidis closes a connection when a call alone on it reaches its deadline, and gives the error of that call to the
// calls that came after it.
func unavailable(ctx context.Context, doing string, err error) error {
	e := driverutil.Unavailable(ctx, doing, err)
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(e, conn.ErrUnavailable) {
		earlier := fmt.Errorf("%w: no reply to an earlier call on the same connection", routing.ErrUnresponsive)
		return driverutil.Unavailable(ctx, doing, earlier)
	}
	return e
}
