package limiter

// Compact returns an image for a file: without Late, and without the entries of a log that no longer count. It may be img itself.
func Compact(img []byte) []byte {
	var s State
	switch s.Load(img); {
	case img[0]&Late != 0:
		img = append([]byte(nil), img...)
		img[0] &^= Late
		return img
	case s.algo != Log || s.dead == 0:
		return img
	}
	s.tail, s.dead = s.tail[s.dead*logEntry:], 0
	img = make([]byte, s.Size())
	s.Save(img)
	return img
}

// Restore returns a copy of an image from a file, in which unused fields are 0; ok is false if it is not a valid one.
func Restore(data []byte) (img []byte, ok bool) {
	if len(data) < Head || data[0]&0xf0 != form || Algo(data[0]&0x0f) >= Algos {
		return nil, false
	}
	img = append([]byte(nil), data...)
	var s State
	s.Load(img)
	p := s.Params()
	if p.Check() != nil || s.algo == GCRA && s.burst == 0 || !s.good() {
		return nil, false
	}
	s.Save(img)
	return img, true
}

// good reports whether a restored state is one that a limiter can have, with valid parameters.
func (s *State) good() bool {
	switch s.algo {
	case GCRA:
		return s.tat.us >= 0 && s.tat.us <= endless && s.tat.num >= 0 && s.tat.num < s.limit && s.goodReservations()
	case Log:
		return s.dead == 0 && s.goodEntries()
	}
	in := func(n int64) bool { return n >= 0 && n <= 2*MaxTokens }
	return in(s.prev) && in(s.used) && s.start >= 0 && s.start <= endless && s.start%s.period == 0 &&
		(s.algo == Window || s.prev == 0) && len(s.tail) == 0
}

func (s *State) goodReservations() bool {
	n := len(s.tail) / reservationSize
	last := int64(0)
	for i := range n {
		r := reservationAt(s.tail, i)
		if r.ID < 1 || r.Cost < 1 || r.Cost > MaxTokens || r.Due < last || r.Due > endless {
			return false
		}
		last = r.Due
	}
	return n <= MaxReservations && len(s.tail)%reservationSize == 0
}

func (s *State) goodEntries() bool {
	var last, sum int64 = -1, 0
	n := len(s.tail) / logEntry
	for i := range n {
		at, cost := entryAt(s.tail, i)
		if at <= last || at > endless || cost < 1 || cost > MaxLogged {
			return false
		}
		last, sum = at, sum+cost
	}
	return len(s.tail)%logEntry == 0 && sum == s.used
}
