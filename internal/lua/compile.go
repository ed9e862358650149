package lua

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"unsafe"
)

// Limits of Lua 5.1, which programs and their messages know.
const (
	maxLocals   = 200 // in a function: LUAI_MAXVARS
	maxUpvalues = 60  // LUAI_MAXUPVALUES
	maxLevels   = 200 // of nested blocks and expressions: LUAI_MAXCCALLS
	listBatch   = 50  // items that one OpSetList stores: LFIELDS_PER_FLUSH

	// maxItems is the number of items or fields that a constructor may have, so that D can
	// count them. Lua has no such limit; a program of this size has 8 MB.
	maxItems = 1 << 22
)

// Compile compiles a chunk. The error is an *Error: the message of Lua 5.1, with
// the chunk's name as ChunkID shortens it (but at 80 bytes), and the line. The time
// and the memory that it takes are linear in the chunk's length, and its nesting
// is bounded. Binary chunks are what Redis takes them for: a syntax error.
func Compile(chunk, name string) (*Prototype, error) { return CompileTicking(chunk, name, nil) }

// CompileMemory is about the most bytes that compiling one byte of a
// chunk takes.
const CompileMemory = 16

// interruption is the panic that ends CompileTicking when its tick has returned an error.
type interruption struct{ err error }

// CompileTicking compiles as Compile does. If tick is not nil, it calls tick every few
// thousand bytes, about every 200 us, and ends with tick's error if there is one.
func CompileTicking(chunk, name string, tick func() error) (p *Prototype, err error) {
	c := &parser{lexer: lexer{chunk: chunk, tick: tick, nextTick: tickBytes, source: keptName(name), line: 1, lastLine: 1,
		texts: make(map[string]*text, min(len(chunk)/16, 100))}}
	defer func() {
		if r := recover(); r != nil {
			switch e := r.(type) {
			case *Error:
				p, err = nil, e
			case interruption:
				p, err = nil, e.err
			default:
				panic(r)
			}
		}
	}()
	return c.main(), nil
}

// keptNames is the number of bytes that are stored of a chunk's name: more than any
// message shows.
const keptNames = 128

// keptName returns the stored part of a chunk's name, which may be the chunk itself: the
// end of a file name, and the beginning of another name.
func keptName(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	if len(name) <= keptNames {
		return strings.Clone(name)
	}
	if name[0] == '@' {
		return "@" + name[len(name)-keptNames:]
	}
	return strings.Clone(name[:keptNames])
}

// ChunkID returns a chunk's name as messages of running programs show it: at most 59 bytes
// of `=name` and `@file`, or [string "..."] with the first line of the chunk.
func ChunkID(name string) string { return chunkID(name, 60) }

// chunkID returns the name as luaO_chunkid does for a C buffer of this size.
func chunkID(name string, size int) string {
	name, _, _ = strings.Cut(name, "\x00")
	if file, ok := strings.CutPrefix(name, "@"); ok {
		if size -= len(" '...' ") + 1; len(file) > size {
			return "..." + file[len(file)-size:]
		}
		return file
	}
	if label, ok := strings.CutPrefix(name, "="); ok {
		return label[:min(len(label), size-1)]
	}
	size -= len(` [string "..."] `) + 1
	end := strings.IndexAny(name, "\n\r")
	if end < 0 {
		end = len(name)
	}
	if end = min(end, size); end < len(name) {
		return `[string "` + name[:end] + `..."]`
	}
	return `[string "` + name + `"]`
}

// function is a function that is being compiled: its code so far, its registers,
// and its place among the functions around it.
//
// The registers from 0 to the number of active locals hold these; those up to
// free hold intermediate values, as on a stack.
type function struct {
	*Prototype
	parser *parser
	outer  *function
	block  *block

	first  int // its first variable among the parser's
	active int // how many of its locals are in scope
	free   int // the first free register

	here   jumps // jumps to the next instruction, whatever it will be
	target int   // the last position that something jumps to

	constantIndex map[Value]int // texts are unique, so their pointers will do
	captured      []int         // the variable behind each upvalue, an index among the parser's
	hidden        int           // the variable "arg" of a vararg function, -1: none
	usesHidden    bool          // it is referred to
	usesDots      bool          // "..." is
}

// block is a scope of locals.
type block struct {
	outer    *block
	active   int // the locals in scope outside
	loop     bool
	breaks   jumps
	captured bool // a local of it is some closure's upvalue
}

// openFunction begins a function inside the current one.
func (c *parser) openFunction(line int) *function {
	f := &function{parser: c, outer: c.fn, first: len(c.active), target: -1, hidden: -1,
		Prototype: &Prototype{Source: c.source, Line: line, Registers: 2}}
	f.code, f.lines = make([]Instruction, 0, 16), make([]int32, 0, 16)
	c.fn = f
	return f
}

// closeFunction ends the current function. Its code is copied to slices of the
// length it has, as scripts are kept for long.
func (c *parser) closeFunction() *Prototype {
	f := c.fn
	f.removeLocals(0)
	f.ret(0, 0)
	if f.usesHidden && !f.usesDots {
		f.ArgTable = true
		f.code[0] = encode(OpJmp, 0, 0, 0, 0) // the call has made the table: do not clear it
	}
	c.fn = f.outer
	c.active = c.active[:f.first]
	p := f.Prototype
	p.code, p.constants, p.children = slices.Clone(p.code), slices.Clone(p.constants), slices.Clone(p.children)
	p.upvalues, p.lines, p.locals = slices.Clone(p.upvalues), slices.Clone(p.lines), slices.Clone(p.locals)
	p.size = int(unsafe.Sizeof(*p)) +
		len(p.code)*int(unsafe.Sizeof(p.code[0])) +
		len(p.lines)*int(unsafe.Sizeof(p.lines[0])) +
		len(p.constants)*int(unsafe.Sizeof(Value{})) +
		len(p.children)*int(unsafe.Sizeof(p)) +
		len(p.upvalues)*int(unsafe.Sizeof(upvalueSource{})) +
		len(p.locals)*int(unsafe.Sizeof(localVariable{}))
	for _, k := range p.constants {
		if k.IsString() {
			p.size += k.length()
		}
	}
	for _, l := range p.locals {
		p.size += len(l.name)
	}
	for _, u := range p.upvalues {
		p.size += len(u.name)
	}
	for _, child := range p.children {
		p.size += child.size
	}
	return p
}

// limit fails if the function has more than max of something.
func (f *function) limit(n, max int, what string) {
	if n <= max {
		return
	}
	if f.Line == 0 {
		f.parser.fail(fmt.Sprintf("main function has more than %d %s", max, what))
	}
	f.parser.fail(fmt.Sprintf("function at line %d has more than %d %s", f.Line, max, what))
}

// Variables.

// variable is a local of a function that is being compiled.
type variable struct {
	owner *function
	name  *text
	outer int // what the name was bound to outside
	local int // its index in the function's locals, once it is active
}

// declare adds a local that is not in scope yet.
func (f *function) declare(name *text) {
	c := f.parser
	f.limit(len(c.active)-f.first+1, maxLocals, "local variables")
	c.active = append(c.active, variable{owner: f, name: name})
}

// activate brings the next n declared locals into scope, in the registers that
// follow those of the locals before.
func (f *function) activate(n int) {
	c := f.parser
	for ; n > 0; n-- {
		index := f.first + f.active
		v := &c.active[index]
		v.outer, v.name.bound = v.name.bound, index+1
		v.local = len(f.locals)
		f.locals = append(f.locals, localVariable{name: v.name.String(), register: f.active, begin: len(f.code)})
		f.active++
	}
}

// removeLocals ends the scope of all locals but the first n.
func (f *function) removeLocals(n int) {
	c := f.parser
	for f.active > n {
		f.active--
		v := &c.active[f.first+f.active]
		f.locals[v.local].end = len(f.code)
		v.name.bound = v.outer
	}
	c.active = c.active[:f.first+n]
}

// lookup returns the expression for a name.
func (f *function) lookup(name *text) expr {
	if name.bound == 0 {
		return expr{kind: exprGlobal, info: f.constant(name.value)}
	}
	index := name.bound - 1
	v := &f.parser.active[index]
	if index == v.owner.hidden {
		v.owner.usesHidden = true
	}
	if v.owner == f {
		return expr{kind: exprLocal, info: index - f.first}
	}
	return expr{kind: exprUpvalue, info: f.upvalue(index)}
}

// upvalue returns the index of the upvalue that holds a variable of a function around this
// one. It asks that function only the first time, so that a name costs the same at any
// depth.
func (f *function) upvalue(index int) int {
	if i := slices.Index(f.captured, index); i >= 0 {
		return i
	}
	v := &f.parser.active[index]
	source := upvalueSource{name: v.name.String()}
	if v.owner == f.outer {
		source.local, source.index = true, index-f.outer.first
		b := f.outer.block
		for b != nil && b.active > source.index {
			b = b.outer
		}
		if b != nil {
			b.captured = true
		}
	} else {
		source.index = f.outer.upvalue(index)
	}
	f.limit(len(f.upvalues)+1, maxUpvalues, "upvalues")
	f.captured = append(f.captured, index)
	f.upvalues = append(f.upvalues, source)
	return len(f.upvalues) - 1
}

func (f *function) enter(b *block) {
	b.outer, b.active = f.block, f.active
	f.block = b
}

func (f *function) leave() {
	b := f.block
	f.block = b.outer
	f.removeLocals(b.active)
	if b.captured {
		f.emit(OpClose, b.active, 0, 0, 0)
	}
	f.free = f.active
	f.patchHere(b.breaks)
}

// Registers and constants.

// reach makes sure that n registers above the free ones exist.
func (f *function) reach(n int) {
	if n += f.free; n > f.Registers {
		if n >= maxRegisters {
			f.parser.failHere("function or expression too complex")
		}
		f.Registers = n
	}
}

// reserve takes n registers and returns the first.
func (f *function) reserve(n int) int {
	f.reach(n)
	f.free += n
	return f.free - n
}

// release gives back a register that holds an intermediate value, the last one
// taken. What holds a local or names a constant is left alone.
func (f *function) release(r int) {
	if r < constantBit && r >= f.active {
		f.free--
	}
}

// constant returns the index of a constant. 0 and -0 share one constant, as in Lua 5.1: a
// function keeps the one that comes first.
func (f *function) constant(v Value) int {
	key := v
	if n, ok := v.AsNumber(); ok && n == 0 {
		key = Number(0)
	}
	if i, ok := f.constantIndex[key]; ok {
		return i
	}
	if len(f.constants) > maxD {
		f.parser.fail("constant table overflow")
	}
	if f.constantIndex == nil {
		f.constantIndex = make(map[Value]int)
	}
	f.constants = append(f.constants, v)
	f.constantIndex[key] = len(f.constants) - 1
	return len(f.constants) - 1
}

// Instructions.

// emit appends an instruction, to which the pending jumps go.
func (f *function) emit(op Op, a, b, c, d int) int {
	f.patch(f.here, len(f.code), noRegister, len(f.code))
	f.here = jumps{}
	f.code = append(f.code, encode(op, a, b, c, d))
	f.lines = append(f.lines, int32(f.parser.lastLine))
	return len(f.code) - 1
}

// setLine corrects the line of the last instruction.
func (f *function) setLine(line int) { f.lines[len(f.lines)-1] = int32(line) }

func (f *function) ret(first, n int) { f.emit(OpReturn, first, n+1, 0, 0) }

// clear sets n registers to nil. A LOADNIL before that nothing jumps behind is
// made longer.
func (f *function) clear(first, n int) {
	if last := len(f.code) - 1; last >= f.target && last >= 0 {
		if i := f.code[last]; i.op() == OpLoadNil && i.a() <= first && first <= i.b()+1 {
			f.code[last] = encode(OpLoadNil, i.a(), max(i.b(), first+n-1), 0, 0)
			return
		}
	}
	f.emit(OpLoadNil, first, first+n-1, 0, 0)
}

// setList stores the values above the register of a table, the last n of the
// items; n is all if an open call or "..." is among them.
func (f *function) setList(table, items, n int) {
	before := (items - 1) / listBatch * listBatch
	if n == all {
		n = 0
	}
	f.emit(OpSetList, table, n, 0, before)
	f.free = table + 1
}

// setSize tells a NEWTABLE how many items and fields its constructor has. Lua 5.1
// keeps these numbers in a byte each, with three bits of precision, rounded
// up; the array part gets exactly that size, which # can tell.
func (f *function) setSize(pc, items, fields int) {
	n := 0
	for ; items >= 16; n++ {
		items = (items + 1) >> 1
	}
	items <<= n
	if fields > 0 {
		fields = 1 + bits.Len(uint(fields-1))
	}
	f.code[pc] = encode(OpNewTable, f.code[pc].a(), 0, fields, items)
}

// Jumps.

// jumps is a list of jumping instructions whose target is not known yet: each
// holds the distance to the next one in its D, the last one noJump. Positions
// are plus one, so that the zero value is the empty list.
type jumps struct{ first, last int }

// noJump ends a list of jumps: no jump goes to itself as long as it is in a list.
const noJump = -1

// noRegister is the A of a TESTSET as long as no expression uses its value.
const noRegister = 255

// add appends a list.
func (f *function) add(l *jumps, more jumps) {
	switch {
	case more.first == 0:
	case l.first == 0:
		*l = more
	default:
		f.aim(l.last-1, more.first-1)
		l.last = more.last
	}
}

func one(pc int) jumps { return jumps{pc + 1, pc + 1} }

// aim sets a jump's target.
func (f *function) aim(pc, target int) {
	d := target - (pc + 1)
	if d > maxD || d < -maxD {
		f.parser.failHere("control structure too long")
	}
	f.code[pc] = f.code[pc]&(1<<40-1) | Instruction(d)<<40
}

// after returns the next jump in a list, -1 if there is none.
func (f *function) after(pc int) int {
	if d := f.code[pc].d(); d != noJump {
		return pc + 1 + d
	}
	return -1
}

// jump emits a jump whose target is set later. Pending jumps to this position are chained to it.
func (f *function) jump() jumps {
	pending := f.here
	f.here = jumps{}
	l := one(f.emit(OpJmp, 0, 0, 0, noJump))
	f.add(&l, pending)
	return l
}

// label returns the position of the next instruction, as something will jump to it.
func (f *function) label() int {
	f.target = len(f.code)
	return len(f.code)
}

// patchHere sends jumps to the next instruction.
func (f *function) patchHere(l jumps) {
	f.label()
	f.add(&f.here, l)
}

// patchTo sends jumps to a position.
func (f *function) patchTo(l jumps, target int) {
	if target == len(f.code) {
		f.patchHere(l)
		return
	}
	f.patch(l, target, noRegister, target)
}

// patch sends those jumps of a list that keep a value in register r to one
// position, and the others to another.
func (f *function) patch(l jumps, kept, r, others int) {
	for pc := l.first - 1; pc >= 0; {
		next := f.after(pc)
		if f.keep(pc, r) {
			f.aim(pc, kept)
		} else {
			f.aim(pc, others)
		}
		pc = next
	}
}

// keep makes a TESTSET keep its value in register r, if it is one. Without a
// register, or if the value is there already, it becomes a TEST.
func (f *function) keep(pc, r int) bool {
	i := f.code[pc]
	if i.op() != OpTestSet {
		return false
	}
	if r != noRegister && r != i.b() {
		f.code[pc] = encode(OpTestSet, r, i.b(), i.c(), i.d())
	} else {
		f.code[pc] = encode(OpTest, i.c(), i.b(), 0, i.d())
	}
	return true
}

// keepNone makes all jumps of a list keep no value.
func (f *function) keepNone(l jumps) {
	for pc := l.first - 1; pc >= 0; pc = f.after(pc) {
		f.keep(pc, noRegister)
	}
}

// needsValue reports whether a jump of a list keeps no value.
func (f *function) needsValue(l jumps) bool {
	for pc := l.first - 1; pc >= 0; pc = f.after(pc) {
		if f.code[pc].op() != OpTestSet {
			return true
		}
	}
	return false
}
