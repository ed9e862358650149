package engine

import (
	"errors"
	"slices"
	"strconv"
)

// Reservations: grants in the future, in the tail of a GCRA limiter, in the order
// of their instants. One that is due is a grant like any other, and forgotten.

// Reservation is a grant in the future.
type Reservation struct {
	ID   int64 // for Tx.CancelReservation: a token, unique in the engine
	Cost int64
	Due  int64 // us since 1970
}

const (
	reservationSize = 24
	// MaxReservations is how many may be outstanding for a key: each grant walks
	// over them, and finding a place among them may take the square of their number.
	MaxReservations = 1000
)

// The errors of reservations.
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

// ReserveOptions say what is reserved.
type ReserveOptions struct {
	TakeOptions
	MaxWait int64 // us: no later than this from now; -1: however late
	ID      int64 // of a replay; 0: a new one
}

// Reserve takes from the future what cannot be had now, and says when it may be
// used: now, or at the earliest instant at which those before allow it. ok is
// false if that is too late, or others wait, and nothing has changed. Only for
// GCRA. O(outstanding reservations), seldom their square.
//
// Errors: ErrWrongType, ErrNeverServed, ErrReserved, those of TakeOptions, ErrFull.
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

// CancelReservation gives a reservation back that is not yet due, and reports
// whether it did. The others' turns stay as they are. O(outstanding
// reservations). Errors: ErrWrongType.
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

// settleLimiter stores a limiter that something was given back to. If it is full
// now it is removed, which is logged; the rest is for the caller to log.
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

// reserved returns the place of a reservation, -1 if it is not outstanding.
func (l *limiter) reserved(id int64) int {
	for i := range len(l.tail) / reservationSize {
		if reservationAt(l.tail, i).ID == id {
			return i
		}
	}
	return -1
}

// options are the parameters that a state was last used with.
func (l *limiter) options() *TakeOptions {
	return &TakeOptions{Algo: l.algo, Limit: l.limit, Period: l.period, Burst: l.burst}
}

// GiveBack returns a grant that nobody has got, and reports whether it counts no
// more. It stays taken where it has been built upon: gcra knows the sum of the
// grants only, and must not give more than it took. Errors: ErrWrongType.
func (tx *Tx) GiveBack(key []byte, g Grant) (ok bool, err error) {
	h, err := tx.container(key, Limiter)
	if err != nil || h.r == nil {
		return false, err
	}
	var l limiter
	l.load(h.image())
	l.adopt(tx.now, l.options())
	tx.ebuf = append(tx.ebuf[:0], l.tail...)
	l.tail = tx.ebuf // entries are changed in place
	if !l.undo(tx.now, g) {
		return false, nil
	}
	if err := tx.settleLimiter(&h, key, &l, "rl.giveback"); err != nil {
		return false, err
	}
	// What this is worth later follows from nothing that a log holds.
	if h.r != nil && tx.db.logging.Load() && !tx.replay {
		tx.emit(OwnPrefix+"RESTORE", key, tx.itoa(0, h.r.deadline()), tx.dump(nil, &h), []byte("REPLACE"), []byte("ABSTTL"))
	}
	return true, nil
}

// undo takes a grant out of a state.
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

// undoGCRA is exact where no other grant came since, and where without this one
// the limiter would have been in debt all the time: then each later grant only
// added to the debt. What one undo leaves says nothing about other grants.
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
	Retry            int64 // us until one can be taken, 0: now
	Reservations     []Reservation
}

// LimiterInfo describes a limiter with the parameters that it was last used with;
// ok is false if there is no such key. It is a read. O(reservations).
// Errors: ErrWrongType.
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
