package limit

import (
	"context"
	"fmt"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// Reservation is a request that is allowed at a later instant. Its methods are safe for
// concurrent use.
type Reservation struct {
	// Local reports that this process decided by itself, because the backend did not reply and
	// Down is Local or FailOpen.
	Local bool

	l      *Limiter
	p      *plan
	bucket string
	id     any
	delay  time.Duration
	since  stopwatch
	cancel func() // of a local reservation
}

// Reserve reserves one request of a key for a later instant. The caller waits for Delay and
// then proceeds without another call. Reserve works with GCRA alone, and a key has at most
// 1,000 open reservations. Errors: those of Allow; ErrLate while other calls Wait for the key.
func (l *Limiter) Reserve(ctx context.Context, key string) (*Reservation, error) {
	return l.ReserveN(ctx, key, 1, -1)
}

// ReserveN does the work of Reserve for n requests at once, if their turn comes within the
// given time; a negative time means no bound. If the turn comes later, ReserveN takes nothing.
// Further errors: ErrLate, ErrTooMuch for more than Burst, ebb.ErrArgument.
func (l *Limiter) ReserveN(ctx context.Context, key string, n int64, within time.Duration) (*Reservation, error) {
	p := l.plan.Load()
	err := l.check(p, "reserve", key, n, modeTake)
	switch {
	case err != nil:
		return nil, err
	case p.algo != GCRA:
		return nil, l.failed("reserve", key, argument("%v cannot reserve, only GCRA can", p.algo))
	case ctx.Err() != nil:
		return nil, l.failed("reserve", key, ctx.Err())
	}
	r := &Reservation{l: l, p: p, bucket: l.bucket(key)}
	if l.breaker.allow() {
		if err = r.send(ctx, n, within); err != nil && ctx.Err() != nil {
			r.takeBack(ctx, err)
		}
		err = l.classify(ctx, err)
	} else {
		err = l.breaker.lastError()
	}
	if isUnavailable(err) {
		err = r.reserveLocally(n, within, err)
	}
	if err == nil && r.delay < 0 {
		err = fmt.Errorf("%w: not within %v, or other calls wait", ErrLate, within)
	}
	if err != nil {
		return nil, l.failed("reserve", key, err)
	}
	r.since = startWatch()
	return r, nil
}

// send reserves at the backend. It sets the delay to -1 if the backend did not reserve.
func (r *Reservation) send(ctx context.Context, n int64, within time.Duration) error {
	l := r.l
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	r.delay = -1
	if l.native() {
		args := append(append([]any{"RL.RESERVE", r.bucket}, r.p.native...), "COST", n)
		if within >= 0 {
			args = append(args, "MAXWAIT", within.Milliseconds())
		}
		v, err := l.c.Do(ctx, args...)
		if id, delay, ok := reservedBy(v); err == nil && ok {
			r.id, r.delay = id, delay
		}
		return err
	}
	id, most := kit.ID(), int64(-1)
	r.id = id
	if within >= 0 {
		most = within.Milliseconds() * 1000
	}
	v, err := l.c.Script(ctx, reserveScript, keys(r.bucket), append(r.p.script[:4:4], n, most, id)...)
	if err != nil || len(v.Elems) < 2 || v.Elems[0].Int == 0 {
		return err
	}
	us, err := v.Elems[1].AsInt()
	r.delay = time.Duration(us) * time.Microsecond
	return err
}

// reservedBy returns the id of the reservation in a reply of RL.RESERVE, and the time until it is due; ok is
// false if the server has reserved nothing.
func reservedBy(reply conn.Value) (id int64, delay time.Duration, ok bool) {
	if reply.IsNull() || len(reply.Elems) < 2 {
		return 0, 0, false
	}
	us, err := reply.Elems[1].AsInt()
	return reply.Elems[0].Int, time.Duration(us) * time.Microsecond, err == nil
}

// takeBack cancels a reservation that the backend may have made although the call has failed. If that fails too, the reserved
// requests are lost.
func (r *Reservation) takeBack(ctx context.Context, failed error) {
	id := r.id
	if late, ok := kit.Late(ctx, failed); ok && r.l.native() {
		if made, _, ok := reservedBy(late); ok {
			id, failed = made, nil
		}
	}
	if id == nil {
		return
	}
	_ = kit.ReleaseBriefly(ctx, failed, conn.Temporary, func(ctx context.Context) error { return r.revoke(ctx, id) })
}

// revoke removes a reservation at the backend.
func (r *Reservation) revoke(ctx context.Context, id any) (err error) {
	if n, ok := id.(int64); ok {
		_, err = r.l.c.Do(ctx, "RL.CANCEL", r.bucket, n)
	} else {
		_, err = r.l.c.Script(ctx, cancelScript, keys(r.bucket)[:2], id)
	}
	return err
}

// reserveLocally applies the Down policy.
func (r *Reservation) reserveLocally(n int64, within time.Duration, cause error) error {
	r.Local, r.delay = true, 0
	switch r.l.down.mode {
	case downOpen:
		r.cancel = func() {}
	case downLocal:
		var ok bool
		if r.delay, r.cancel, ok = r.l.local.reserve(r.p, r.l.down.share, r.bucket, n, within); !ok {
			r.delay = -1
		}
	default:
		return cause
	}
	return nil
}

// Delay returns the time until the reservation is due; 0 if it is due.
func (r *Reservation) Delay() time.Duration { return max(0, r.delay-r.since.elapsed()) }

// Cancel gives the reservation back if it is not yet due. Other reservations keep their instants. Further
// calls do nothing. An error with ebb.ErrUnavailable means that the caller cannot know whether the backend
// got the request.
func (r *Reservation) Cancel(ctx context.Context) error {
	if r.cancel != nil {
		r.cancel()
		return nil
	}
	l := r.l
	bounded, cancel := l.bounded(ctx)
	defer cancel()
	err := r.revoke(bounded, r.id)
	if err != nil {
		if cause := outage(ctx, err, l.opt.Timeout); cause != nil {
			err = &unavailable{cause}
		}
		return l.failed("cancel a reservation of", r.bucket, err)
	}
	return nil
}
