package lua

// event is a key that a metatable can define, such as __index.
type event uint8

// The machine often looks for the first eight, so Table.absent has a bit for each.
const (
	eventIndex event = iota
	eventNewIndex
	eventEq
	eventLt
	eventLe
	eventCall
	eventLen
	eventConcat
	eventAdd
	eventSub
	eventMul
	eventDiv
	eventMod
	eventPow
	eventUnm
	eventToString
	eventMetatable
	numEvents
)

// eventNames are the keys in metatables.
var eventNames = func() (names [numEvents]Value) {
	for i, name := range [...]string{"__index", "__newindex", "__eq", "__lt", "__le", "__call", "__len", "__concat",
		"__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "__tostring", "__metatable"} {
		names[i] = String(name).hashed()
	}
	return names
}()

// maxChain is the most steps of a chain of __index or __newindex, as MAXTAGLOOP of Lua.
const maxChain = 100

// event returns the value of e in the metatable t, which may be nil; it returns nil if
// there is none.
func (t *Table) event(e event) Value {
	if t == nil || e < 8 && t.absent&(1<<e) != 0 {
		return Nil
	}
	v := t.getStr(eventNames[e])
	if v.IsNil() && e < 8 {
		t.absent |= 1 << e
	}
	return v
}

// meta returns the metatable of a value, nil if it has none.
func (s *State) meta(v Value) *Table {
	switch v.w >> tagShift {
	case tagTable:
		return v.table().meta
	case tagString:
		return s.strings
	}
	return nil
}

// get does the same as Get. It also stores the hash of a string key in *k, because
// programs often use the register of a key again, as in t[k] = t[k] + 1.
func (t *Table) get(k *Value) Value {
	if !k.IsString() {
		return t.Get(*k)
	}
	if k.length() > longString {
		t.heap.state.read(4 * k.length())
	}
	if k.w&hashMask == 0 {
		if h := k.hashed(); h.w != k.w {
			k.w = h.w
		}
	}
	return t.getStr(*k)
}

// freeTop returns the first unused slot of the stack.
func (t *Thread) freeTop() int {
	if t.ci.closure == nil {
		return t.top
	}
	return t.ci.base + t.ci.closure.proto.Registers
}

// callMeta calls a metamethod and returns its first result.
func (t *Thread) callMeta(f, a, b Value) (Value, error) {
	fn := t.freeTop()
	top := t.top
	if err := t.reserve(fn + 3); err != nil {
		return Nil, err
	}
	ci := t.ci
	args := t.stack[fn:]
	args[0], args[1], args[2] = f, a, b
	if err := t.callAt(fn, 2); err != nil {
		return Nil, err
	}
	t.ci, t.top = ci, top
	if t.results == 0 {
		return Nil, nil
	}
	return t.stack[fn], nil
}

// index returns v[k]. register is the register of v, for the message.
func (t *Thread) index(v, k Value, register int) (Value, error) {
	for range maxChain {
		var how Value
		if v.IsTable() {
			h := v.table()
			if x := h.Get(k); !x.IsNil() {
				return x, nil
			}
			if how = h.meta.event(eventIndex); how.IsNil() {
				return Nil, nil
			}
		} else if how = t.state.meta(v).event(eventIndex); how.IsNil() {
			return Nil, t.typeError("index", v, register)
		}
		if how.IsFunction() {
			return t.callMeta(how, v, k)
		}
		v, register = how, unnamed
	}
	return Nil, t.errorf("loop in gettable")
}

// setIndex runs v[k] = x.
func (t *Thread) setIndex(v, k, x Value, register int) error {
	for range maxChain {
		var how Value
		if v.IsTable() {
			h := v.table()
			if h.readonly {
				return t.raised(ErrReadonly)
			}
			at, err := h.slot(k)
			if err != nil {
				return t.raised(err)
			}
			if at.IsNil() {
				how = h.meta.event(eventNewIndex)
			}
			if how.IsNil() {
				*at = x
				return nil
			}
		} else if how = t.state.meta(v).event(eventNewIndex); how.IsNil() {
			return t.typeError("index", v, register)
		}
		if how.IsFunction() {
			return t.callMeta3(how, v, k, x)
		}
		v, register = how, unnamed
	}
	return t.errorf("loop in settable")
}

// callMeta3 calls __newindex.
func (t *Thread) callMeta3(f, a, b, c Value) error {
	fn := t.freeTop()
	top := t.top
	if err := t.reserve(fn + 4); err != nil {
		return err
	}
	ci := t.ci
	args := t.stack[fn:]
	args[0], args[1], args[2], args[3] = f, a, b, c
	if err := t.callAt(fn, 3); err != nil {
		return err
	}
	t.ci, t.top = ci, top
	return nil
}

// method returns v[key] if the lookup needs only tables, and nil otherwise. It is the fast
// path of method calls, which mostly find the method in the table of a class.
func (t *Thread) method(v Value, key *Value) Value {
	for range maxChain {
		var meta *Table
		switch v.w >> tagShift {
		case tagTable:
			h := v.table()
			if x := h.getStr(*key); x.w != wNil {
				return x
			}
			meta = h.meta
		case tagString:
			meta = t.state.strings
		}
		if v = meta.event(eventIndex); !v.IsTable() {
			return Nil
		}
	}
	return Nil
}

// Each of the following methods runs an instruction of the running function, in all its
// cases.

// set stores a register of the running function.
func (t *Thread) set(register int, v Value) { t.stack[t.ci.base+register] = v }

func (t *Thread) getGlobal(i Instruction) error {
	f := t.ci.closure
	v, err := t.index(TableValue(f.env), f.proto.constants[i.d()], unnamed)
	if err == nil {
		t.set(i.a(), v)
	}
	return err
}

func (t *Thread) setGlobal(i Instruction) error {
	f := t.ci.closure
	v, _ := t.operand(i.a())
	return t.setIndex(TableValue(f.env), f.proto.constants[i.d()], v, unnamed)
}

func (t *Thread) getTable(i Instruction) error {
	b, register := t.operand(i.b())
	c, _ := t.operand(i.c())
	v, err := t.index(b, c, register)
	if err == nil {
		t.set(i.a(), v)
	}
	return err
}

func (t *Thread) setTable(i Instruction) error {
	a, register := t.operand(i.a())
	b, _ := t.operand(i.b())
	c, _ := t.operand(i.c())
	return t.setIndex(a, b, c, register)
}

func (t *Thread) self(i Instruction) error {
	b, register := t.operand(i.b())
	c, _ := t.operand(i.c())
	v, err := t.index(b, c, register)
	if err == nil {
		t.set(i.a()+1, b)
		t.set(i.a(), v)
	}
	return err
}

// arithmetic runs OpAdd to OpUnm.
func (t *Thread) arithmetic(i Instruction) error {
	b, rb := t.operand(i.b())
	c, rc := b, rb
	if i.op() != OpUnm {
		c, rc = t.operand(i.c())
	}
	x, okB := t.state.toNumber(b)
	y, okC := t.state.toNumber(c)
	if okB && okC {
		t.set(i.a(), Number(calculate(i.op(), x, y)))
		return nil
	}
	e := eventAdd + event(i.op()-OpAdd)
	how := t.state.meta(b).event(e)
	if how.IsNil() {
		how = t.state.meta(c).event(e)
	}
	if how.IsNil() {
		if okB {
			b, rb = c, rc
		}
		return t.typeError("perform arithmetic on", b, rb)
	}
	v, err := t.callMeta(how, b, c)
	if err == nil {
		t.set(i.a(), v)
	}
	return err
}

// calculate returns the result of an arithmetic operation on numbers.
func calculate(op Op, x, y float64) float64 {
	switch op {
	case OpAdd:
		return x + y
	case OpSub:
		return x - y
	case OpMul:
		return x * y
	case OpDiv:
		return x / y
	case OpMod:
		return luaMod(x, y)
	case OpPow:
		if y == 2 {
			return x * x
		}
		return pow(x, y)
	}
	return -x
}

// toNumber returns a number, or the number that a string contains.
func (s *State) toNumber(v Value) (float64, bool) {
	if v.IsNumber() {
		return v.number(), true
	}
	if v.IsString() {
		s.read(8 * v.length())
		return ParseNumber(v.str())
	}
	return 0, false
}

// length runs OpLen for a value that is neither a table nor a string.
func (t *Thread) length(i Instruction) error {
	v, register := t.operand(i.b())
	return t.typeError("get length of", v, register)
}

// equal does the same as Equal, and charges the cost of comparing long strings.
func (t *Thread) equal(a, b Value) bool {
	if n := a.length(); n > longString && n == b.length() && a.p != b.p && a.IsString() {
		t.state.read(n)
	}
	return Equal(a, b)
}

// lessString reports whether a < b, for strings.
func (s *State) lessString(a, b Value) bool {
	s.read(min(a.length(), b.length()))
	return a.str() < b.str()
}

// equalTables runs == for two different tables. It calls the metamethod if both tables
// have the same one.
func (t *Thread) equalTables(a, b *Table) (bool, error) {
	how := a.meta.event(eventEq)
	if how.IsNil() || a.meta != b.meta && !Equal(how, b.meta.event(eventEq)) {
		return false, nil
	}
	v, err := t.callMeta(how, TableValue(a), TableValue(b))
	return v.Truth(), err
}

// compare runs a < b or a <= b by the metamethod, which must be the same for both.
func (t *Thread) compare(a, b Value, e event) (result, ok bool, err error) {
	how := t.state.meta(a).event(e)
	if how.IsNil() || !Equal(how, t.state.meta(b).event(e)) {
		return false, false, nil
	}
	v, err := t.callMeta(how, a, b)
	return v.Truth(), true, err
}

func (t *Thread) less(a, b Value) (bool, error) {
	switch {
	case a.IsNumber() && b.IsNumber():
		return a.number() < b.number(), nil
	case a.IsString() && b.IsString():
		return t.state.lessString(a, b), nil
	case a.Kind() == b.Kind():
		if result, ok, err := t.compare(a, b, eventLt); ok {
			return result, err
		}
	}
	return false, t.compareError(a, b)
}

func (t *Thread) lessOrEqual(a, b Value) (bool, error) {
	switch {
	case a.IsNumber() && b.IsNumber():
		return a.number() <= b.number(), nil
	case a.IsString() && b.IsString():
		return !t.state.lessString(b, a), nil
	case a.Kind() == b.Kind():
		if result, ok, err := t.compare(a, b, eventLe); ok {
			return result, err
		}
		if result, ok, err := t.compare(b, a, eventLt); ok {
			return !result, err
		}
	}
	return false, t.compareError(a, b)
}

// concatenate runs OpConcat, from the right, if some values are neither strings nor
// numbers.
func (t *Thread) concatenate(i Instruction) error {
	first, last := i.b(), i.c()
	base := t.ci.base
	for last > first {
		b, c := t.stack[base+last-1], t.stack[base+last]
		if joins(b) && joins(c) {
			from := last - 1
			for from > first && joins(t.stack[base+from-1]) {
				from--
			}
			v, err := t.state.join(t.stack[base+from : base+last+1])
			if err != nil {
				return err
			}
			last = from
			t.stack[base+last] = v
			continue
		}
		how := t.state.meta(b).event(eventConcat)
		if how.IsNil() {
			how = t.state.meta(c).event(eventConcat)
		}
		if how.IsNil() {
			if joins(b) {
				return t.typeError("concatenate", c, last)
			}
			return t.typeError("concatenate", b, last-1)
		}
		v, err := t.callMeta(how, b, c)
		if err != nil {
			return err
		}
		last--
		t.stack[base+last] = v
	}
	t.set(i.a(), t.stack[base+first])
	return nil
}

// forNumbers converts the three initial values of a numeric for loop.
func (t *Thread) forNumbers(r *[3]Value) error {
	for j, name := range [...]string{"initial value", "limit", "step"} {
		f, ok := t.state.toNumber(r[j])
		if !ok {
			return t.errorf("'for' %s must be a number", name)
		}
		r[j] = Number(f)
	}
	return nil
}

// callable puts the metamethod __call of the value in slot fn before it, so that
// the value is the first argument.
func (t *Thread) callable(fn, n, register int) error {
	v := t.stack[fn]
	how := t.state.meta(v).event(eventCall)
	if !how.IsFunction() {
		return t.typeError("call", v, register)
	}
	if err := t.reserve(fn + n + 2); err != nil {
		return err
	}
	copy(t.stack[fn+1:fn+n+2], t.stack[fn:fn+n+1])
	t.stack[fn] = how
	return nil
}

// tailCall replaces the running function by the one in slot fn.
func (t *Thread) tailCall(fn, n int) error {
	ci := t.ci
	if t.open != nil {
		t.close(ci.base)
	}
	copy(t.stack[ci.fn:], t.stack[fn:fn+n+1])
	f := t.stack[ci.fn].closure()
	base, err := t.frameFor(f.proto, ci.fn, n)
	if err != nil {
		return err
	}
	ci.closure, ci.base, ci.pc = f, base, 0
	ci.tail++
	return t.state.Spend(callCost + len(f.proto.code)>>3)
}

// newClosure does the work of OpClosure.
func (t *Thread) newClosure(i Instruction) (Value, error) {
	outer := t.ci.closure
	p := outer.proto.children[i.d()]
	n := len(p.upvalues)
	if err := t.state.heap.charge(closureBytes + n*(upvalueBytes+8)); err != nil {
		return Nil, err
	}
	f := closureOf(n)
	f.proto, f.env = p, outer.env
	if n > 0 {
		for j, u := range p.upvalues {
			if u.local {
				f.upvalues[j] = t.upvalueAt(t.ci.base + u.index)
			} else {
				f.upvalues[j] = outer.upvalues[u.index]
			}
		}
	}
	return ClosureValue(f), nil
}

// closureOf returns a closure with room for n upvalues, which are allocated
// together if they are few.
func closureOf(n int) *Closure {
	switch {
	case n == 0:
		return new(Closure)
	case n <= 2:
		m := new(struct {
			Closure
			upvalues [2]*upvalue
		})
		m.Closure.upvalues = m.upvalues[:n]
		return &m.Closure
	case n <= 4:
		m := new(struct {
			Closure
			upvalues [4]*upvalue
		})
		m.Closure.upvalues = m.upvalues[:n]
		return &m.Closure
	}
	return &Closure{upvalues: make([]*upvalue, n)}
}

// iterated finishes OpTForLoop after the iterator has returned, and returns the next pc.
func (t *Thread) iterated(ci *frame) int {
	i := ci.closure.proto.code[ci.pc-1]
	r := t.stack[ci.base+i.a()+2:]
	if r[1].IsNil() {
		return ci.pc
	}
	r[0] = r[1]
	return ci.pc + i.d()
}

// Builtins use the following methods.

// Index returns v[k] with metamethods.
func (t *Thread) Index(v, k Value) (Value, error) {
	here := t.here()
	if err := t.enter(); err != nil {
		return Nil, err
	}
	x, err := t.index(v, k, unnamed)
	return x, t.back(here, err)
}

// Less returns a < b with metamethods.
func (t *Thread) Less(a, b Value) (bool, error) {
	if a.IsNumber() && b.IsNumber() {
		return a.number() < b.number(), nil
	}
	if a.IsString() && b.IsString() {
		return t.state.lessString(a, b), nil
	}
	here := t.here()
	if err := t.enter(); err != nil {
		return false, err
	}
	ok, err := t.less(a, b)
	return ok, t.back(here, err)
}

// back ends a call that enter began. After an error the frames stay for the catcher, which
// is the caller itself if no Lua function is running.
func (t *Thread) back(p place, err error) error {
	if err == nil {
		t.ci, t.top = p.ci, p.top
	} else if p.ci == &t.root {
		t.finish(p)
	}
	return err
}
