package engine

import (
	"strconv"

	"github.com/ebbdb/ebb/internal/limiter"
)

// ReserveOptions are the options of a reservation.
type ReserveOptions struct {
	TakeOptions
	MaxWait int64 // the longest wait from now, in us; -1: no bound
	ID      int64 // in a replay, the reservation's token; 0: a new one
}

// Reserve takes a cost now, or in the future if the limiter does not allow it now. It returns the instant
// from which the client may use the grant: now, or the earliest instant that the earlier reservations allow.
// If that is later than MaxWait, or other clients wait, ok is false and nothing has changed. Reserve works
// with GCRA only. O(outstanding reservations), rarely their square.
//
// Errors: ErrWrongType, ErrNeverServed, limiter.ErrReserved, those of Take.
func (tx *Tx) Reserve(key []byte, o ReserveOptions) (r limiter.Reservation, ok bool, err error) {
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
	var l limiter.State
	if _, err := tx.askLimiter(&h, &l, &o.TakeOptions); err != nil {
		return r, false, err
	}
	r = limiter.Reservation{ID: o.ID, Cost: o.Cost, Due: l.Earliest(tx.now, o.Cost)}
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

func (tx *Tx) reserve(h *hit, key []byte, l *limiter.State, r limiter.Reservation, o *ReserveOptions) error {
	if r.Due <= tx.now {
		l.Take(tx.now, r.Cost)
	} else {
		var err error
		if tx.ebuf, err = l.Reserve(r, tx.ebuf); err != nil {
			return err
		}
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
	var l limiter.State
	l.Load(h.image())
	if r, ok := l.Reserved(id); !ok || r.Due <= tx.now && !tx.replay {
		return false, nil
	}
	tx.ebuf = l.Cancel(id, tx.ebuf)
	err = tx.settleLimiter(&h, key, &l, "rl.cancel")
	if h.r != nil && err == nil {
		tx.emit("RL.CANCEL", key, tx.itoa(0, id))
	}
	return err == nil, err
}
