package lua

import "strings"

func (l *stringLib) find(c Call) error  { return l.search(c, true) }
func (l *stringLib) match(c Call) error { return l.search(c, false) }

// search implements string.find and string.match.
func (l *stringLib) search(c Call, find bool) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	p, err := c.CheckString(2)
	if err != nil {
		return err
	}
	init, err := c.OptInt(3, 1)
	if err != nil {
		return err
	}
	init = min(max(position(init, len(s))-1, 0), len(s))
	if find && (c.Arg(4).Truth() || isPlain(p)) {
		return l.findPlain(c, s, p, init)
	}
	m, err := l.matcher(p, s, true)
	if err != nil {
		return err
	}
	begin, end := m.next(init)
	if begin < 0 {
		if err := m.failed(c); err != nil {
			return err
		}
		l.release(m)
		return c.Return(Nil)
	}
	vs := m.values[:0]
	if find {
		vs = append(vs, Int(begin+1), Int(end))
		begin = -1
	}
	vs, err = l.captures(c, m, vs, begin, end)
	if err == nil {
		err = c.Return(vs...)
	}
	l.release(m)
	return err
}

// isPlain reports whether string.find treats a pattern as plain text. It stops at a zero
// byte, and does not count a lone ")" or "]" as special.
func isPlain(p string) bool {
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '^', '$', '*', '+', '?', '.', '(', '[', '%', '-':
			return false
		case 0:
			return true
		}
	}
	return true
}

func (l *stringLib) findPlain(c Call, s, p string, init int) error {
	i := strings.Index(s[init:], p)
	looked := i
	if i < 0 {
		looked = len(s) - init
	}
	if err := l.spend(looked); err != nil {
		return err
	}
	if i < 0 {
		return c.Return(Nil)
	}
	return c.Return(Int(init+i+1), Int(init+i+len(p)))
}

// captures appends the captures of a match. If the match has none and begin is not
// negative, it appends the match itself.
func (l *stringLib) captures(c Call, m *matcher, vs []Value, begin, end int) ([]Value, error) {
	if m.pattern.captures == 0 && begin >= 0 {
		v, err := l.part(m.text, begin, end)
		return append(vs, v), err
	}
	for k := range m.pattern.captures {
		v, err := l.capture(c, m, k, begin, end)
		if err != nil {
			return vs, err
		}
		vs = append(vs, v)
	}
	return vs, nil
}

// capture returns capture k of a match; capture 0 of a pattern without captures is the
// match itself.
func (l *stringLib) capture(c Call, m *matcher, k, begin, end int) (Value, error) {
	switch {
	case k >= m.pattern.captures:
		if k != 0 {
			return Nil, c.Errorf("invalid capture index")
		}
		return l.part(m.text, begin, end)
	case m.unfinished>>k&1 != 0:
		return Nil, c.Errorf("unfinished capture")
	case m.positions>>k&1 != 0:
		return Int(m.from[k] + 1), nil
	}
	return l.part(m.text, m.from[k], m.to[k])
}

// failed returns the error that stopped the matcher; nil if none did.
func (m *matcher) failed(c Call) error {
	if m.err != nil {
		return m.err
	}
	if m.fault != "" {
		return c.Errorf("%s", m.fault)
	}
	return nil
}

// iterator holds the state of the function that string.gmatch returns.
type iterator struct {
	builtin Builtin
	lib     *stringLib
	pattern *pattern
	text    string
	at      int
}

func (l *stringLib) gmatch(c Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	p, err := c.CheckString(2)
	if err != nil {
		return err
	}
	compiled, err := l.pattern(p, false)
	if err != nil {
		return err
	}
	if err := l.state.Charge(iteratorBytes); err != nil {
		return err
	}
	it := &iterator{lib: l, pattern: compiled, text: s}
	it.builtin = Builtin{Name: "gmatch_aux", Run: it.next, Held: String(s)}
	return c.Return(BuiltinValue(&it.builtin))
}

func (it *iterator) next(c Call) error {
	if it.at > len(it.text) {
		return c.Return()
	}
	m := it.lib.takeMatcher()
	m.start(it.lib.state, it.pattern, it.text)
	begin, end := m.next(it.at)
	if begin < 0 {
		if err := m.failed(c); err != nil {
			return err
		}
		it.lib.release(m)
		return c.Return()
	}
	it.at = end
	if begin == end {
		it.at++
	}
	vs, err := it.lib.captures(c, m, m.values[:0], begin, end)
	if err == nil {
		err = c.Return(vs...)
	}
	it.lib.release(m)
	return err
}

func (l *stringLib) gsub(c Call) error {
	s, err := c.CheckString(1)
	if err != nil {
		return err
	}
	p, err := c.CheckString(2)
	if err != nil {
		return err
	}
	limit, err := c.OptInt(4, len(s)+1)
	if err != nil {
		return err
	}
	by := c.Arg(3)
	switch by.Kind() {
	case KindNumber, KindString, KindFunction, KindTable:
	default:
		return c.ArgError(3, "string/function/table expected")
	}
	r := replacement{by: by}
	if r.text, r.isText = by.AsString(); by.IsNumber() {
		r.text, r.isText = FormatNumber(by.number()), true
	}
	r.verbatim = r.isText && strings.IndexByte(r.text, '%') < 0
	m, err := l.matcher(p, s, true)
	if err != nil {
		return err
	}
	b, n, err := l.substitute(c, m, l.takeScratch(), r, int(int32(limit)))
	if err != nil {
		return l.dropScratch(b, err)
	}
	l.release(m)
	if n == 0 {
		l.keepScratch(b)
		return c.Return(String(s), Int(0))
	}
	v, err := l.finish(b)
	if err != nil {
		return err
	}
	return c.Return(v, Int(n))
}

// replacement is the third argument of gsub.
type replacement struct {
	by       Value
	text     string
	isText   bool
	verbatim bool // a text without "%"
}

// substitute appends to b the matcher's text, in which it replaces up to limit matches. It
// returns the number of replaced matches.
func (l *stringLib) substitute(c Call, m *matcher, b []byte, r replacement, limit int) ([]byte, int, error) {
	text := m.text
	at, done, n := 0, 0, 0 // done: the length of the text that is already in b
	for n < limit {
		begin, end := m.next(at)
		if begin < 0 {
			if err := m.failed(c); err != nil {
				return b, n, err
			}
			break
		}
		n++
		var err error
		if b, err = l.append(b, text[done:begin]); err != nil {
			return b, n, err
		}
		if r.verbatim {
			b, err = l.append(b, r.text)
		} else {
			b, err = l.appendReplacement(c, m, b, r, begin, end)
		}
		if err != nil {
			return b, n, err
		}
		done, at = end, end
		if begin == end {
			at++
		}
		if m.anchored || at > len(text) {
			break
		}
	}
	if n == 0 {
		return b, 0, nil
	}
	b, err := l.append(b, text[done:])
	return b, n, err
}

func (l *stringLib) appendReplacement(c Call, m *matcher, b []byte, r replacement, begin, end int) ([]byte, error) {
	if r.isText {
		return l.expand(c, m, b, r.text, begin, end)
	}
	v, err := l.replacementOf(c, m, r.by, begin, end)
	if err != nil {
		return b, err
	}
	switch v.Kind() {
	case KindString:
		return l.append(b, v.str())
	case KindNumber:
		if b, err = l.reserve(b, maxItem); err != nil {
			return b, err
		}
		return AppendNumber(b, v.number()), nil
	}
	if !v.Truth() {
		return l.append(b, m.text[begin:end])
	}
	return b, c.Errorf("invalid replacement value (a %s)", v.Kind())
}

// replacementOf gets the replacement of a match from a function or a table.
func (l *stringLib) replacementOf(c Call, m *matcher, by Value, begin, end int) (Value, error) {
	if by.IsTable() {
		// The table does not keep the key, so the key can alias the text.
		if t := by.table(); t.Meta() == nil && m.pattern.captures == 0 {
			return t.GetString(m.text[begin:end]), nil
		}
		k, err := l.capture(c, m, 0, begin, end)
		if err != nil {
			return Nil, err
		}
		return c.Thread().Index(by, k)
	}
	vs, err := l.captures(c, m, m.values[:0], begin, end)
	if err != nil {
		return Nil, err
	}
	return c.Thread().Call1(by, vs...)
}

// expand appends a replacement text, and inserts the captures that the text names. A "%"
// at its end stands for a zero byte, because C reads the zero byte after the string.
func (l *stringLib) expand(c Call, m *matcher, b []byte, text string, begin, end int) ([]byte, error) {
	for {
		i := strings.IndexByte(text, '%')
		if i < 0 {
			return l.append(b, text)
		}
		var err error
		if b, err = l.append(b, text[:i]); err != nil {
			return b, err
		}
		k, rest := "\x00", ""
		if i+1 < len(text) {
			k, rest = text[i+1:i+2], text[i+2:]
		}
		text = rest
		switch {
		case !isDigit(k[0]):
			b, err = l.append(b, k)
		case k == "0":
			b, err = l.append(b, m.text[begin:end])
		default:
			b, err = l.appendCapture(c, m, b, int(k[0]-'1'), begin, end)
		}
		if err != nil {
			return b, err
		}
	}
}

// appendCapture appends what capture returns, without a Value.
func (l *stringLib) appendCapture(c Call, m *matcher, b []byte, k, begin, end int) ([]byte, error) {
	if k < m.pattern.captures && (m.unfinished|m.positions)>>k&1 == 0 {
		return l.append(b, m.text[m.from[k]:m.to[k]])
	}
	if k == 0 && m.pattern.captures == 0 {
		return l.append(b, m.text[begin:end])
	}
	v, err := l.capture(c, m, k, begin, end)
	if err != nil {
		return b, err
	}
	if b, err = l.reserve(b, maxItem); err != nil {
		return b, err
	}
	return AppendNumber(b, v.number()), nil
}

// matcher returns a matcher for a pattern and a text. The caller must release it. anchors
// has the meaning that it has for compilePattern.
func (l *stringLib) matcher(p, text string, anchors bool) (*matcher, error) {
	compiled, err := l.pattern(p, anchors)
	if err != nil {
		return nil, err
	}
	m := l.takeMatcher()
	m.start(l.state, compiled, text)
	return m, nil
}

func (l *stringLib) takeMatcher() *matcher {
	m := l.spare
	if m == nil {
		return new(matcher)
	}
	l.spare = nil
	return m
}

// release returns a matcher for reuse. After an error the caller may drop the matcher
// instead.
func (l *stringLib) release(m *matcher) {
	m.text = ""
	l.spare = m
}

// pattern returns a compiled pattern and caches it.
func (l *stringLib) pattern(text string, anchors bool) (*pattern, error) {
	// The cache holds patterns that were compiled with anchors. So pattern does not cache
	// one that begins with "^" when anchors is false.
	keep := len(text) <= maxCachedPattern && (anchors || text == "" || text[0] != '^')
	slot := &l.patterns[slotOf(text)]
	if keep && *slot != nil && (*slot).text == text {
		return *slot, nil
	}
	if err := l.spend(len(text) << 6); err != nil {
		return nil, err
	}
	if err := l.state.Charge(len(text) * itemBytes); err != nil {
		return nil, err
	}
	if !keep {
		return compilePattern(text, anchors), nil
	}
	*slot = compilePattern(strings.Clone(text), anchors)
	return *slot, nil
}

// slotOf returns the cache slot of a text, from its length and three bytes. That is enough
// for the few patterns of a program; if two texts collide, pattern compiles them again.
func slotOf(text string) int {
	n := len(text)
	if n == 0 {
		return 0
	}
	return (n*31 + int(text[0])*7 + int(text[n/2])*3 + int(text[n-1])) % 64
}
