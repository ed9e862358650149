package lua

import (
	"fmt"
	"strings"
)

// disassemble lists a prototype's code, and then that of its children. An
// operand that names something is followed by it.
func disassemble(p *Prototype) string {
	var b strings.Builder
	listCode(&b, p, "main")
	return b.String()
}

func listCode(b *strings.Builder, p *Prototype, name string) {
	fmt.Fprintf(b, "%s params=%d", name, p.Params)
	if p.Vararg {
		b.WriteString(" vararg")
	}
	if p.ArgTable {
		b.WriteString(" arg")
	}
	fmt.Fprintf(b, " registers=%d\n", p.Registers)
	for pc, i := range p.code {
		fmt.Fprintf(b, "%d [%d] %s %s\n", pc, p.lines[pc], i.op(), operands(p, pc))
	}
	for _, u := range p.upvalues {
		from := "upvalue"
		if u.local {
			from = "local"
		}
		fmt.Fprintf(b, "upvalue %s: %s %d\n", u.name, from, u.index)
	}
	for i, child := range p.children {
		listCode(b, child, fmt.Sprintf("%s.%d", name, i))
	}
}

// operands writes registers as numbers, constants as Lua does, and jumps with
// their target behind an arrow.
func operands(p *Prototype, pc int) string {
	i := p.code[pc]
	rk := func(x int) string {
		if x < constantBit {
			return fmt.Sprint(x)
		}
		return showConstant(p.constants[x-constantBit])
	}
	arrow := fmt.Sprintf("-> %d", pc+1+i.d())
	switch i.op() {
	case OpMove, OpGetUpval, OpSetUpval, OpLoadNil, OpUnm, OpNot, OpLen, OpReturn, OpVararg:
		return fmt.Sprint(i.a(), " ", i.b())
	case OpLoadK, OpGetGlobal, OpSetGlobal:
		return fmt.Sprint(i.a(), " ", showConstant(p.constants[i.d()]))
	case OpLoadBool, OpConcat, OpCall, OpTailCall:
		return fmt.Sprint(i.a(), " ", i.b(), " ", i.c())
	case OpGetTable, OpGetField, OpSelf:
		return fmt.Sprint(i.a(), " ", i.b(), " ", rk(i.c()))
	case OpSetTable, OpSetField, OpAdd, OpSub, OpMul, OpDiv, OpMod, OpPow:
		return fmt.Sprint(i.a(), " ", rk(i.b()), " ", rk(i.c()))
	case OpNewTable:
		return fmt.Sprint(i.a(), " ", i.d(), " ", i.c())
	case OpSetList:
		return fmt.Sprint(i.a(), " ", i.b(), " ", i.d())
	case OpJmp:
		return arrow
	case OpEq, OpLt, OpLe:
		return fmt.Sprint(i.a(), " ", rk(i.b()), " ", rk(i.c()), " ", arrow)
	case OpTest:
		return fmt.Sprint(i.a(), " ", i.b(), " ", arrow)
	case OpTestSet:
		return fmt.Sprint(i.a(), " ", i.b(), " ", i.c(), " ", arrow)
	case OpTForLoop:
		return fmt.Sprint(i.a(), " ", i.c(), " ", arrow)
	case OpForLoop, OpForPrep:
		return fmt.Sprint(i.a(), " ", arrow)
	case OpClose:
		return fmt.Sprint(i.a())
	case OpClosure:
		return fmt.Sprint(i.a(), " ", i.d())
	}
	return i.String()
}

func showConstant(v Value) string {
	switch v.Kind() {
	case KindString:
		return fmt.Sprintf("%q", v.str())
	case KindNumber:
		return FormatNumber(v.number())
	case KindBoolean:
		return fmt.Sprint(v.Truth())
	}
	return v.Kind().String()
}
