package lua

import "strings"

// maxMatchDepth limits the matcher's recursion: each repetition that the matcher tries
// takes one level. In Lua 5.1 only the C stack limits it, and an overflow ends the
// process. In tests redis-server survived 10,000 levels, and lua5.1 crashed at 30,000.
const maxMatchDepth = 20000

// matchSteps is the number of steps between two calls of Spend: about 5 us.
const matchSteps = 1024

// matcher runs a pattern over a text.
type matcher struct {
	*pattern
	state *State
	text  string
	steps int   // not yet spent
	err   error // from Spend
	fault string

	from, to [maxCaptures]int
	values   [maxCaptures]Value
}

const (
	noMatch = -1
	stopped = -2 // err or fault says why
)

// start makes the matcher ready for a pattern and a text.
func (m *matcher) start(s *State, p *pattern, text string) {
	m.pattern, m.state, m.text = p, s, text
	m.err, m.fault = nil, ""
}

// next finds the first match that begins at or after from. If there is none, or
// the search was stopped, begin is negative.
func (m *matcher) next(from int) (begin, end int) {
	if m.steps += 4; m.steps >= matchSteps && m.pay() == stopped {
		return stopped, 0
	}
	if m.plain {
		i := strings.Index(m.text[from:], m.literal)
		if i < 0 {
			return m.spend(len(m.text) - from), 0
		}
		if m.spend(i) == stopped {
			return stopped, 0
		}
		return from + i, from + i + len(m.literal)
	}
	for s := from; ; s++ {
		if m.first != nil && !m.anchored {
			if s = m.skip(s); s < 0 {
				return s, 0
			}
		}
		switch e := m.match(s, 0, 0); {
		case e >= 0:
			return s, e
		case e == stopped:
			return stopped, 0
		}
		if m.anchored || s == len(m.text) {
			return noMatch, 0
		}
	}
}

// skip returns the first position at or after s at which a match can begin.
func (m *matcher) skip(s int) int {
	if s < len(m.text) && m.first.has(m.text[s]) {
		return s
	}
	i := s
	if m.firstByte >= 0 {
		i = strings.IndexByte(m.text[s:], byte(m.firstByte))
		if i < 0 {
			return m.spend(len(m.text) - s)
		}
		i += s
	} else {
		for i < len(m.text) && !m.first.has(m.text[i]) {
			i++
		}
		if i == len(m.text) {
			return m.spend(len(m.text) - s)
		}
	}
	m.steps += (i - s) >> 4
	return i
}

// spend charges the steps of a scan of n bytes. It returns noMatch or stopped.
func (m *matcher) spend(n int) int {
	m.steps += n >> 4
	if m.steps >= matchSteps {
		return m.pay()
	}
	return noMatch
}

func (m *matcher) pay() int {
	n := m.steps
	m.steps = 0
	if m.err = m.state.Spend(n); m.err != nil {
		return stopped
	}
	return noMatch
}

// match matches the items from pc on with the text from s on. It returns the end
// of the match, noMatch or stopped.
func (m *matcher) match(s, pc, depth int) int {
	if m.steps >= matchSteps && m.pay() == stopped {
		return stopped
	}
	if depth > maxMatchDepth {
		m.fault = "pattern too complex"
		return stopped
	}
	text := m.text
	for ; ; pc++ {
		it := &m.items[pc]
		m.steps++
		switch it.op {
		case itemEnd:
			return s
		case itemByte:
			if s >= len(text) || text[s] != it.arg {
				return noMatch
			}
			s++
		case itemSet:
			if s >= len(text) || !it.set.has(text[s]) {
				return noMatch
			}
			s++
		case itemOptional:
			if s >= len(text) || !it.set.has(text[s]) {
				break
			}
			if it.only {
				s++
				break
			}
			if r := m.match(s+1, pc+1, depth+1); r != noMatch {
				return r
			}
		case itemMax:
			e := it.run(text, s)
			m.steps += (e - s) >> 2
			if it.only {
				if e == s && it.arg2 > 0 {
					return noMatch
				}
				s = e
				break
			}
			return m.maxExpand(it, s+int(it.arg2), e, pc, depth)
		case itemMin:
			if it.only {
				e := it.run(text, s)
				m.steps += (e - s) >> 2
				s = e
				break
			}
			return m.minExpand(it, s, pc, depth)
		case itemOpen, itemPosition:
			m.from[it.arg] = s
		case itemClose:
			m.to[it.arg] = s
		case itemBack:
			part := text[m.from[it.arg]:m.to[it.arg]]
			if !strings.HasPrefix(text[s:], part) {
				return noMatch
			}
			m.steps += len(part) >> 4
			s += len(part)
		case itemBalance:
			if s = m.balance(s, it.arg, it.arg2); s < 0 {
				return noMatch
			}
		case itemFrontier:
			if !it.frontier(text, s) {
				return noMatch
			}
		case itemFinish:
			if s != len(text) {
				return noMatch
			}
		case itemNever:
			return noMatch
		case itemFail:
			m.fault = m.fail
			return stopped
		}
	}
}

// frontier reports whether the item's set begins at s: whether it has the byte at s, and
// not the byte before it. Outside of the text both are zero.
func (it *item) frontier(text string, s int) bool {
	var before, after byte
	if s > 0 {
		before = text[s-1]
	}
	if s < len(text) {
		after = text[s]
	}
	return !it.set.has(before) && it.set.has(after)
}

// run returns the end of the run of bytes at s that are in the item's set.
func (it *item) run(text string, s int) int {
	if it.set == &anySet {
		return len(text)
	}
	set := it.set
	for s < len(text) && set.has(text[s]) {
		s++
	}
	return s
}

// maxExpand tries the rest of the pattern after the item at pc, from its longest run,
// which ends at e, down to the shortest, which ends at low.
func (m *matcher) maxExpand(it *item, low, e, pc, depth int) int {
	for ; e >= low; e-- {
		if it.follow != nil && (e == len(m.text) || !it.follow.has(m.text[e])) {
			if m.steps++; m.steps >= matchSteps && m.pay() == stopped {
				return stopped
			}
			continue
		}
		if r := m.match(e, pc+1, depth+1); r != noMatch {
			return r
		}
	}
	return noMatch
}

// minExpand does the same as maxExpand, but begins with the shortest run, which ends at s.
func (m *matcher) minExpand(it *item, s, pc, depth int) int {
	for {
		if it.arg2 == 1 {
			i := strings.IndexByte(m.text[s:], it.arg)
			if i < 0 {
				m.steps += (len(m.text) - s) >> 4
				return noMatch
			}
			m.steps += i >> 4
			s += i
		}
		if it.follow == nil || s < len(m.text) && it.follow.has(m.text[s]) {
			if r := m.match(s, pc+1, depth+1); r != noMatch {
				return r
			}
		} else if m.steps++; m.steps >= matchSteps && m.pay() == stopped {
			return stopped
		}
		if s >= len(m.text) || !it.set.has(m.text[s]) {
			return noMatch
		}
		s++
	}
}

// balance returns the end of the part of the text that begins with open at s and
// in which there are as many closing bytes.
func (m *matcher) balance(s int, open, closing byte) int {
	text := m.text
	if s >= len(text) || text[s] != open {
		return noMatch
	}
	depth := 1
	for i := s + 1; i < len(text); i++ {
		switch text[i] {
		case closing:
			if depth--; depth == 0 {
				m.steps += (i - s) >> 2
				return i + 1
			}
		case open:
			depth++
		}
	}
	m.steps += (len(text) - s) >> 2
	return noMatch
}
