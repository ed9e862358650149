package lua

// variable returns what a message calls the value in register r of p before the
// instruction at pc is run: ("local", "x"), ("global", "x"), ("field", "x"),
// ("method", "x") or ("upvalue", "x"), as ldebug.c's getobjname does; "" if it has
// no name. A field whose name is not a constant string is "?". It costs O(pc).
func (p *Prototype) variable(pc, r int) (what, name string) {
	for {
		if name := p.local(pc, r); name != "" {
			return "local", name
		}
		at := p.setter(pc, r)
		if at < 0 {
			return "", ""
		}
		i := p.code[at]
		switch i.op() {
		case OpGetGlobal:
			return "global", p.constants[i.d()].str()
		case OpGetTable, OpGetField:
			return "field", p.keyName(i.c())
		case OpSelf:
			return "method", p.keyName(i.c())
		case OpGetUpval:
			return "upvalue", p.upvalues[i.b()].name
		case OpMove:
			if i.b() < i.a() {
				r = i.b()
				continue
			}
		}
		return "", ""
	}
}

// local returns the name of the local that is in register r at pc, "" if there is none.
func (p *Prototype) local(pc, r int) string {
	for _, l := range p.locals {
		if l.begin > pc {
			break
		}
		if l.register == r && pc < l.end {
			return l.name
		}
	}
	return ""
}

// keyName returns the name that a key gives to a field.
func (p *Prototype) keyName(key int) string {
	if key >= constantBit {
		if s, ok := p.constants[key-constantBit].AsString(); ok {
			return s
		}
	}
	return "?"
}

// setter returns the position of the last instruction before pc that changes register r,
// -1 if there is none. Like Lua's symbexec it takes all jumps that lead forward, but not
// beyond pc, so that it may miss the instruction that did it in an expression with "and"
// or "or"; it sees an operation there that has no name.
func (p *Prototype) setter(pc, r int) int {
	last := -1
	for at := 0; at < pc; at++ {
		i := p.code[at]
		a := i.a()
		changes := a == r
		switch i.op() {
		case OpSetUpval, OpSetGlobal, OpSetTable, OpSetField, OpJmp, OpEq, OpLt, OpLe, OpReturn, OpSetList, OpClose, OpLine:
			changes = false
		case OpTest: // Lua counts it among those that change its operand
			changes = i.b() == r
		case OpLoadNil:
			changes = a <= r && r <= i.b()
		case OpSelf:
			changes = r == a || r == a+1
		case OpCall, OpTailCall:
			changes = r >= a
		case OpTForLoop:
			changes = r >= a+2
		}
		if changes {
			last = at
		}
		switch i.op() {
		case OpJmp, OpEq, OpLt, OpLe, OpTest, OpTestSet, OpForLoop, OpForPrep, OpTForLoop:
			if target := at + 1 + i.d(); i.d() > 0 && target <= pc {
				at = target - 1
			}
		}
	}
	return last
}
