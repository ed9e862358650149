package engine

import (
	"errors"
	"slices"
	"strconv"
)

// This file implements reservations: grants in the future, in the tail of a GCRA limiter, in the
// order of their instants. Once a reservation is due, it is a grant like any other, and the limiter
// forgets it.

// Reservation is a grant in the future.
type Reservation struct {
	ID   int64 // a token, unique in the engine, for Tx.CancelReservation
	Cost int64
	Due  int64 // us since 1970
}

const (
	reservationSize = 24
	// MaxReservations is the greatest number of outstanding reservations of a key. Each grant walks
	// over them, and finding a position for a new one may cost the square of their number.
	MaxReservations = 1000
)

// These are the errors of reservations.
var (
	// ErrNeverServed: the cost is above the burst.
	ErrNeverServed = errors.New("COST is above the burst, it can never be served")
	// ErrReserved: MaxReservations are outstanding.
	ErrReserved = errors.New("1000 reservations of this key are outstanding, which is all it can hold")
)

func reservationAt(tail []byte, i int) Reservation {
	b := tail[i*reservationSize:]
	return Reservation{limiterInt(b), limiterInt(b[8:]), limiterInt(b[16:])}
}

func appendReservation(b []byte, r Reservation) []byte {
	n := len(b)
	b = append(b, make([]byte, reservationSize)...)
	putLimiterInt(b[n:], r.ID)
	putLimiterInt(b[n+8:], r.Cost)
	putLimiterInt(b[n+16:], r.Due)
	return b
}

// ReserveOptions are the options of a reservation.
type ReserveOptions struct {
	TakeOptions
	MaxWait int64 // the longest wait from now, in us; -1: no bound
	ID      int64 // in a replay, the reservation's token; 0: a new one
}

// Reserve takes a cost now, or in the future if the limiter does not allow it now. It returns the
// instant from which on the client may use the grant: now, or the earliest instant that the
// reservations before it allow. ok is false, and nothing has changed, if that is later than
// MaxWait, or other clients wait. Reserve is only for GCRA. O(outstanding reservations), seldom
// their square.
//
// Errors: ErrWrongType, ErrNeverServed, ErrReserved, the errors of TakeOptions, ErrFull.
func (tx *Tx) Reserve(key []byte, o ReserveOptions) (r Reservation, ok bool, err error) {
	if err = o.check(); err != nil {
		return r, false, err
	}
	switch {
	case o.Cost == 0:
		return r, false, ErrNoCost
	case o.Cost > o.Burst:
		return r, false, ErrNeverServed
	}
	h, err := tx.container(key, Limiter)
	if err != nil {
		return r, false, err
	}
	var l limiter
	if _, err := tx.askLimiter(&h, &l, &o.TakeOptions); err != nil {
		return r, false, err
	}
	r = Reservation{o.ID, o.Cost, l.earliestGCRA(tx.now, o.Cost)}
	if o.Behind || o.MaxWait >= 0 && r.Due-tx.now > o.MaxWait {
		h.sh.stats.LimiterDenied++
		tx.denied(&h, key)
		return r, false, nil
	}
	if r.ID == 0 {
		r.ID = tx.NextToken()
	}
	return r, true, tx.reserve(&h, key, &l, r, &o)
}

func (tx *Tx) reserve(h *hit, key []byte, l *limiter, r Reservation, o *ReserveOptions) error {
	n := len(l.tail) / reservationSize
	switch {
	case r.Due <= tx.now:
		l.take(tx.now, r.Cost)
	case n >= MaxReservations:
		return ErrReserved
	default:
		i := n
		for i > 0 && reservationAt(l.tail, i-1).Due > r.Due {
			i--
		}
		tx.ebuf = append(tx.ebuf[:0], l.tail[:i*reservationSize]...)
		tx.ebuf = appendReservation(tx.ebuf, r)
		tx.ebuf = append(tx.ebuf, l.tail[i*reservationSize:]...)
		l.tail = tx.ebuf
	}
	if err := tx.storeLimiter(h, key, l); err != nil {
		return err
	}
	tx.SawToken(r.ID)
	h.sh.stats.LimiterAllowed++
	if tx.db.logging.Load() && !tx.replay {
		id, burst := tx.itoa(0, r.ID), tx.itoa(1, o.Burst)
		tx.emit("RL.RESERVE", key, tx.itoa(2, o.Limit), tx.itoa(3, o.Period/1000), []byte("BURST"), burst,
			[]byte("COST"), strconv.AppendInt(nil, r.Cost, 10), []byte("TOKEN"), id, []byte("NOW"), tx.instant())
	}
	tx.changed(key, EventModule, "rl.reserve")
	return nil
}

// CancelReservation cancels a reservation that is not yet due, and reports whether it did. The
// instants of the others do not change. O(outstanding reservations). Errors: ErrWrongType.
func (tx *Tx) CancelReservation(key []byte, id int64) (ok bool, err error) {
	h, err := tx.container(key, Limiter)
	if err != nil || h.r == nil {
		return false, err
	}
	var l limiter
	if l.load(h.image()); l.algo != GCRA {
		return false, nil
	}
	i := l.reserved(id)
	if i < 0 || reservationAt(l.tail, i).Due <= tx.now && !tx.replay {
		return false, nil
	}
	tx.ebuf = append(tx.ebuf[:0], l.tail...)
	l.tail = slices.Delete(tx.ebuf, i*reservationSize, (i+1)*reservationSize)
	err = tx.settleLimiter(&h, key, &l, "rl.cancel")
	if h.r != nil && err == nil {
		tx.emit("RL.CANCEL", key, tx.itoa(0, id))
	}
	return err == nil, err
}

// settleLimiter stores a limiter after a returned grant. It removes and logs a limiter
// that is full now; the caller logs the rest.
func (tx *Tx) settleLimiter(h *hit, key []byte, l *limiter, event string) error {
	if l.full(tx.now) > tx.now || tx.replay {
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

// reserved returns the position of a reservation, -1 if it is not outstanding.
func (l *limiter) reserved(id int64) int {
	for i := range len(l.tail) / reservationSize {
		if reservationAt(l.tail, i).ID == id {
			return i
		}
	}
	return -1
}

// options returns the parameters of the last request.
func (l *limiter) options() *TakeOptions {
	return &TakeOptions{Algo: l.algo, Limit: l.limit, Period: l.period, Burst: l.burst}
}

// GiveBack returns a grant that did not reach its client, and reports whether the limiter no longer
// counts it. The limiter still counts the grant if later grants depend on it: gcra only knows the
// sum of the grants, and must not return more than the grant took. Errors: ErrWrongType.
func (tx *Tx) GiveBack(key []byte, g Grant) (ok bool, err error) {
	h, err := tx.container(key, Limiter)
	if err != nil || h.r == nil {
		return false, err
	}
	var l limiter
	l.load(h.image())
	l.adopt(tx.now, l.options())
	tx.ebuf = append(tx.ebuf[:0], l.tail...)
	l.tail = tx.ebuf // undo changes entries in place
	if !l.undo(tx.now, g) {
		return false, nil
	}
	if err := tx.settleLimiter(&h, key, &l, "rl.giveback"); err != nil {
		return false, err
	}
	// A replay cannot compute the value of this later from the other effects, so GiveBack logs it.
	if h.r != nil && tx.db.logging.Load() && !tx.replay {
		tx.emit(OwnPrefix+"RESTORE", key, tx.itoa(0, h.r.deadline()), tx.dump(nil, &h), []byte("REPLACE"), []byte("ABSTTL"))
	}
	return true, nil
}

// undo removes a grant from a state.
func (l *limiter) undo(now int64, g Grant) bool {
	if g.epoch != l.epoch {
		return false
	}
	switch l.algo {
	case GCRA:
		return l.undoGCRA(now, g)
	case Log:
		return l.undoLog(g)
	}
	n := &l.used
	switch {
	case g.At >= l.start:
	case g.At >= l.start-l.period && l.algo == Window:
		n = &l.prev
	default:
		return false
	}
	if *n < g.Cost {
		return false
	}
	*n -= g.Cost
	return true
}

// undoGCRA removes a grant from the tat. It is exact if no other grant came since, and also if,
// without this grant, the limiter would have been in debt all the time: then each later grant only
// added to the debt. After one undo, the limiter cannot undo other grants.
func (l *limiter) undoGCRA(now int64, g Grant) bool {
	if l.tat != g.tat && l.minus(g.tat, g.took).less(fine{us: now}) {
		return false
	}
	l.tat = l.minus(l.tat, g.took)
	l.epoch++
	return true
}

func (l *limiter) undoLog(g Grant) bool {
	for i := len(l.tail)/logEntry - 1; i >= l.dead; i-- {
		at, cost := entryAt(l.tail, i)
		switch {
		case at < g.At || at == g.At && cost < g.Cost:
			return false
		case at == g.At:
			l.used -= g.Cost
			if cost -= g.Cost; cost > 0 {
				putEntry(l.tail[i*logEntry:], at, cost)
			} else {
				l.tail = slices.Delete(l.tail, i*logEntry, (i+1)*logEntry)
			}
			return true
		}
	}
	return false
}

// LimiterInfo describes a limiter.
type LimiterInfo struct {
	Algo             Algo
	Limit, Burst     int64
	Period           int64 // us
	Remaining, Reset int64 // as Taken has them
	Retry            int64 // us until the limiter allows a cost of 1; 0: now
	Reservations     []Reservation
}

// LimiterInfo describes a limiter with the parameters of the last request; ok is false if there is
// no such key. It counts as an access. O(reservations). Errors: ErrWrongType.
func (tx *Tx) LimiterInfo(key []byte) (i LimiterInfo, ok bool, err error) {
	h, err := tx.open(key, Limiter)
	if err != nil || h.r == nil {
		return i, false, err
	}
	var l limiter
	l.load(h.image())
	l.adopt(tx.now, l.options())
	i = LimiterInfo{Algo: l.algo, Limit: l.limit, Burst: l.capacity(), Period: l.period, Remaining: l.remaining(tx.now),
		Reset: max(0, l.full(tx.now)-tx.now), Retry: l.earliest(tx.now, 1) - tx.now}
	if l.algo == GCRA {
		for n := range len(l.tail) / reservationSize {
			i.Reservations = append(i.Reservations, reservationAt(l.tail, n))
		}
	}
	return i, true, nil
}
