package engine

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
)

// This file implements rate limiters.
//
// A limiter takes 48 bytes in its key's record, whatever the rate. The log of ALGO log or the
// reservations of ALGO gcra follow them:
//
//	form 1 │ epoch 7 │ limit 8 │ period, us 8 │ three numbers of the algorithm's │ tail
//
//	gcra    burst, theoretical arrival time (us, and a fraction of one)   t_limiter_gcra.go
//	window  start of the window, taken in the one before, taken in it     t_limiter_window.go
//	fixed   the same without the one before                               t_limiter_window.go
//	log     taken within the period, and each grant in the tail           t_limiter_log.go
//
//	Take: find the key ─▶ limiter.load ─▶ adopt the call's parameters ─▶ ask
//	                      ─▶ allowed: take, store in place, the key's deadline
//
// All state is integers, and each result is a pure function of (state, now, parameters). The key's
// deadline is the instant at which the limiter is full again: a full limiter and a missing one give
// the same results, so expiration removes the key. A denied request changes nothing.

// Algo is the algorithm of a limiter. The zero Algo is GCRA.
type Algo uint8

// These are the algorithms. In any span of time t the grants cost at most:
const (
	GCRA   Algo = iota // burst + t x limit / period
	Window             // limit in a window of a period, aligned to 1970; less than 2 x limit in any period
	Log                // limit in any period, exactly; the limiter stores each grant
	Fixed              // limit in a window of a period, aligned to 1970; 2 x limit in any period
	Algos
)

// String returns the name of the algorithm in commands (ALGO).
func (a Algo) String() string { return [...]string{"gcra", "window", "log", "fixed"}[a] }

// TakeOptions are a request to a limiter, and the limits that it applies. The key does not store
// the limits as a property, so a service may change them with any request.
//
// After a change, gcra keeps its debt as time. log counts the grants that it still stores; a longer
// period does not restore those that had left the shorter one. window and fixed count the grants of
// a window that overlaps with the new one.
type TakeOptions struct {
	Algo   Algo  // a key keeps its algorithm: another one is ErrWrongType
	Limit  int64 // grants in a period, from 1; at most MaxTokens, and MaxLogged for Log
	Period int64 // us, from 1000; at most MaxPeriod
	Burst  int64 // GCRA: grants at one instant; 0: Limit
	Cost   int64 // the number of grants that this request counts as; 0 only queries whether the limiter is within its bound
	Peek   bool  // query only: take nothing
	Behind bool  // other clients wait; the limiter denies the request, which would overtake them
}

// Limits of TakeOptions. They keep every instant below 2^57 us, and products
// within 128 bits.
const (
	MaxTokens = 1 << 50
	MaxPeriod = 1 << 50 // us: 35 years
	MaxLogged = 1_000_000

	maxFill = 1 << 55 // us: the longest time that a limiter takes to fill: 1,100 years
)

// These are the errors of TakeOptions.
var (
	ErrLimit    = errors.New("the limit must be from 1 to 1125899906842624")
	ErrPeriod   = errors.New("the period must be from 1 ms to 35 years")
	ErrBurst    = errors.New("BURST must be from 1 to 1125899906842624")
	ErrCost     = errors.New("COST must be from 0 to 1125899906842624")
	ErrNoCost   = errors.New("COST must be from 1 to 1125899906842624 here")
	ErrLogLimit = errors.New("ALGO log keeps every grant: its limit is at most 1000000")
	ErrNoBurst  = errors.New("BURST needs ALGO gcra: the others allow the limit at once")
	ErrLongFill = errors.New("BURST x period / limit is more than 1,000 years")
)

// check verifies options and fills in the burst.
func (o *TakeOptions) check() error {
	switch {
	case o.Limit < 1 || o.Limit > MaxTokens:
		return ErrLimit
	case o.Period < 1000 || o.Period > MaxPeriod:
		return ErrPeriod
	case o.Cost < 0 || o.Cost > MaxTokens:
		return ErrCost
	case o.Burst < 0 || o.Burst > MaxTokens:
		return ErrBurst
	case o.Algo == Log && o.Limit > MaxLogged:
		return ErrLogLimit
	case o.Algo != GCRA && o.Burst != 0 && o.Burst != o.Limit:
		return ErrNoBurst
	}
	if o.Burst == 0 {
		o.Burst = o.Limit
	}
	if o.Burst != o.Limit { // avoids a division
		hi, lo := bits.Mul64(uint64(o.Burst), uint64(o.Period))
		over, most := bits.Mul64(maxFill+1, uint64(o.Limit))
		if hi > over || hi == over && lo >= most {
			return ErrLongFill
		}
	}
	return nil
}

// Taken is the result of a request to a limiter.
type Taken struct {
	Allowed   bool
	Limit     int64 // the capacity of a full limiter: the burst
	Remaining int64 // the capacity that is left, after this request
	Retry     int64 // retry-after: us until the limiter would allow the request, without other requests; -1: it is allowed, or never will be
	Reset     int64 // reset-after: us until the limiter is full
	Grant     Grant // for Tx.GiveBack, if the request was allowed
}

// Grant is what a limiter has granted, for Tx.GiveBack.
type Grant struct {
	Cost, At int64 // the cost, and the instant in us
	took     fine  // GCRA: the distance by which it moved the theoretical arrival time
	tat      fine  // GCRA: the theoretical arrival time after the grant
	epoch    int64
}

// Take requests o.Cost from a limiter. A missing key counts as a full limiter. A denied request
// changes nothing. It costs one lookup and O(1). For Log it costs O(entries that have left the
// period since the last grant), and if denied O(entries that must leave).
//
// The generic cell rate algorithm is that of ITU-T I.371 and the ATM Forum's Traffic Management
// 4.1, in its virtual scheduling form; the burst tolerance is burst - 1 cells. The weighted window
// counter is the one commonly called sliding window counter.
//
// Errors: ErrWrongType, the errors of TakeOptions, ErrFull.
func (tx *Tx) Take(key []byte, o TakeOptions) (Taken, error) {
	if err := o.check(); err != nil {
		return Taken{}, err
	}
	h, err := tx.container(key, Limiter)
	if err != nil {
		return Taken{}, err
	}
	var l limiter
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
		t.Remaining = l.remaining(tx.now)
	}
	t.Reset = max(0, l.full(tx.now)-tx.now)
	return t, err
}

// askLimiter reads the limiter that h has found into l and checks whether it allows a
// request, without changing anything.
func (tx *Tx) askLimiter(h *hit, l *limiter, o *TakeOptions) (Taken, error) {
	if h.r == nil {
		l.algo, l.epoch = o.Algo, tx.now
	} else if l.load(h.image()); l.algo != o.Algo {
		return Taken{}, ErrWrongType
	}
	l.adopt(tx.now, o)
	t := Taken{Limit: l.capacity(), Retry: -1}
	if o.Cost <= t.Limit {
		at := l.earliest(tx.now, o.Cost)
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
func (tx *Tx) takeFrom(h *hit, key []byte, l *limiter, o *TakeOptions, t *Taken) error {
	l.take(tx.now, o.Cost)
	if err := tx.storeLimiter(h, key, l); err != nil {
		return err
	}
	t.Grant = Grant{o.Cost, tx.now, l.cost(o.Cost), l.tat, l.epoch}
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
	if o.Algo != GCRA {
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
			if h.sh.stats.LimiterDenied++; !t.Allowed { // the others would have allowed it
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
// millisecond after it. The first of these clients knows the instant. WakeAt does not change the
// value. O(1).
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

// limiter is a limiter's state, decoded from its record.
type limiter struct {
	algo   Algo
	limit  int64
	period int64 // us
	epoch  int64 // a grant of an earlier epoch cannot be given back

	burst int64 // GCRA
	tat   fine  // GCRA: the theoretical arrival time
	wide  fine  // GCRA: the time that the burst is worth; not stored
	one   fine  // GCRA: the time that a cost of 1 is worth; not stored

	start int64 // Window, Fixed: the start of the window that a request last took from, us
	prev  int64 // Window: the cost taken in the window before
	used  int64 // Window, Fixed: the cost taken in the window; Log: the cost in the tail from dead on

	dead int    // Log: the number of entries at the tail's start that no longer count
	tail []byte // GCRA: reservations; Log: entries. In the engine's memory

	nextAt, nextCost int64 // Log: an entry to add to the tail, if nextCost is above 0
}

const (
	limiterHead = 48
	limiterForm = 0x10 // version 1, and the algorithm in the low four bits
)

// load decodes a state from a valid image.
func (l *limiter) load(b []byte) {
	_ = b[limiterHead-1]
	l.algo = Algo(b[0] & 0x07)
	l.epoch, l.limit, l.period = limiterInt(b)>>8, limiterInt(b[8:]), limiterInt(b[16:])
	x, y, z := limiterInt(b[24:]), limiterInt(b[32:]), limiterInt(b[40:])
	switch l.algo {
	case GCRA:
		l.burst, l.tat = x, fine{y, z}
	case Log:
		l.dead, l.used = int(x), z
	default:
		l.start, l.prev, l.used = x, y, z
	}
	l.tail = b[limiterHead:]
}

// save encodes the state into an image of the right size, which may already have its
// tail.
func (l *limiter) save(b []byte) {
	if len(l.tail) > 0 && &b[limiterHead] != &l.tail[0] {
		copy(b[limiterHead:], l.tail)
	}
	if l.nextCost > 0 {
		putEntry(b[limiterHead+len(l.tail):], l.nextAt, l.nextCost)
	}
	l.tail, l.nextCost = b[limiterHead:], 0
	_ = b[limiterHead-1]
	putLimiterInt(b, l.epoch<<8|int64(limiterForm|l.algo))
	putLimiterInt(b[8:], l.limit)
	putLimiterInt(b[16:], l.period)
	x, y, z := l.start, l.prev, l.used
	switch l.algo {
	case GCRA:
		x, y, z = l.burst, l.tat.us, l.tat.num
	case Log:
		x, y = int64(l.dead), 0
	}
	putLimiterInt(b[24:], x)
	putLimiterInt(b[32:], y)
	putLimiterInt(b[40:], z)
}

func limiterInt(b []byte) int64       { return int64(binary.LittleEndian.Uint64(b)) }
func putLimiterInt(b []byte, n int64) { binary.LittleEndian.PutUint64(b, uint64(n)) }

// storeLimiter writes a state after a grant, and sets the key's deadline. It moves nothing if the
// length of the tail is unchanged. Errors: ErrFull, and nothing has changed.
func (tx *Tx) storeLimiter(h *hit, key []byte, l *limiter) error {
	deadline := min(ceilMillis(l.full(tx.now)), MaxDeadline)
	n := limiterHead + len(l.tail)
	if l.nextCost > 0 {
		n += logEntry
	}
	if h.r == nil {
		tx.vbuf = append(tx.vbuf[:0], make([]byte, n)...)
		l.save(tx.vbuf)
		err := tx.put(h, key, tx.vbuf, spec{flags: uint8(Limiter), deadline: deadline})
		l.stored(h)
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
	l.save(dst)
	tx.postpone(h, key, l, deadline) // the record may move
	l.stored(h)
	return nil
}

// stored makes the state refer to its tail in the record's present place.
func (l *limiter) stored(h *hit) {
	if len(l.tail) > 0 && h.r != nil {
		l.tail = []byte(h.image())[limiterHead:]
	}
}

// adopt gives a state the parameters of a call. now is in us, as everywhere.
func (l *limiter) adopt(now int64, o *TakeOptions) {
	if (l.limit != o.Limit || l.period != o.Period) && l.limit != 0 {
		l.epoch++
	}
	switch l.algo {
	case GCRA:
		l.adoptGCRA(now, o)
	case Log:
		l.limit, l.period = o.Limit, o.Period
		l.forget(now)
	default:
		l.adoptWindow(now, o)
	}
}

// capacity returns the capacity of a full limiter.
func (l *limiter) capacity() int64 {
	if l.algo == GCRA {
		return l.burst
	}
	return l.limit
}

// remaining returns the capacity that is left now.
func (l *limiter) remaining(now int64) int64 {
	switch l.algo {
	case GCRA:
		return l.remainingGCRA(now)
	case Log:
		return max(0, l.limit-l.used)
	}
	return max(0, l.limit-l.weight(now))
}

// earliest returns the first instant at which the limiter allows a cost that is not above
// the capacity, now or later, without other requests.
func (l *limiter) earliest(now, cost int64) int64 {
	switch l.algo {
	case GCRA:
		return l.earliestGCRA(now, cost)
	case Log:
		return l.earliestLog(now, cost)
	}
	return l.earliestWindow(now, cost)
}

// take takes an allowed cost.
func (l *limiter) take(now, cost int64) {
	switch l.algo {
	case GCRA:
		l.tat = l.after(l.tat, now, cost)
	case Log:
		l.takeLog(now, cost)
	default:
		l.used += cost
	}
}

// full returns the instant from which on the limiter behaves as a new one.
func (l *limiter) full(now int64) int64 {
	switch l.algo {
	case GCRA:
		return l.fullGCRA()
	case Log:
		return l.fullLog(now)
	}
	return l.fullWindow(now)
}
