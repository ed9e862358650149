package lua

import "math"

// expr is an expression whose value may not be in a register yet: code for it is
// made as late as possible, when it is known where the value shall go.
type expr struct {
	kind   exprKind
	info   int
	aux    int
	number float64
	// Jumps out of the expression, of "and", "or" and comparisons, that are taken
	// when it is known to be true or false.
	whenTrue, whenFalse jumps
}

type exprKind int

const (
	exprVoid     exprKind = iota // no expression
	exprNil                      //
	exprTrue                     //
	exprFalse                    //
	exprConstant                 // info: the index of the constant
	exprNumber                   // number
	exprLocal                    // info: the register
	exprUpvalue                  // info: the index of the upvalue
	exprGlobal                   // info: the index of the constant that is its name
	exprIndexed                  // info: the register of the table; aux: the key, a register or constant
	exprJump                     // info: the position of a comparison, which jumps when it is true
	exprPending                  // info: the position of an instruction that can put it into any register
	exprRegister                 // info: the register
	exprCall                     // info: the position of the call
	exprVararg                   // info: the position of the VARARG
)

// all stands for the number of values of a call or of "..." where all are wanted.
const all = -1

func (e *expr) hasJumps() bool { return e.whenTrue != e.whenFalse }

// isOpen reports whether the expression has any number of values.
func (e *expr) isOpen() bool { return e.kind == exprCall || e.kind == exprVararg }

func (e *expr) isNumeral() bool { return e.kind == exprNumber && !e.hasJumps() }

func (e *expr) is(kind exprKind, info int) { e.kind, e.info = kind, info }

// setResults makes a call or "..." give n values, or all.
func (f *function) setResults(e *expr, n int) {
	switch e.kind {
	case exprCall:
		i := f.code[e.info]
		f.code[e.info] = encode(i.op(), i.a(), i.b(), n+1, 0)
	case exprVararg:
		f.code[e.info] = encode(OpVararg, f.reserve(1), n+1, 0, 0)
	}
}

// setOneResult makes a call or "..." give one value.
func (f *function) setOneResult(e *expr) {
	switch e.kind {
	case exprCall:
		e.is(exprRegister, f.code[e.info].a())
	case exprVararg:
		f.code[e.info] = encode(OpVararg, 0, 2, 0, 0)
		e.kind = exprPending
	}
}

// isField reports whether a key, as an operand, is a constant string.
func (f *function) isField(key int) bool {
	return key >= constantBit && f.constants[key-constantBit].IsString()
}

// load makes a variable a value, and a call one value.
func (f *function) load(e *expr) {
	switch e.kind {
	case exprLocal:
		e.kind = exprRegister
	case exprUpvalue:
		e.is(exprPending, f.emit(OpGetUpval, 0, e.info, 0, 0))
	case exprGlobal:
		e.is(exprPending, f.emit(OpGetGlobal, 0, 0, 0, e.info))
	case exprIndexed:
		f.release(e.aux)
		f.release(e.info)
		op := OpGetTable
		if f.isField(e.aux) {
			op = OpGetField
		}
		e.is(exprPending, f.emit(op, 0, e.info, e.aux, 0))
	case exprCall, exprVararg:
		f.setOneResult(e)
	}
}

// put puts a value into a register, but for what its jumps say.
func (f *function) put(e *expr, r int) {
	f.load(e)
	switch e.kind {
	case exprNil:
		f.clear(r, 1)
	case exprTrue:
		f.emit(OpLoadBool, r, 1, 0, 0)
	case exprFalse:
		f.emit(OpLoadBool, r, 0, 0, 0)
	case exprConstant:
		f.emit(OpLoadK, r, 0, 0, e.info)
	case exprNumber:
		f.emit(OpLoadK, r, 0, 0, f.constant(Number(e.number)))
	case exprPending:
		f.code[e.info] = f.code[e.info]&^0xff00 | Instruction(r)<<8
	case exprRegister:
		if e.info != r {
			f.emit(OpMove, r, e.info, 0, 0)
		}
	default: // no value, or a comparison: its jumps give it
		return
	}
	e.is(exprRegister, r)
}

// putAnywhere puts a value into some register.
func (f *function) putAnywhere(e *expr) {
	if e.kind != exprRegister {
		f.put(e, f.reserve(1))
	}
}

// toRegister puts an expression into register r: what falls through has its
// value there, jumps that keep their value bring it, and the other jumps go to
// instructions that load true or false.
func (f *function) toRegister(e *expr, r int) {
	f.put(e, r)
	if e.kind == exprJump {
		f.add(&e.whenTrue, one(e.info))
	}
	if e.hasJumps() {
		loadFalse, loadTrue := 0, 0
		if f.needsValue(e.whenTrue) || f.needsValue(e.whenFalse) {
			var over jumps
			if e.kind != exprJump {
				over = f.jump()
			}
			loadFalse = f.label()
			f.emit(OpLoadBool, r, 0, 1, 0)
			loadTrue = f.label()
			f.emit(OpLoadBool, r, 1, 0, 0)
			f.patchHere(over)
		}
		end := f.label()
		f.patch(e.whenFalse, end, r, loadFalse)
		f.patch(e.whenTrue, end, r, loadTrue)
	}
	*e = expr{kind: exprRegister, info: r}
}

// toNext puts an expression into the next register.
func (f *function) toNext(e *expr) {
	f.load(e)
	f.releaseExpr(e)
	f.toRegister(e, f.reserve(1))
}

// toAny returns the register of an expression, which it moves into one unless it
// is in one already.
func (f *function) toAny(e *expr) int {
	f.load(e)
	if e.kind == exprRegister {
		if !e.hasJumps() {
			return e.info
		}
		if e.info >= f.active { // not a local's
			f.toRegister(e, e.info)
			return e.info
		}
	}
	f.toNext(e)
	return e.info
}

// toValue makes an expression one that has no jumps.
func (f *function) toValue(e *expr) {
	if e.hasJumps() {
		f.toAny(e)
	} else {
		f.load(e)
	}
}

// toOperand makes an expression a register or a constant, as B and C want it.
func (f *function) toOperand(e *expr) int {
	f.toValue(e)
	switch e.kind {
	case exprNil, exprTrue, exprFalse:
		if len(f.constants) <= maxRK {
			v := Nil
			if e.kind != exprNil {
				v = Bool(e.kind == exprTrue)
			}
			e.is(exprConstant, f.constant(v))
			return e.info + constantBit
		}
	case exprNumber:
		e.is(exprConstant, f.constant(Number(e.number)))
		fallthrough
	case exprConstant:
		if e.info <= maxRK {
			return e.info + constantBit
		}
	}
	return f.toAny(e)
}

func (f *function) releaseExpr(e *expr) {
	if e.kind == exprRegister {
		f.release(e.info)
	}
}

// index makes t the expression t[key].
func (f *function) index(t, key *expr) {
	t.aux = f.toOperand(key)
	t.kind = exprIndexed
}

// self makes e the method of a call, followed by the object.
func (f *function) self(e, key *expr) {
	object := f.toAny(e)
	f.releaseExpr(e)
	r := f.reserve(2)
	f.emit(OpSelf, r, object, f.toOperand(key), 0)
	f.releaseExpr(key)
	e.is(exprRegister, r)
}

// store assigns an expression to a variable.
func (f *function) store(to, e *expr) {
	switch to.kind {
	case exprLocal:
		f.releaseExpr(e)
		f.toRegister(e, to.info)
		return
	case exprUpvalue:
		f.emit(OpSetUpval, f.toAny(e), to.info, 0, 0)
	case exprGlobal:
		f.emit(OpSetGlobal, f.toAny(e), 0, 0, to.info)
	case exprIndexed:
		f.setIndexed(to.info, to.aux, f.toOperand(e))
	}
	f.releaseExpr(e)
}

func (f *function) setIndexed(table, key, value int) {
	op := OpSetTable
	if f.isField(key) {
		op = OpSetField
	}
	f.emit(op, table, key, value, 0)
}

// Conditions.

// negate makes a comparison jump when it is false.
func (f *function) negate(e *expr) { f.code[e.info] ^= 1 << 8 }

// jumpIf emits a jump that is taken if the expression is what cond says.
func (f *function) jumpIf(e *expr, cond int) jumps {
	if e.kind == exprPending {
		if i := f.code[e.info]; i.op() == OpNot {
			// It is the last instruction: test its operand instead.
			f.code, f.lines = f.code[:e.info], f.lines[:e.info]
			return one(f.emit(OpTest, 1-cond, i.b(), 0, noJump))
		}
	}
	f.putAnywhere(e)
	f.releaseExpr(e)
	return one(f.emit(OpTestSet, noRegister, e.info, cond, noJump))
}

// goIfTrue continues if the expression is true, and jumps if it is false.
func (f *function) goIfTrue(e *expr) {
	f.load(e)
	var l jumps
	switch e.kind {
	case exprConstant, exprNumber, exprTrue:
	case exprJump:
		f.negate(e)
		l = one(e.info)
	default:
		l = f.jumpIf(e, 0)
	}
	f.add(&e.whenFalse, l)
	f.patchHere(e.whenTrue)
	e.whenTrue = jumps{}
}

// goIfFalse continues if the expression is false, and jumps if it is true.
func (f *function) goIfFalse(e *expr) {
	f.load(e)
	var l jumps
	switch e.kind {
	case exprNil, exprFalse:
	case exprJump:
		l = one(e.info)
	default:
		l = f.jumpIf(e, 1)
	}
	f.add(&e.whenTrue, l)
	f.patchHere(e.whenFalse)
	e.whenFalse = jumps{}
}

func (f *function) not(e *expr) {
	f.load(e)
	switch e.kind {
	case exprNil, exprFalse:
		e.kind = exprTrue
	case exprConstant, exprNumber, exprTrue:
		e.kind = exprFalse
	case exprJump:
		f.negate(e)
	case exprPending, exprRegister:
		f.putAnywhere(e)
		f.releaseExpr(e)
		e.is(exprPending, f.emit(OpNot, 0, e.info, 0, 0))
	}
	e.whenTrue, e.whenFalse = e.whenFalse, e.whenTrue
	f.keepNone(e.whenTrue)
	f.keepNone(e.whenFalse)
}

// Operators.

// operator is a unary or binary operator. Those before opConcat are arithmetic.
type operator int

const (
	opAdd operator = iota
	opSub
	opMul
	opDiv
	opMod
	opPow
	opConcat
	opNotEqual
	opEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opAnd
	opOr
	opNone
)

// prefix applies a unary operator: OpUnm, OpNot or OpLen.
func (f *function) prefix(op Op, e *expr) {
	if op == OpNot {
		f.not(e)
		return
	}
	if op == OpLen || !e.isNumeral() {
		f.toAny(e) // constants have no register, which the instruction wants
	}
	if op == OpUnm && e.isNumeral() && !math.IsNaN(e.number) {
		e.number = -e.number
		return
	}
	operand := f.toOperand(e)
	f.releaseExpr(e)
	e.is(exprPending, f.emit(op, 0, operand, 0, 0))
}

// infix is called between the operands of a binary operator: it puts the first one
// where it does not change while the second one is computed.
func (f *function) infix(op operator, e *expr) {
	switch {
	case op == opAnd:
		f.goIfTrue(e)
	case op == opOr:
		f.goIfFalse(e)
	case op == opConcat:
		f.toNext(e)
	case op < opConcat && e.isNumeral(): // it may be folded
	default:
		f.toOperand(e)
	}
}

// postfix applies a binary operator; the result is in a.
func (f *function) postfix(op operator, a, b *expr) {
	switch op {
	case opAnd:
		f.load(b)
		f.add(&b.whenFalse, a.whenFalse)
		*a = *b
	case opOr:
		f.load(b)
		f.add(&b.whenTrue, a.whenTrue)
		*a = *b
	case opConcat:
		f.toValue(b)
		if b.kind == exprPending && f.code[b.info].op() == OpConcat {
			// a .. (b .. c) is one instruction that begins at a.
			f.releaseExpr(a)
			i := f.code[b.info]
			f.code[b.info] = encode(OpConcat, 0, a.info, i.c(), 0)
			a.is(exprPending, b.info)
			return
		}
		f.toNext(b)
		f.arithmetic(OpConcat, a, b)
	case opEqual:
		f.compare(OpEq, 1, a, b)
	case opNotEqual:
		f.compare(OpEq, 0, a, b)
	case opLess:
		f.compare(OpLt, 1, a, b)
	case opLessEqual:
		f.compare(OpLe, 1, a, b)
	case opGreater:
		f.compareSwapped(OpLt, a, b)
	case opGreaterEqual:
		f.compareSwapped(OpLe, a, b)
	default:
		if !fold(op, a, b) {
			f.arithmetic(OpAdd+Op(op), a, b)
		}
	}
}

func (f *function) arithmetic(op Op, a, b *expr) {
	y := f.toOperand(b)
	x := f.toOperand(a)
	if x > y {
		f.releaseExpr(a)
		f.releaseExpr(b)
	} else {
		f.releaseExpr(b)
		f.releaseExpr(a)
	}
	a.is(exprPending, f.emit(op, 0, x, y, 0))
}

func (f *function) compare(op Op, cond int, a, b *expr) {
	x := f.toOperand(a)
	y := f.toOperand(b)
	f.releaseExpr(b)
	f.releaseExpr(a)
	a.is(exprJump, f.emit(op, cond, x, y, noJump))
}

// compareSwapped is compare for a > b, which is b < a.
func (f *function) compareSwapped(op Op, a, b *expr) {
	x := f.toOperand(a)
	y := f.toOperand(b)
	f.releaseExpr(b)
	f.releaseExpr(a)
	a.is(exprJump, f.emit(op, 1, y, x, noJump))
}

// fold computes an operation of two numerals. What would be NaN, and divisions by
// zero, are left to the running program.
func fold(op operator, a, b *expr) bool {
	if !a.isNumeral() || !b.isNumeral() {
		return false
	}
	x, y := a.number, b.number
	var r float64
	switch op {
	case opAdd:
		r = x + y
	case opSub:
		r = x - y
	case opMul:
		r = x * y
	case opDiv:
		if y == 0 {
			return false
		}
		r = x / y
	case opMod:
		if y == 0 {
			return false
		}
		r = luaMod(x, y)
	case opPow:
		r = pow(x, y)
	}
	if math.IsNaN(r) {
		return false
	}
	a.number = r
	return true
}
