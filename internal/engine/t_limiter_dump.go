package engine

import "github.com/ebbdb/ebb/internal/rdb"

// limiterModule dumps a limiter as the bytes of its record, the form first, and a log without its
// dead entries.
func limiterModule() module {
	return module{
		name:    "ebb-limit",
		dump:    func(tx *Tx, _ *rdb.Encoder, h *hit) []byte { return dumpLimiter(tx, h) },
		restore: restoreLimiter,
	}
}

func dumpLimiter(tx *Tx, h *hit) []byte {
	img := []byte(h.image())
	var l limiter
	switch l.load(img); {
	case img[0]&limiterLate != 0:
		img = append([]byte(nil), img...)
		img[0] &^= limiterLate
		return img
	case l.algo != Log || l.dead == 0:
		return img
	}
	l.tail, l.dead = l.tail[l.dead*logEntry:], 0
	img = make([]byte, limiterHead+len(l.tail))
	l.save(img)
	return img
}

func restoreLimiter(_ *Tx, data []byte) ([]byte, box, error) {
	if len(data) < limiterHead || data[0]&0xf0 != limiterForm || Algo(data[0]&0x0f) >= Algos {
		return nil, nil, rdb.ErrFormat
	}
	img := append([]byte(nil), data...)
	var l limiter
	l.load(img)
	o := l.options()
	if o.check() != nil || l.algo == GCRA && l.burst == 0 || !l.good() {
		return nil, nil, rdb.ErrFormat
	}
	l.save(img) // unused fields are 0
	return img, nil, nil
}

// good reports whether a restored state is one that a limiter can have, with valid parameters.
func (l *limiter) good() bool {
	switch l.algo {
	case GCRA:
		return l.tat.us >= 0 && l.tat.us <= endless && l.tat.num >= 0 && l.tat.num < l.limit && l.goodReservations()
	case Log:
		return l.dead == 0 && l.goodEntries()
	}
	in := func(n int64) bool { return n >= 0 && n <= 2*MaxTokens }
	return in(l.prev) && in(l.used) && l.start >= 0 && l.start <= endless && l.start%l.period == 0 &&
		(l.algo == Window || l.prev == 0) && len(l.tail) == 0
}

func (l *limiter) goodReservations() bool {
	n := len(l.tail) / reservationSize
	last := int64(0)
	for i := range n {
		r := reservationAt(l.tail, i)
		if r.ID < 1 || r.Cost < 1 || r.Cost > MaxTokens || r.Due < last || r.Due > endless {
			return false
		}
		last = r.Due
	}
	return n <= MaxReservations && len(l.tail)%reservationSize == 0
}

func (l *limiter) goodEntries() bool {
	var last, sum int64 = -1, 0
	n := len(l.tail) / logEntry
	for i := range n {
		at, cost := entryAt(l.tail, i)
		if at <= last || at > endless || cost < 1 || cost > MaxLogged {
			return false
		}
		last, sum = at, sum+cost
	}
	return len(l.tail)%logEntry == 0 && sum == l.used
}
