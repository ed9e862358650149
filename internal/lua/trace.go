package lua

import "strings"

// This file implements tracing, for a debugger. Traced makes a prototype that stops before
// its lines: it puts an extra instruction before the code of each line. Code that is not
// traced runs as fast as without a debugger.

// Traced returns a copy of the prototype, and of the prototypes in it, that calls the
// State's line function. Its time and memory are proportional to the length of the code.
func (p *Prototype) Traced() *Prototype {
	q := *p
	at := make([]int, len(p.code)+1) // the new index of each old instruction
	q.code, q.lines = make([]Instruction, 0, 2*len(p.code)), make([]int32, 0, 2*len(p.code))
	for i, in := range p.code {
		at[i] = len(q.code)
		// A LOADBOOL that skips the next instruction skips exactly one, so no instruction goes
		// between them. The instruction that prepares the local "arg" belongs to no line.
		if i == 0 && !p.prepares() || i > 0 && (p.code[i-1].op() != OpLoadBool || p.code[i-1].c() == 0) {
			q.code, q.lines = append(q.code, encode(OpLine, 0, 0, 0, 0)), append(q.lines, p.lines[i])
		}
		q.code, q.lines = append(q.code, in), append(q.lines, p.lines[i])
	}
	at[len(p.code)] = len(q.code)
	for i, in := range p.code {
		switch in.op() {
		case OpJmp, OpEq, OpLt, OpLe, OpTest, OpTestSet, OpForLoop, OpForPrep, OpTForLoop:
			from := at[i+1] // the index after the instruction itself
			q.code[from-1] = in&(1<<40-1) | Instruction(at[i+1+in.d()]-from)<<40
		}
	}
	q.locals = make([]localVariable, len(p.locals))
	for i, l := range p.locals {
		l.begin, l.end = at[l.begin], at[l.end]
		q.locals[i] = l
	}
	q.children = make([]*Prototype, len(p.children))
	for i, child := range p.children {
		q.children[i] = child.Traced()
	}
	return &q
}

// prepares reports whether the first instruction comes from parser.parameters, which makes
// the local "arg".
func (p *Prototype) prepares() bool { return p.Vararg && p.Line > 0 }

// SetLine makes the machine call f before a line of a traced function runs: at the
// beginning of the function, at the beginning of another line, and after a backward jump,
// as the line hook of Lua 5.1 does. The line raises an *Error that f returns; any other
// error ends the program. A nil f removes the function.
func (s *State) SetLine(f func(line int) error) { s.atLine = f }

// traceLine runs OpLine; pc is the index after it.
func (t *Thread) traceLine(pc int) error {
	ci := t.ci
	ci.pc = pc
	p := ci.closure.proto
	last, lines, first := int(ci.traced), p.lines, 1
	if p.prepares() {
		first = 2
	}
	ci.traced = int32(pc)
	s := t.state
	if s.atLine == nil || pc > first && pc > last && lines[pc-1] == lines[last-1] {
		return nil
	}
	err := s.atLine(int(lines[pc-1]))
	if _, is := err.(*Error); !is && err != nil && s.stopped == nil {
		s.stopped = err
	}
	return err
}

// Aside calls f on a new thread, while a line function runs, and returns its first result.
// It returns an *Error that f raises to its caller; any other error ends the program.
func (s *State) Aside(f *Closure) (Value, error) {
	from := s.current
	co, err := s.newCoroutine(f)
	if err != nil {
		return Nil, err
	}
	rs, err := co.resume(from, nil)
	if err != nil {
		if e := s.caught(err); e != nil {
			return Nil, e
		}
		return Nil, err
	}
	if len(rs) == 0 {
		return Nil, nil
	}
	return rs[0], nil
}

// Activation is a running call of a Lua function. It is valid until the program continues.
type Activation struct {
	t  *Thread
	ci *frame
}

// Innermost returns the innermost call of a Lua function on the running thread.
func (s *State) Innermost() (Activation, bool) {
	return Activation{s.current, s.current.ci}.orOuter()
}

// Outer returns the next call outwards.
func (a Activation) Outer() (Activation, bool) { return Activation{a.t, a.ci.prev}.orOuter() }

func (a Activation) orOuter() (Activation, bool) {
	for a.ci != nil && a.ci != &a.t.root && a.ci.closure == nil {
		a.ci = a.ci.prev
	}
	return a, a.ci != nil && a.ci != &a.t.root
}

// Source returns the name of the function's chunk, as Load was given it.
func (a Activation) Source() string { return a.ci.closure.proto.Source }

// Line returns the line that the call has reached.
func (a Activation) Line() int { return a.ci.line() }

// Name returns the name by which the caller called the function; "" if there is no name,
// or the caller is not a Lua function.
func (a Activation) Name() string {
	from := a.ci.prev
	if a.ci.tail > 0 || from == nil || from == &a.t.root || from.closure == nil {
		return ""
	}
	p, pc := from.closure.proto, max(from.pc-1, 0)
	switch i := p.code[pc]; i.op() {
	case OpCall, OpTailCall, OpTForLoop:
		_, name := p.variable(pc, i.a())
		return name
	}
	return ""
}

// Locals calls yield for each local in scope, the oldest first, until yield returns false.
// It leaves out the machine's own locals, such as the counter of a loop.
func (a Activation) Locals(yield func(name string, v Value) bool) {
	pc := max(a.ci.pc-1, 0)
	for _, l := range a.ci.closure.proto.locals {
		if l.begin > pc {
			return
		}
		if pc < l.end && !strings.HasPrefix(l.name, "(") && !yield(l.name, a.t.stack[a.ci.base+l.register]) {
			return
		}
	}
}
