package lua

import (
	"math"
	"unsafe"
)

// execute runs the function of the thread's frame t.ci, and those that it calls,
// until that frame returns. Calls from Lua to Lua push a frame and go on in the
// same loop.
//
// What the instructions need is held in variables that follow from the frame:
//
//	ci    the frame, which is t.ci
//	code  its function's instructions, k its constants
//	pc    the next instruction; ci.pc while something else runs
//	regs  its registers in the stack
//
// An instruction does its common case at once. For the others it stores pc in the
// frame, calls a method that takes the instruction apart again, and starts over at
// reload, since the stack may have moved. execute returns every error at once, with the
// frames as they are: the catcher removes them.
//
// The function is as long as the language: in functions of their own, instructions
// would cost a call each, and find what is in these variables, mostly registers of the
// machine, in memory.
func (t *Thread) execute() (err error) {
	var (
		s          = t.state
		ci         *frame
		code, k    unsafe.Pointer
		pc         uintptr
		regs       *[256]Value
		fn, n, d   int
		from, want int
		f          *Closure
		p          *Prototype
		ok         bool
	)
	if t.returning {
		t.returning = false
		ci = t.ci
		from, n = t.top-t.results, t.results
		goto ret
	}
reload:
	ci = t.ci
	p = ci.closure.proto
	code, k = unsafe.Pointer(unsafe.SliceData(p.code)), unsafe.Pointer(unsafe.SliceData(p.constants))
	regs = (*[256]Value)(unsafe.Pointer(&t.stack[ci.base]))
	pc = uintptr(ci.pc)
next:
	for {
		i := *(*Instruction)(unsafe.Add(code, pc*8))
		pc++
		ra := &regs[uint8(i>>8)]
		switch Op(i) {
		case OpMove:
			*ra = regs[uint8(i>>16)]

		case OpLoadK:
			*ra = *(*Value)(unsafe.Add(k, int64(i)>>40*16))

		case OpLoadBool:
			*ra = Value{w: wFalse + uint64(i>>16&1)}
			if i>>28&0xfff != 0 {
				pc++
			}

		case OpLoadNil:
			for j := i.a(); j <= i.b(); j++ {
				regs[uint8(j)] = Nil
			}

		case OpGetUpval:
			*ra = *(*(**upvalue)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(ci.closure.upvalues)), uintptr(uint8(i>>16))*8))).p

		case OpSetUpval:
			*(*(**upvalue)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(ci.closure.upvalues)), uintptr(uint8(i>>16))*8))).p = *ra

		case OpGetGlobal:
			h := ci.closure.env
			key := (*Value)(unsafe.Add(k, int64(i)>>40*16))
			n := (*node)(unsafe.Add(unsafe.Pointer(h.nodes), uintptr(uint32(key.w>>hashShift)&0xffff&h.mask)*unsafe.Sizeof(node{})))
			if n.key.w == key.w && n.key.p == key.p && n.value.w != wNil {
				*ra = n.value
				continue
			}
			if v := h.getStr(*key); v.w != wNil {
				*ra = v
				continue
			}
			ci.pc = int(pc)
			if err = t.getGlobal(i); err != nil {
				return err
			}
			goto reload

		case OpSetGlobal:
			if !ci.closure.env.setStr(*(*Value)(unsafe.Add(k, int64(i)>>40*16)), *ra) {
				ci.pc = int(pc)
				if err = t.setGlobal(i); err != nil {
					return err
				}
				goto reload
			}

		case OpGetField:
			if b := &regs[uint8(i>>16)]; b.w>>tagShift == tagTable {
				h := (*Table)(b.p)
				key := (*Value)(unsafe.Add(k, uintptr(i>>28&0xfff-constantBit)*16))
				n := (*node)(unsafe.Add(unsafe.Pointer(h.nodes), uintptr(uint32(key.w>>hashShift)&0xffff&h.mask)*unsafe.Sizeof(node{})))
				if n.key.w == key.w && n.key.p == key.p && n.value.w != wNil {
					*ra = n.value
					continue
				}
				v := h.getStr(*key)
				if v.w != wNil || h.meta == nil {
					*ra = v
					continue
				}
			}
			ci.pc = int(pc)
			if err = t.getTable(i); err != nil {
				return err
			}
			goto reload

		case OpGetTable:
			if b := &regs[uint8(i>>16)]; b.w>>tagShift == tagTable {
				h := (*Table)(b.p)
				var key *Value
				if c := i >> 28 & 0xfff; c < constantBit {
					key = &regs[uint8(c)]
				} else {
					key = (*Value)(unsafe.Add(k, uintptr(c-constantBit)*16))
				}
				if key.w >= minNumber {
					f := math.Float64frombits(^key.w)
					if x := int(f); uint(x-1) < uint(len(h.array)) && float64(x) == f {
						if v := h.array[x-1]; v.w != wNil || h.meta == nil {
							*ra = v
							continue
						}
					}
				}
				if v := h.get(key); v.w != wNil || h.meta == nil {
					*ra = v
					continue
				}
			}
			ci.pc = int(pc)
			if err = t.getTable(i); err != nil {
				return err
			}
			goto reload

		case OpSetField:
			if ra.w>>tagShift == tagTable {
				h := (*Table)(ra.p)
				key := (*Value)(unsafe.Add(k, uintptr(i>>16&0xfff-constantBit)*16))
				var v *Value
				if c := i >> 28 & 0xfff; c < constantBit {
					v = &regs[uint8(c)]
				} else {
					v = (*Value)(unsafe.Add(k, uintptr(c-constantBit)*16))
				}
				n := (*node)(unsafe.Add(unsafe.Pointer(h.nodes), uintptr(uint32(key.w>>hashShift)&0xffff&h.mask)*unsafe.Sizeof(node{})))
				if n.key.w == key.w && n.key.p == key.p && n.value.w != wNil && !h.readonly {
					n.value = *v
					continue
				}
				if h.setStr(*key, *v) {
					continue
				}
				if h.meta == nil && !h.readonly {
					ci.pc = int(pc)
					if err = h.assign(key, v); err != nil {
						return t.raised(err)
					}
					continue
				}
			}
			ci.pc = int(pc)
			if err = t.setTable(i); err != nil {
				return err
			}
			goto reload

		case OpSetTable:
			if ra.w>>tagShift == tagTable {
				h := (*Table)(ra.p)
				var key, v *Value
				if b := i >> 16 & 0xfff; b < constantBit {
					key = &regs[uint8(b)]
				} else {
					key = (*Value)(unsafe.Add(k, uintptr(b-constantBit)*16))
				}
				if c := i >> 28 & 0xfff; c < constantBit {
					v = &regs[uint8(c)]
				} else {
					v = (*Value)(unsafe.Add(k, uintptr(c-constantBit)*16))
				}
				if key.w >= minNumber {
					f := math.Float64frombits(^key.w)
					if x := int(f); uint(x-1) < uint(len(h.array)) && float64(x) == f && !h.readonly {
						if at := &h.array[x-1]; at.w != wNil && v.w != wNil {
							*at = *v
							continue
						} else if h.meta == nil {
							h.setItem(x, *v)
							continue
						}
					}
				}
				if h.meta == nil && !h.readonly {
					ci.pc = int(pc)
					if err = h.assign(key, v); err != nil {
						return t.raised(err)
					}
					continue
				}
			}
			ci.pc = int(pc)
			if err = t.setTable(i); err != nil {
				return err
			}
			goto reload

		case OpNewTable:
			s.heap.refused = false
			*ra = TableValue(newTable(&s.heap, constructorSize(i.d()), 1<<i.c()>>1))
			if s.heap.refused {
				return errMemory
			}

		case OpSelf:
			b := regs[uint8(i>>16)]
			var key *Value
			if c := i >> 28 & 0xfff; c < constantBit {
				key = &regs[uint8(c)]
			} else {
				key = (*Value)(unsafe.Add(k, uintptr(c-constantBit)*16))
			}
			if v := t.method(b, key); v.w != wNil {
				regs[uint8(i>>8)+1] = b
				*ra = v
				continue
			}
			ci.pc = int(pc)
			if err = t.self(i); err != nil {
				return err
			}
			goto reload

		case OpAdd:
			var b, c *Value
			if x := i >> 16 & 0xfff; x < constantBit {
				b = &regs[uint8(x)]
			} else {
				b = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if x := i >> 28 & 0xfff; x < constantBit {
				c = &regs[uint8(x)]
			} else {
				c = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if b.w >= minNumber && c.w >= minNumber {
				*ra = Value{w: ^math.Float64bits(math.Float64frombits(^b.w) + math.Float64frombits(^c.w))}
				continue
			}
			goto arith

		case OpSub:
			var b, c *Value
			if x := i >> 16 & 0xfff; x < constantBit {
				b = &regs[uint8(x)]
			} else {
				b = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if x := i >> 28 & 0xfff; x < constantBit {
				c = &regs[uint8(x)]
			} else {
				c = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if b.w >= minNumber && c.w >= minNumber {
				*ra = Value{w: ^math.Float64bits(math.Float64frombits(^b.w) - math.Float64frombits(^c.w))}
				continue
			}
			goto arith

		case OpMul:
			var b, c *Value
			if x := i >> 16 & 0xfff; x < constantBit {
				b = &regs[uint8(x)]
			} else {
				b = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if x := i >> 28 & 0xfff; x < constantBit {
				c = &regs[uint8(x)]
			} else {
				c = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if b.w >= minNumber && c.w >= minNumber {
				*ra = Value{w: ^math.Float64bits(math.Float64frombits(^b.w) * math.Float64frombits(^c.w))}
				continue
			}
			goto arith

		case OpDiv:
			var b, c *Value
			if x := i >> 16 & 0xfff; x < constantBit {
				b = &regs[uint8(x)]
			} else {
				b = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if x := i >> 28 & 0xfff; x < constantBit {
				c = &regs[uint8(x)]
			} else {
				c = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if b.w >= minNumber && c.w >= minNumber {
				*ra = Value{w: ^math.Float64bits(math.Float64frombits(^b.w) / math.Float64frombits(^c.w))}
				continue
			}
			goto arith

		case OpMod:
			var b, c *Value
			if x := i >> 16 & 0xfff; x < constantBit {
				b = &regs[uint8(x)]
			} else {
				b = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if x := i >> 28 & 0xfff; x < constantBit {
				c = &regs[uint8(x)]
			} else {
				c = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if b.w >= minNumber && c.w >= minNumber {
				x, y := math.Float64frombits(^b.w), math.Float64frombits(^c.w)
				if m, n := uint32(int64(x)), uint32(int64(y)); float64(m) == x && float64(n) == y && n != 0 {
					*ra = Value{w: ^math.Float64bits(float64(m % n))}
					continue
				}
				*ra = Value{w: ^math.Float64bits(x - float64(math.Floor(x/y)*y))} // luaMod
				continue
			}
			goto arith

		case OpPow:
			goto arith

		case OpUnm:
			if b := &regs[uint8(i>>16)]; b.w >= minNumber {
				*ra = Number(-math.Float64frombits(^b.w))
				continue
			}
			goto arith

		case OpNot:
			*ra = Bool(regs[uint8(i>>16)].w <= wFalse)

		case OpLen:
			b := &regs[uint8(i>>16)]
			switch b.w >> tagShift {
			case tagTable:
				*ra = Int((*Table)(b.p).Len())
				continue
			case tagString:
				*ra = Int(int(uint32(b.w)))
				continue
			}
			ci.pc = int(pc)
			if err = t.length(i); err != nil {
				return err
			}
			goto reload

		case OpConcat:
			ci.pc = int(pc)
			if vs := regs[uint8(i>>16) : uint8(i>>28)+1]; allJoin(vs) {
				v, err := s.join(vs)
				if err != nil {
					return err
				}
				*ra = v
				continue
			}
			if err = t.concatenate(i); err != nil {
				return err
			}
			goto reload

		case OpJmp:
			d = int(int64(i) >> 40)
			goto jump

		case OpEq:
			var b, c *Value
			if x := i >> 16 & 0xfff; x < constantBit {
				b = &regs[uint8(x)]
			} else {
				b = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if x := i >> 28 & 0xfff; x < constantBit {
				c = &regs[uint8(x)]
			} else {
				c = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if b.w >= minNumber {
				// A number's bits are not those of anything else.
				ok = c.w >= minNumber && math.Float64frombits(^b.w) == math.Float64frombits(^c.w)
			} else if ok = t.equal(*b, *c); !ok && b.w>>tagShift == tagTable && c.w>>tagShift == tagTable &&
				b.table().meta != nil && c.table().meta != nil {
				ci.pc = int(pc)
				if ok, err = t.equalTables(b.table(), c.table()); err != nil {
					return err
				}
				regs = (*[256]Value)(unsafe.Pointer(&t.stack[ci.base]))
			}
			if ok == (uint8(i>>8) != 0) {
				d = int(int64(i) >> 40)
				goto jump
			}

		case OpLt:
			var b, c *Value
			if x := i >> 16 & 0xfff; x < constantBit {
				b = &regs[uint8(x)]
			} else {
				b = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if x := i >> 28 & 0xfff; x < constantBit {
				c = &regs[uint8(x)]
			} else {
				c = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if b.w >= minNumber && c.w >= minNumber {
				ok = math.Float64frombits(^b.w) < math.Float64frombits(^c.w)
			} else {
				ci.pc = int(pc)
				if ok, err = t.less(*b, *c); err != nil {
					return err
				}
				regs = (*[256]Value)(unsafe.Pointer(&t.stack[ci.base]))
			}
			if ok == (uint8(i>>8) != 0) {
				d = int(int64(i) >> 40)
				goto jump
			}

		case OpLe:
			var b, c *Value
			if x := i >> 16 & 0xfff; x < constantBit {
				b = &regs[uint8(x)]
			} else {
				b = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if x := i >> 28 & 0xfff; x < constantBit {
				c = &regs[uint8(x)]
			} else {
				c = (*Value)(unsafe.Add(k, uintptr(x-constantBit)*16))
			}
			if b.w >= minNumber && c.w >= minNumber {
				ok = math.Float64frombits(^b.w) <= math.Float64frombits(^c.w)
			} else {
				ci.pc = int(pc)
				if ok, err = t.lessOrEqual(*b, *c); err != nil {
					return err
				}
				regs = (*[256]Value)(unsafe.Pointer(&t.stack[ci.base]))
			}
			if ok == (uint8(i>>8) != 0) {
				d = int(int64(i) >> 40)
				goto jump
			}

		case OpTest:
			if (regs[uint8(i>>16)].w > wFalse) == (uint8(i>>8) != 0) {
				d = int(int64(i) >> 40)
				goto jump
			}

		case OpTestSet:
			if b := &regs[uint8(i>>16)]; (b.w > wFalse) == (i>>28&0xfff != 0) {
				*ra = *b
				d = int(int64(i) >> 40)
				goto jump
			}

		case OpCall:
			ci.pc = int(pc)
			fn = ci.base + int(uint8(i>>8))
			if n = int(i>>16&0xfff) - 1; n < 0 {
				n = t.top - fn - 1
			}
			want = int(i>>28&0xfff) - 1
			if ra.w>>tagShift == tagClosure {
				f = (*Closure)(ra.p)
				goto call
			}
			if ra.w>>tagShift != tagBuiltin {
				if err = t.callable(fn, n, int(uint8(i>>8))); err != nil {
					return err
				}
				n++
				if ra = &t.stack[fn]; ra.w>>tagShift == tagClosure {
					f = (*Closure)(ra.p)
					goto call
				}
			}
			if s.budget -= callCost; s.budget < 0 {
				if err = s.tickAt(); err != nil {
					return err
				}
			}
			t.top = fn + 1 + n
			if err = (*Builtin)(ra.p).Run(Call{t, fn + 1, n}); err != nil {
				return err
			}
			regs = (*[256]Value)(unsafe.Pointer(&t.stack[ci.base]))
			if want < 0 {
				t.top = fn + t.results
				continue
			}
			for j := t.results; j < want; j++ {
				t.stack[fn+j] = Nil
			}

		case OpTailCall:
			ci.pc = int(pc)
			fn = ci.base + int(uint8(i>>8))
			if n = int(i>>16&0xfff) - 1; n < 0 {
				n = t.top - fn - 1
			}
			if !ra.IsFunction() {
				if err = t.callable(fn, n, int(uint8(i>>8))); err != nil {
					return err
				}
				n++
				ra = &t.stack[fn]
			}
			if ra.w>>tagShift == tagClosure {
				if err = t.tailCall(fn, n); err != nil {
					return err
				}
				goto reload
			}
			if s.budget -= callCost; s.budget < 0 {
				if err = s.tickAt(); err != nil {
					return err
				}
			}
			t.top = fn + 1 + n
			if err = (*Builtin)(ra.p).Run(Call{t, fn + 1, n}); err != nil {
				return err
			}
			from, n = fn, t.results
			goto ret

		case OpReturn:
			from = ci.base + int(uint8(i>>8))
			if n = int(i>>16&0xfff) - 1; n < 0 {
				n = t.top - from
			}
			goto ret

		case OpForLoop:
			r := (*[4]Value)(unsafe.Pointer(ra))
			step := math.Float64frombits(^r[2].w)
			x := math.Float64frombits(^r[0].w) + step
			end := math.Float64frombits(^r[1].w)
			if step > 0 {
				ok = x <= end
			} else {
				ok = x >= end
			}
			if ok {
				w := ^math.Float64bits(x)
				r[0].w = w
				r[3] = Value{w: w}
				d = int(int64(i) >> 40)
				pc += uintptr(d)
				if s.budget += d - 1; s.budget < 0 {
					goto spent
				}
			}

		case OpForPrep:
			r := (*[3]Value)(unsafe.Pointer(ra))
			if r[0].w < minNumber || r[1].w < minNumber || r[2].w < minNumber {
				ci.pc = int(pc)
				if err = t.forNumbers(r); err != nil {
					return err
				}
			}
			r[0] = Value{w: ^math.Float64bits(r[0].number() - r[2].number())}
			pc += uintptr(int(int64(i) >> 40))

		case OpTForLoop:
			r := (*[6]Value)(unsafe.Pointer(ra))
			want = int(i >> 28 & 0xfff)
			if ra.w>>tagShift == tagBuiltin && r[1].w>>tagShift == tagTable && want <= 3 {
				h := (*Table)(r[1].p)
				switch (*Builtin)(ra.p) {
				case s.next:
					key, v, ok := h.Next(r[2])
					if !ok {
						ci.pc = int(pc)
						return errInvalidKey
					}
					if key.w == wNil {
						r[3] = Nil
						continue
					}
					r[2], r[3] = key, key
					if want > 1 {
						r[4] = v
						if want > 2 {
							r[5] = Nil
						}
					}
					d = int(int64(i) >> 40)
					goto jump
				case s.inext:
					if r[2].w < minNumber {
						break
					}
					x := int(r[2].number()) + 1
					v := h.GetInt(x)
					if v.w == wNil {
						r[3] = Nil
						continue
					}
					r[2] = Int(x)
					r[3] = r[2]
					if want > 1 {
						r[4] = v
						if want > 2 {
							r[5] = Nil
						}
					}
					d = int(int64(i) >> 40)
					goto jump
				}
			}
			ci.pc = int(pc)
			fn = ci.base + int(uint8(i>>8)) + 3
			copy(t.stack[fn:fn+3], r[:3])
			n = 2
			if ra.w>>tagShift == tagClosure {
				// The frame's return does what is left of the instruction.
				f = (*Closure)(ra.p)
				if err = t.push(f, fn, n); err != nil {
					return err
				}
				t.ci.want, t.ci.flags = int32(want), flagIterator
				if s.budget -= callCost; s.budget < 0 {
					goto ticked
				}
				goto reload
			}
			if ra.w>>tagShift != tagBuiltin {
				if err = t.callable(fn, n, int(uint8(i>>8))+3); err != nil {
					return err
				}
				n++
			}
			t.top = fn + 1 + n
			if err = t.callAt(fn, n); err != nil {
				return err
			}
			for j := t.results; j < want; j++ {
				t.stack[fn+j] = Nil
			}
			goto iterated

		case OpSetList:
			n = int(i >> 16 & 0xfff)
			if n == 0 {
				n = t.top - ci.base - int(uint8(i>>8)) - 1
			}
			if n > 0 {
				first := ci.base + int(uint8(i>>8)) + 1
				if err = ra.table().setList(int(int64(i)>>40), t.stack[first:first+n]); err != nil {
					return err
				}
			}

		case OpClose:
			t.close(ci.base + int(uint8(i>>8)))

		case OpClosure:
			ci.pc = int(pc)
			v, err := t.newClosure(i)
			if err != nil {
				return err
			}
			*ra = v

		case OpVararg:
			n = max(ci.base-ci.fn-1-ci.closure.proto.Params, 0)
			first := ci.base + int(uint8(i>>8))
			want = int(i>>16&0xfff) - 1
			if want < 0 {
				want = n
				ci.pc = int(pc)
				if err = t.reserve(first + n); err != nil {
					return err
				}
				regs = (*[256]Value)(unsafe.Pointer(&t.stack[ci.base]))
				t.top = first + n
			}
			extra := t.stack[ci.base-n : ci.base]
			for j := range want {
				if j < n {
					t.stack[first+j] = extra[j]
				} else {
					t.stack[first+j] = Nil
				}
			}

		case OpLine:
			if err = t.traceLine(int(pc)); err != nil {
				return err
			}
			goto reload

		default:
			panic("lua: invalid instruction " + i.String())
		}
		continue
	arith:
		ci.pc = int(pc)
		if err = t.arithmetic(i); err != nil {
			return err
		}
		goto reload
	}

jump:
	pc += uintptr(d)
	if d < 0 {
		if s.budget += d; s.budget < 0 {
			goto spent
		}
	}
	goto next

spent:
	// The interrupt function sees the instruction that comes next.
	ci.pc = int(pc) + 1
	err = s.tickAt()
	ci.pc = int(pc)
	if err != nil {
		return err
	}
	goto reload

ticked:
	if err = s.tickAt(); err != nil {
		return err
	}
	goto reload

call:
	// The function f stands at fn with n arguments; want is how many results its
	// caller wants.
	{
		p = f.proto
		if s.budget -= callCost + len(p.code)>>3; s.budget < 0 {
			if err = s.tickAt(); err != nil {
				return err
			}
		}
		up := ci.next
		if up == nil {
			if up, err = t.nextFrame(); err != nil {
				return err
			}
		}
		base := fn + 1
		if p.Vararg || base > t.limit {
			if base, err = t.frameFor(p, fn, n); err != nil {
				return err
			}
			regs = (*[256]Value)(unsafe.Pointer(&t.stack[base]))
		} else {
			regs = (*[256]Value)(unsafe.Pointer(&t.stack[base]))
			for ; n < p.Params; n++ {
				regs[uint8(n)] = Nil
			}
		}
		up.closure, up.base, up.fn = f, base, fn
		up.want, up.tail, up.flags = int32(want), 0, 0
		ci = up
		t.ci = ci
		code, k = unsafe.Pointer(unsafe.SliceData(p.code)), unsafe.Pointer(unsafe.SliceData(p.constants))
		pc = 0
		goto next
	}

ret:
	// The function of ci returns the n values at from.
	{
		if t.open != nil && t.open.index >= ci.base {
			t.close(ci.base)
		}
		fn, want = ci.fn, int(ci.want)
		flags := ci.flags
		ci = ci.prev
		t.ci = ci
		stack := unsafe.Pointer(unsafe.SliceData(t.stack))
		to := (*Value)(unsafe.Add(stack, fn*valueBytes))
		if n == 1 && want <= 1 && want != 0 {
			*to = *(*Value)(unsafe.Add(stack, from*valueBytes))
		} else {
			if want < 0 {
				want = n
			}
			n = min(n, want)
			copy(unsafe.Slice(to, n), unsafe.Slice((*Value)(unsafe.Add(stack, from*valueBytes)), n))
			for ; n < want; n++ {
				*(*Value)(unsafe.Add(stack, (fn+n)*valueBytes)) = Nil
			}
		}
		if flags != 0 {
			if flags&flagFresh != 0 {
				t.results = n
				return nil
			}
			goto iterated
		}
		t.top = fn + n
		goto reload
	}

iterated:
	// An iterator has returned: what is left of OpTForLoop.
	ci.pc = t.iterated(ci)
	if s.budget -= callCost; s.budget < 0 {
		goto ticked
	}
	goto reload
}
