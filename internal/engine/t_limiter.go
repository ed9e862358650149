package engine

import (
	"errors"
	"strconv"

	"github.com/ebbdb/ebb/internal/limiter"
	"github.com/ebbdb/ebb/internal/rdb"
)

// This file implements rate limiters. internal/limiter has their states, whose image is the value of the key.
//
//	Take: find the key ─▶ State.Load ─▶ Adopt the call's parameters ─▶ Earliest
//	                      ─▶ allowed: Take, Save in place, the key's deadline
//
// The key's deadline is the instant at which the limiter is full again: a full limiter and a missing one give the same results, so
// expiration removes the key. A denied request changes nothing.

// TakeOptions are a request to a limiter, with the limits that it applies. The limits are not a property of
// the key, so a service may change them with any request; see limiter.State.Adopt.
type TakeOptions struct {
	Algo   limiter.Algo // a key keeps its algorithm: another one gives ErrWrongType
	Limit  int64        // Limit, Period and Burst as in limiter.Params
	Period int64        // us
	Burst  int64        // 0: Limit
	Cost   int64        // the number of grants that this request counts as; 0 only queries whether the limiter is within its bound
	Peek   bool         // query only: take nothing
	Behind bool         // other clients wait: the limiter denies the request, which would overtake them
}

// These are the errors of costs.
var (
	ErrCost   = errors.New("COST must be from 0 to 1125899906842624")
	ErrNoCost = errors.New("COST must be from 1 to 1125899906842624 here")
	// ErrNeverServed: the cost is above the burst.
	ErrNeverServed = errors.New("COST is above the burst, it can never be served")
)

func (o *TakeOptions) params() limiter.Params {
	return limiter.Params{Algo: o.Algo, Limit: o.Limit, Period: o.Period, Burst: o.Burst}
}

// check verifies options and fills in the burst.
func (o *TakeOptions) check() error {
	p := o.params()
	err := p.Check()
	if err == nil && (o.Cost < 0 || o.Cost > limiter.MaxTokens) {
		err = ErrCost
	}
	o.Burst = p.Burst
	return err
}

// Taken is the result of a request to a limiter.
type Taken struct {
	Allowed   bool
	Limit     int64         // the capacity of a full limiter: the burst
	Remaining int64         // the remaining capacity, after this request
	Retry     int64         // retry-after: us until the request would be allowed, if there are no others; -1: it is allowed, or never will be
	Reset     int64         // reset-after: us until the limiter is full
	Grant     limiter.Grant // for Tx.GiveBack, if the request was allowed
}

// Take requests o.Cost from a limiter. A missing key counts as a full limiter. A denied request
// changes nothing. It costs one lookup and O(1). For Log it costs O(entries that have left the
// period since the last grant), and if denied O(entries that must leave).
//
// The generic cell rate algorithm is that of ITU-T I.371 and the ATM Forum's Traffic Management
// 4.1, in its virtual scheduling form; the burst tolerance is burst - 1 cells. The weighted window
// counter is the one commonly called sliding window counter.
//
// Errors: ErrWrongType, ErrCost, the errors of limiter.Params, ErrFull.
func (tx *Tx) Take(key []byte, o TakeOptions) (Taken, error) {
	if err := o.check(); err != nil {
		return Taken{}, err
	}
	h, err := tx.container(key, Limiter)
	if err != nil {
		return Taken{}, err
	}
	var l limiter.State
	t, err := tx.askLimiter(&h, &l, &o)
	if err != nil {
		return t, err
	}
	switch {
	case o.Peek || o.Cost == 0:
	case !t.Allowed:
		h.sh.stats.LimiterDenied++
		tx.denied(&h, key)
	default:
		err = tx.takeFrom(&h, key, &l, &o, &t)
	}
	if !o.Behind {
		t.Remaining = l.Remaining(tx.now)
	}
	t.Reset = max(0, l.Full(tx.now)-tx.now)
	return t, err
}

// askLimiter reads the limiter that h has found into l and checks whether it allows a
// request, without changing anything.
func (tx *Tx) askLimiter(h *hit, l *limiter.State, o *TakeOptions) (Taken, error) {
	if h.r == nil {
		l.New(o.Algo, tx.now)
	} else if l.Load(h.image()); l.Algo() != o.Algo {
		return Taken{}, ErrWrongType
	}
	l.Adopt(tx.now, o.params())
	t := Taken{Limit: l.Capacity(), Retry: -1}
	if o.Cost <= t.Limit {
		at := l.Earliest(tx.now, o.Cost)
		if t.Allowed = at <= tx.now; !t.Allowed {
			t.Retry = at - tx.now
		}
		if o.Behind {
			t.Allowed, t.Retry = false, max(t.Retry, tx.wakeIn(h), 1)
		}
	}
	return t, nil
}

// takeFrom takes an allowed cost.
func (tx *Tx) takeFrom(h *hit, key []byte, l *limiter.State, o *TakeOptions, t *Taken) error {
	l.Take(tx.now, o.Cost)
	if err := tx.storeLimiter(h, key, l); err != nil {
		return err
	}
	t.Grant = l.Granted(tx.now, o.Cost)
	h.sh.stats.LimiterAllowed++
	if s := h.sp.throttled; s != nil {
		s.Hit(h.h)
	}
	tx.emitTake(key, o)
	tx.changed(key, EventModule, "rl.take")
	return nil
}

func (tx *Tx) emitTake(key []byte, o *TakeOptions) {
	if !tx.db.logging.Load() || tx.replay {
		return
	}
	args := [11][]byte{key, tx.itoa(0, o.Limit), tx.itoa(1, o.Period/1000)}
	n := 3
	if o.Algo != limiter.GCRA {
		args[n], args[n+1] = []byte("ALGO"), []byte(o.Algo.String())
		n += 2
	} else if o.Burst != o.Limit {
		args[n], args[n+1] = []byte("BURST"), tx.itoa(2, o.Burst)
		n += 2
	}
	if o.Cost != 1 {
		args[n], args[n+1] = []byte("COST"), tx.itoa(3, o.Cost)
		n += 2
	}
	args[n], args[n+1] = []byte("NOW"), tx.instant()
	tx.emit("RL.TAKE", args[:n+2]...)
}

// TakeAll takes from each of several limiters, whose keys differ, or from none. It calls visit for
// each in order: with the remaining capacity if all allow the request, else with the result that
// each limiter would return alone. O(keys) of Take. Errors: as Take's; with ErrFull, which only a
// full shard causes, TakeAll has taken from the keys before that one.
func (tx *Tx) TakeAll(keys [][]byte, all []TakeOptions, visit func(Taken)) (allowed bool, err error) {
	answers := make([]Taken, len(keys))
	allowed = true
	for i := range all {
		o := all[i]
		o.Peek = true
		if answers[i], err = tx.Take(keys[i], o); err != nil {
			return false, err
		}
		allowed = allowed && answers[i].Allowed
	}
	for i, t := range answers {
		if o := all[i]; allowed {
			if t, err = tx.Take(keys[i], o); err != nil {
				return false, err
			}
		} else if !o.Peek && o.Cost > 0 {
			h := tx.find(keys[i])
			if h.sh.stats.LimiterDenied++; !t.Allowed { // the others would have allowed the request
				tx.denied(&h, keys[i])
			}
		}
		visit(t)
	}
	return allowed, nil
}

// ResetLimiters removes limiters, so that they are full, and returns how many existed.
// O(keys). Errors: ErrWrongType, and nothing was removed.
func (tx *Tx) ResetLimiters(keys [][]byte) (n int, err error) {
	for _, key := range keys {
		if _, err := tx.container(key, Limiter); err != nil {
			return 0, err
		}
	}
	for _, key := range keys {
		if h := tx.find(key); h.sp != nil && h.sp.throttled != nil {
			h.sp.throttled.Drop(h.h)
		}
		if tx.Del(key) {
			n++
		}
	}
	return n, nil
}

// WakeAt schedules a wake-up of the clients that wait for a limiter, at an instant in us or up to a
// millisecond after it. The first of these clients computes the instant. WakeAt does not change the value.
// O(1).
func (tx *Tx) WakeAt(key []byte, us int64) {
	h, err := tx.container(key, Limiter)
	if err == nil && h.r != nil {
		tx.dateAt(&h, max(1, ceilMillis(us)-1)) // the wheel fires a millisecond after its deadlines
	}
}

// wakeIn returns the time in us until the next wake-up of the clients that wait for a
// limiter, 0 if it is unknown.
func (tx *Tx) wakeIn(h *hit) int64 {
	if h.r == nil || h.r.nextAt() == 0 {
		return 0
	}
	return (h.r.nextAt()+1)*1000 - tx.now
}

func ceilMillis(us int64) int64 { return (us + 999) / 1000 }

// instant formats the transaction's instant for an effect.
func (tx *Tx) instant() []byte {
	tx.vbuf = strconv.AppendInt(tx.vbuf[:0], tx.now, 10)
	return tx.vbuf
}

// storeLimiter writes a state after a grant, and sets the key's deadline. It moves nothing if the
// length of the image is unchanged. Errors: ErrFull, and nothing has changed.
func (tx *Tx) storeLimiter(h *hit, key []byte, l *limiter.State) error {
	deadline := min(ceilMillis(l.Full(tx.now)), MaxDeadline)
	n := l.Size()
	if h.r == nil {
		tx.vbuf = append(tx.vbuf[:0], make([]byte, n)...)
		l.Save(tx.vbuf)
		err := tx.put(h, key, tx.vbuf, spec{flags: uint8(Limiter), deadline: deadline})
		if h.r != nil {
			l.Moved(h.image())
		}
		return err
	}
	dst := []byte(h.image())
	if len(dst) == n {
		tx.stamp(h.r)
	} else {
		var err error
		if dst, err = tx.room(h, key, Limiter, n); err != nil {
			return err
		}
	}
	l.Save(dst)
	tx.postpone(h, key, l, deadline) // the record may move
	l.Moved(h.image())
	return nil
}

// settleLimiter stores a limiter after a returned grant. It removes and logs a limiter
// that is full now; the caller logs the rest.
func (tx *Tx) settleLimiter(h *hit, key []byte, l *limiter.State, event string) error {
	if l.Full(tx.now) > tx.now || tx.replay {
		if err := tx.storeLimiter(h, key, l); err != nil {
			return err
		}
		tx.changed(key, EventModule, event)
		return nil
	}
	tx.drop(h)
	tx.emit("DEL", key)
	tx.changed(key, EventModule, event)
	tx.gone(key)
	return nil
}

// GiveBack returns a grant that did not reach its client, and reports whether the limiter no longer counts
// it. The limiter still counts the grant if later grants depend on it: gcra stores only the sum of the
// grants, and must not return more than the grant took. Errors: ErrWrongType.
func (tx *Tx) GiveBack(key []byte, g limiter.Grant) (ok bool, err error) {
	h, err := tx.container(key, Limiter)
	if err != nil || h.r == nil {
		return false, err
	}
	var l limiter.State
	l.Load(h.image())
	l.Adopt(tx.now, l.Params())
	if tx.ebuf, ok = l.Undo(tx.now, g, tx.ebuf); !ok {
		return false, nil
	}
	if err := tx.settleLimiter(&h, key, &l, "rl.giveback"); err != nil {
		return false, err
	}
	// A replay could not compute the later value from the other effects, so GiveBack logs it.
	if h.r != nil && tx.db.logging.Load() && !tx.replay {
		tx.emit(OwnPrefix+"RESTORE", key, tx.itoa(0, h.r.deadline()), tx.dump(nil, h), []byte("REPLACE"), []byte("ABSTTL"))
	}
	return true, nil
}

// LimiterInfo describes a limiter.
type LimiterInfo struct {
	Algo             limiter.Algo
	Limit, Burst     int64
	Period           int64 // us
	Remaining, Reset int64 // as in Taken
	Retry            int64 // us until the limiter allows a cost of 1; 0: now
	Reservations     []limiter.Reservation
}

// LimiterInfo describes a limiter with the parameters of the last request; ok is false if there is
// no such key. It counts as an access. O(reservations). Errors: ErrWrongType.
func (tx *Tx) LimiterInfo(key []byte) (i LimiterInfo, ok bool, err error) {
	h, err := tx.open(key, Limiter)
	if err != nil || h.r == nil {
		return i, false, err
	}
	var l limiter.State
	l.Load(h.image())
	p := l.Params()
	l.Adopt(tx.now, p)
	return LimiterInfo{Algo: p.Algo, Limit: p.Limit, Burst: l.Capacity(), Period: p.Period, Remaining: l.Remaining(tx.now),
		Reset: max(0, l.Full(tx.now)-tx.now), Retry: l.Earliest(tx.now, 1) - tx.now, Reservations: l.Reservations()}, true, nil
}

// limiterModule dumps a limiter as the bytes of its record, beginning with the form; a log is dumped without
// its dead entries.
func limiterModule() module {
	return module{
		name: "ebb-limit",
		dump: func(_ *Tx, _ *rdb.Encoder, h *hit) []byte { return limiter.Compact(h.image()) },
		restore: func(_ *Tx, data []byte) ([]byte, box, error) {
			img, ok := limiter.Restore(data)
			if !ok {
				return nil, nil, rdb.ErrFormat
			}
			return img, nil, nil
		},
	}
}
