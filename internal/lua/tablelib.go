package lua

// openTable adds the library table. Its functions reach items without
// metamethods, as Lua 5.1's do.
func openTable(s *State) {
	openLibrary(s, "table", []library{
		{"concat", tableConcat},
		{"foreach", tableForeach},
		{"foreachi", tableForeachi},
		{"getn", tableGetn},
		{"maxn", tableMaxn},
		{"insert", tableInsert},
		{"remove", tableRemove},
		{"setn", tableSetn},
		{"sort", tableSort},
	})
}

// library is a function of a library. openLibrary inserts them in the order of Lua 5.1,
// because pairs shows it.
type library struct {
	name string
	run  func(Call) error
}

// openLibrary makes a table of functions, and sets it as the global of its name.
func openLibrary(s *State, name string, fs []library) *Table {
	t := s.NewTable(0, len(fs))
	for _, f := range fs {
		_ = t.SetString(f.name, BuiltinValue(&Builtin{Name: f.name, Run: f.run}))
	}
	_ = s.Globals().SetString(name, TableValue(t))
	return t
}

// moveCost is the number of moved items that count as one step.
const moveCost = 16

// tableGetn implements table.getn(t): #t.
func tableGetn(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	return c.Return(Int(t.Len()))
}

// tableSetn implements table.setn, which in Lua 5.1 only raises the error that it is
// obsolete.
func tableSetn(c Call) error {
	if _, err := c.CheckTable(1); err != nil {
		return err
	}
	return c.Errorf("'setn' is obsolete")
}

// tableMaxn implements table.maxn(t): the greatest positive number among the keys.
func tableMaxn(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	greatest := 0.0
	for i := 0; ; {
		var k Value
		if k, _, i = t.Entry(i); i < 0 {
			break
		}
		if f, ok := k.AsNumber(); ok && f > greatest {
			greatest = f
		}
	}
	if err := c.State().Spend(t.size() / valueSize / moveCost); err != nil {
		return err
	}
	return c.Return(Number(greatest))
}

// tableInsert implements table.insert(t, [pos,] v).
func tableInsert(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	end := t.Len() + 1
	switch c.N() {
	case 2:
		if err := t.SetInt(end, c.Arg(2)); err != nil {
			return err
		}
		return c.Return()
	case 3:
	default:
		return c.Errorf("wrong number of arguments to 'insert'")
	}
	at, err := checkInt32(c, 2)
	if err != nil {
		return err
	}
	v := c.Arg(3)
	for i := max(end, at); i > at; i-- {
		if i <= len(t.array) && at >= 1 && !t.readonly {
			if err := c.State().Spend((i - at) / moveCost); err != nil {
				return err
			}
			copy(t.array[at:i], t.array[at-1:i-1])
			switch n := int(t.filled); {
			case i == n+1:
				t.filled++
			case i > n:
				t.filled = -1
			}
			break
		}
		if err := c.State().Spend(1); err != nil {
			return err
		}
		if err := t.SetInt(i, t.GetInt(i-1)); err != nil {
			return err
		}
	}
	if err := t.SetInt(at, v); err != nil {
		return err
	}
	return c.Return()
}

// tableRemove implements table.remove(t [, pos]), which returns what it has removed.
func tableRemove(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	end := t.Len()
	at := end
	if !c.Arg(2).IsNil() {
		if at, err = checkInt32(c, 2); err != nil {
			return err
		}
	}
	if at < 1 || at > end {
		return c.Return()
	}
	removed := t.GetInt(at)
	if end <= len(t.array) && !t.readonly {
		if err := c.State().Spend((end - at) / moveCost); err != nil {
			return err
		}
		copy(t.array[at-1:end-1], t.array[at:end])
		at = end
	}
	for ; at < end; at++ {
		if err := c.State().Spend(1); err != nil {
			return err
		}
		if err := t.SetInt(at, t.GetInt(at+1)); err != nil {
			return err
		}
	}
	if err := t.SetInt(end, Nil); err != nil {
		return err
	}
	return c.Return(removed)
}

// tableConcat implements table.concat(t [, sep [, i [, j]]]).
func tableConcat(c Call) error {
	sep, err := c.OptString(2, "")
	if err != nil {
		return err
	}
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	first, err := optInt32(c, 3, 1)
	if err != nil {
		return err
	}
	last := 0
	if c.Arg(4).IsNil() {
		last = t.Len()
	} else if last, err = checkInt32(c, 4); err != nil {
		return err
	}

	// Compute the length first, so that the bytes are counted before they are allocated.
	length, err := concatLength(c, t, len(sep), first, last)
	if err != nil {
		return err
	}
	if err := c.State().Charge(length); err != nil {
		return err
	}
	if err := c.State().Spend(length / 64); err != nil { // 64 copied bytes count as one step
		return err
	}
	b := make([]byte, 0, length)
	for i := first; i <= last; i++ {
		if v := t.GetInt(i); v.IsString() {
			b = append(b, v.str()...)
		} else {
			b = AppendNumber(b, v.number())
		}
		if i < last {
			b = append(b, sep...)
		}
	}
	return c.Return(Bytes(b))
}

// concatLength returns at least the length of the items of t from first to last with separators between them.
func concatLength(c Call, t *Table, sep, first, last int) (length int, err error) {
	for i := first; i <= last; i++ {
		switch v := t.GetInt(i); v.Kind() {
		case KindString:
			length += v.length()
		case KindNumber:
			length += maxNumberLength
		default:
			return 0, c.Errorf("invalid value (%s) at index %d in table for 'concat'", v.Kind(), i)
		}
		if i < last {
			length += sep
		}
		if length > MaxString {
			return 0, c.Errorf("string length overflow")
		}
		if (i-first)%concatStride == concatStride-1 {
			if err := c.State().Spend(concatStride); err != nil {
				return 0, err
			}
		}
	}
	return length, nil
}

const (
	// maxNumberLength is the length of the longest number that tostring makes,
	// "-1.2345678901234e-308", rounded up.
	maxNumberLength = 24
	// concatStride is the number of items between two calls of Spend by table.concat.
	concatStride = 256
)

// tableForeach implements table.foreach(t, f): f(k, v) for each entry, until it returns
// something that is not nil.
func tableForeach(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	f, err := c.CheckFunction(2)
	if err != nil {
		return err
	}
	for k, v, ok := t.Next(Nil); !k.IsNil() || !ok; k, v, ok = t.Next(k) {
		if !ok {
			return errInvalidKey
		}
		result, err := c.Thread().Call1(f, k, v)
		if err != nil {
			return err
		}
		if !result.IsNil() {
			return c.Return(result)
		}
	}
	return c.Return()
}

// tableForeachi implements table.foreachi(t, f): f(i, t[i]) for i from 1 to #t, until it
// returns something that is not nil.
func tableForeachi(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	f, err := c.CheckFunction(2)
	if err != nil {
		return err
	}
	for i, n := 1, t.Len(); i <= n; i++ {
		result, err := c.Thread().Call1(f, Int(i), t.GetInt(i))
		if err != nil {
			return err
		}
		if !result.IsNil() {
			return c.Return(result)
		}
	}
	return c.Return()
}

// checkInt32 does the work of CheckInt where C converts the number to an int, which keeps
// the low 32 bits.
func checkInt32(c Call, i int) (int, error) {
	n, err := c.CheckInt(i)
	return int(int32(n)), err
}

// optInt32 does the work of checkInt32 with a default.
func optInt32(c Call, i, d int) (int, error) {
	if c.Arg(i).IsNil() {
		return d, nil
	}
	return checkInt32(c, i)
}

// tableSort implements table.sort(t [, less]).
func tableSort(c Call) error {
	t, err := c.CheckTable(1)
	if err != nil {
		return err
	}
	less := Nil
	if !c.Arg(2).IsNil() {
		if less, err = c.CheckFunction(2); err != nil {
			return err
		}
	}
	s := sorting{c: c, t: t, less: less}
	n := t.Len()
	if less.IsNil() && n <= len(t.array) && !t.readonly {
		s.plain = plainKind(t.array[:n])
	}
	if err := s.sort(1, n); err != nil {
		return err
	}
	return c.Return()
}

// plainKind returns the kind of the values if they are all numbers or all strings, which
// compare without a metamethod. Otherwise it returns KindNil.
func plainKind(vs []Value) Kind {
	if len(vs) == 0 {
		return KindNil
	}
	kind := vs[0].Kind()
	if kind != KindNumber && kind != KindString {
		return KindNil
	}
	for _, v := range vs {
		if v.Kind() != kind {
			return KindNil
		}
	}
	return kind
}

// sorting is a run of table.sort, the quicksort of Lua 5.1. A comparison function can
// observe its steps, and if the function is not a valid order, the result depends on each
// of them. So sorting does the same comparisons and writes in the same order. It uses a
// faster path only for values that it compares without a function.
type sorting struct {
	c    Call
	t    *Table
	less Value // the comparison function, nil for <
	// plain is the kind of all items if they are all in the array part and cannot change
	// during the sort; KindNil otherwise.
	plain Kind
}

func (s *sorting) get(i int) Value {
	if s.plain != KindNil {
		return s.t.array[i-1]
	}
	return s.t.GetInt(i)
}

// set2 sets items i and j, in this order.
func (s *sorting) set2(i int, a Value, j int, b Value) error {
	if s.plain != KindNil {
		s.t.array[i-1], s.t.array[j-1] = a, b
		return nil
	}
	if err := s.t.SetInt(i, a); err != nil {
		return err
	}
	return s.t.SetInt(j, b)
}

// before reports whether a comes before b.
func (s *sorting) before(a, b Value) (bool, error) {
	switch {
	case s.plain == KindNumber:
		return a.number() < b.number(), nil
	case s.plain == KindString:
		if n := min(a.length(), b.length()); n > longString && a.p != b.p {
			if err := s.c.State().Spend(n >> 4); err != nil {
				return false, err
			}
		}
		return a.str() < b.str(), nil
	case s.less.IsNil():
		return s.c.Thread().Less(a, b)
	}
	v, err := s.c.Thread().Call1(s.less, a, b)
	return v.Truth(), err
}

// sort sorts the items lo to hi.
func (s *sorting) sort(lo, hi int) error {
	for lo < hi {
		if err := s.c.State().Spend(hi - lo); err != nil {
			return err
		}
		at, err := s.partition(lo, hi)
		if err != nil || hi-lo <= 2 {
			return err
		}
		// A call sorts the smaller part, and the loop sorts the larger one.
		if at-lo < hi-at {
			err = s.sort(lo, at-1)
			lo = at + 1
		} else {
			err = s.sort(at+1, hi)
			hi = at - 1
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// partition moves the items lo to hi around a pivot, and returns the index of the pivot:
// no item before it is greater, and no item after it is less. It sorts up to three items
// completely.
func (s *sorting) partition(lo, hi int) (int, error) {
	mid := (lo + hi) / 2
	if err := s.order(lo, mid, hi); err != nil || hi-lo <= 2 {
		return mid, err
	}
	pivot := s.get(mid)
	if err := s.set2(mid, s.get(hi-1), hi-1, pivot); err != nil {
		return 0, err
	}
	for i, j := lo, hi-1; ; {
		var a, b Value
		for {
			i++
			a = s.get(i)
			if before, err := s.before(a, pivot); err != nil {
				return 0, err
			} else if !before {
				break
			}
			if i > hi {
				return 0, s.c.Errorf("invalid order function for sorting")
			}
		}
		for {
			j--
			b = s.get(j)
			if before, err := s.before(pivot, b); err != nil {
				return 0, err
			} else if !before {
				break
			}
			if j < lo {
				return 0, s.c.Errorf("invalid order function for sorting")
			}
		}
		if j < i {
			return i, s.set2(hi-1, s.get(i), i, s.get(hi-1))
		}
		if err := s.set2(i, b, j, a); err != nil {
			return 0, err
		}
	}
}

// order sorts the items lo, mid, hi, of which mid may be lo.
func (s *sorting) order(lo, mid, hi int) error {
	a, b := s.get(lo), s.get(hi)
	swap, err := s.before(b, a)
	if err == nil && swap {
		err = s.set2(lo, b, hi, a)
	}
	if err != nil || hi-lo == 1 {
		return err
	}
	a, b = s.get(mid), s.get(lo)
	if swap, err = s.before(a, b); err != nil {
		return err
	}
	if swap {
		return s.set2(mid, b, lo, a)
	}
	b = s.get(hi)
	if swap, err = s.before(b, a); err != nil || !swap {
		return err
	}
	return s.set2(mid, b, hi, a)
}
