package lua

import "fmt"

// verify checks that code stays inside of what the interpreter gives it: its
// registers, constants, upvalues and children, and the function itself.
func verify(p *Prototype) error {
	if p.Registers > maxRegisters || len(p.lines) != len(p.code) || len(p.code) == 0 || p.code[len(p.code)-1].op() != OpReturn {
		return fmt.Errorf("%d registers, %d lines, %d instructions", p.Registers, len(p.lines), len(p.code))
	}
	for pc, i := range p.code {
		if err := p.verify(pc, i); err != nil {
			return fmt.Errorf("%s, line %d: %d: %s: %w", p.Source, p.Line, pc, i, err)
		}
	}
	for _, l := range p.locals {
		if l.begin > l.end || l.end > len(p.code) || l.register >= p.Registers {
			return fmt.Errorf("local %+v", l)
		}
	}
	for _, child := range p.children {
		for _, u := range child.upvalues {
			if u.local && u.index >= p.Registers || !u.local && u.index >= len(p.upvalues) {
				return fmt.Errorf("upvalue %+v", u)
			}
		}
		if err := verify(child); err != nil {
			return err
		}
	}
	return nil
}

func (p *Prototype) verify(pc int, i Instruction) (err error) {
	check := func(ok bool, what string) {
		if !ok && err == nil {
			err = fmt.Errorf("bad %s", what)
		}
	}
	a, b, c, d := i.a(), i.b(), i.c(), i.d()
	register := func(rs ...int) {
		for _, r := range rs {
			check(r >= 0 && r < p.Registers, fmt.Sprintf("register %d", r))
		}
	}
	rk := func(x int) {
		if x < constantBit {
			register(x)
		} else {
			check(x-constantBit < len(p.constants), "constant")
		}
	}
	field := func(x int) {
		check(x >= constantBit && x-constantBit < len(p.constants) && p.constants[x-constantBit].IsString(), "field")
	}
	constant := func(k int) { check(k >= 0 && k < len(p.constants), "constant") }
	jump := func() { check(pc+1+d >= 0 && pc+1+d < len(p.code), "jump") }
	open := func() { // the values come from the instruction before, and end at the top
		check(pc > 0 && (p.code[pc-1].op() == OpCall && p.code[pc-1].c() == 0 ||
			p.code[pc-1].op() == OpTailCall || p.code[pc-1].op() == OpVararg && p.code[pc-1].b() == 0), "open operand")
	}
	register(a)
	if i.op() == OpEq || i.op() == OpLt || i.op() == OpLe || i.op() == OpTest {
		err = nil // A is a condition
		check(a <= 1, "condition")
	}
	switch i.op() {
	case OpMove, OpUnm, OpNot, OpLen:
		register(b)
	case OpLoadK:
		constant(d)
	case OpLoadBool:
		check(c == 0 || pc+2 < len(p.code), "jump")
	case OpLoadNil:
		register(b)
		check(a <= b, "range")
	case OpGetUpval, OpSetUpval:
		check(b < len(p.upvalues), "upvalue")
	case OpGetGlobal, OpSetGlobal:
		field(d + constantBit)
	case OpGetTable:
		register(b)
		rk(c)
	case OpGetField:
		register(b)
		field(c)
	case OpSetTable:
		rk(b)
		rk(c)
	case OpSetField:
		field(b)
		rk(c)
	case OpNewTable:
		check(d >= 0 && c <= 24, "size")
	case OpSelf:
		register(a+1, b)
		rk(c)
	case OpAdd, OpSub, OpMul, OpDiv, OpMod, OpPow:
		rk(b)
		rk(c)
	case OpConcat:
		register(b, c)
		check(b < c, "range")
	case OpJmp:
		jump()
	case OpEq, OpLt, OpLe:
		rk(b)
		rk(c)
		jump()
	case OpTest, OpTestSet:
		register(b)
		jump()
	case OpCall, OpTailCall:
		if b == 0 {
			open()
		} else {
			register(a + b - 1)
		}
		if c > 1 {
			register(a + c - 2)
		}
	case OpReturn:
		if b == 0 {
			open()
		} else if b > 1 {
			register(a + b - 2)
		}
	case OpForLoop, OpForPrep:
		register(a + 3)
		jump()
	case OpTForLoop:
		check(c >= 1, "count")
		register(a+2+c, a+5)
		jump()
	case OpSetList:
		if b == 0 {
			open()
		} else {
			register(a + b)
		}
		check(d >= 0, "index")
	case OpClosure:
		check(d >= 0 && d < len(p.children), "child")
	case OpVararg:
		check(p.Vararg, "place")
		if b > 1 {
			register(a + b - 2)
		}
	}
	return err
}
