package lua

import "unsafe"

// Thread is a coroutine or a State's main thread: a stack of values, and the frames of its
// running calls.
type Thread struct {
	state *State
	stack []Value
	// limit is the highest base of a frame. Above it the stack has space for spare values,
	// so that the registers of a frame need no check.
	limit int
	// top is the first slot that Go code may use: above the arguments of the running
	// builtin, or the frame of the function whose instruction needs help. Between the
	// instruction that makes an open list of values and the one that uses it, top is the end
	// of the list.
	top int
	// results is the number of results of the call that ended last.
	results int
	// kept is the end of the results that Call returned last.
	kept int

	ci     *frame
	root   frame // below all calls
	frames int   // the number of allocated frames
	open   *upvalue

	status  status
	body    *Closure // the function of a coroutine that has not started yet
	calls   int      // the State's calls when the coroutine was resumed
	yielded []Value  // the arguments of yield
	// returning: the coroutine waits in a tail call of yield, whose results it returns.
	returning bool
	inHandler bool   // the handler of an error is running, which may exceed the limit
	handling  *Error // the error that the handler of CallHandled is handling
	mark      uint32
}

// frame is one call of a Lua function. A builtin has no frame, unless it calls a function:
// it then has a frame without a closure.
type frame struct {
	closure    *Closure
	prev, next *frame
	base       int   // the index of register 0 in the stack
	fn         int   // the index of the function, and later of its results
	pc         int   // the next instruction, valid during a call
	want       int32 // the number of results that the caller wants; -1: all
	tail       int32 // the number of tail calls that replaced each other in the frame
	flags      uint8
	traced     int32 // in a traced function: the index after the last OpLine
}

const (
	// flagFresh: execute returns when the call does.
	flagFresh = 1 << iota
	// flagIterator: a for loop made the call; yield cannot cross it.
	flagIterator
)

const (
	// spare is the space above a frame's base: its registers, and the guaranteed slots for
	// the results of a builtin.
	spare = maxRegisters + smallFrame
	// smallFrame is the number of values that a builtin may return without reserving space.
	smallFrame = 64

	// maxFrames is the greatest nesting depth of calls. Lua 5.1 reaches the same number,
	// because it doubles its array of calls up to LUAI_MAXCALLS = 20000.
	maxFrames = 16384
	// extraFrames is the number of further calls that the handler of an error may nest.
	extraFrames = 64
	// maxCalls is the greatest nesting depth of calls from Go, as LUAI_MAXCCALLS.
	maxCalls = 200
	// maxResults is the most values that a builtin may put on the stack, as LUAI_MAXCSTACK.
	maxResults = 8000
)

// Closure is a Lua function with its upvalues and its environment.
type Closure struct {
	proto    *Prototype
	env      *Table
	upvalues []*upvalue
	mark     uint32
}

// upvalue is a variable of an enclosing function. An open upvalue is in a register of a
// thread; a closed one holds the value itself.
type upvalue struct {
	p      *Value // into the stack, or &value
	value  Value
	index  int      // in the stack, while it is open
	next   *upvalue // open, further down the stack
	marked uint32
}

const (
	valueBytes   = int(unsafe.Sizeof(Value{}))
	frameBytes   = int(unsafe.Sizeof(frame{}))
	threadBytes  = int(unsafe.Sizeof(Thread{}))
	closureBytes = int(unsafe.Sizeof(Closure{}))
	upvalueBytes = int(unsafe.Sizeof(upvalue{}))
)

// newThread returns a thread with space for the call of a function.
func newThread(s *State, size int) *Thread {
	t := &Thread{state: s, stack: make([]Value, size+spare), limit: size}
	t.ci = &t.root
	return t
}

// State returns the machine that the thread belongs to.
func (t *Thread) State() *State { return t.state }

// grow makes space for a frame at base, or for values up to base.
func (t *Thread) grow(base int) error {
	size := max(2*len(t.stack), base+spare)
	if err := t.state.heap.charge(size * valueBytes); err != nil {
		return err
	}
	stack := make([]Value, size)
	copy(stack, t.stack)
	for u := t.open; u != nil; u = u.next {
		u.p = &stack[u.index]
	}
	t.stack, t.limit = stack, size-spare
	return nil
}

// reserve makes space for values up to index end, and for a small frame above them.
func (t *Thread) reserve(end int) error {
	if end <= t.limit {
		return nil
	}
	return t.grow(end)
}

// nextFrame allocates the frames above ci.
func (t *Thread) nextFrame() (*frame, error) {
	limit := maxFrames - 1
	if t.inHandler {
		limit += extraFrames
	}
	if t.frames >= limit {
		return nil, t.errorf("stack overflow")
	}
	n := min(max(4, t.frames), 64, limit-t.frames)
	if err := t.state.heap.charge(n * frameBytes); err != nil {
		return nil, err
	}
	t.frames += n
	fs := make([]frame, n)
	for i := range fs {
		fs[i].prev = t.ci
		if i > 0 {
			fs[i].prev = &fs[i-1]
			fs[i-1].next = &fs[i]
		}
	}
	t.ci.next = &fs[0]
	return t.ci.next, nil
}

// trim frees the frames that a handler has allocated beyond the limit.
func (t *Thread) trim() {
	if t.frames < maxFrames {
		return
	}
	ci := &t.root
	for range maxFrames - 1 {
		ci = ci.next
	}
	ci.next, t.frames = nil, maxFrames-1
}

// enter pushes a frame for the running builtin, before the builtin calls a function.
func (t *Thread) enter() error {
	if t.ci == &t.root {
		return nil
	}
	ci := t.ci.next
	if ci == nil {
		var err error
		if ci, err = t.nextFrame(); err != nil {
			return err
		}
	}
	ci.closure, ci.base, ci.tail, ci.flags = nil, t.top, 0, 0
	t.ci = ci
	return nil
}

// place is a state of a thread's calls, to which leave returns.
type place struct {
	ci         *frame
	top, calls int
}

func (t *Thread) here() place { return place{t.ci, t.top, t.state.calls} }

// leave ends the calls above a place.
func (t *Thread) leave(p place) {
	t.close(p.top)
	t.ci, t.top, t.state.calls = p.ci, p.top, p.calls
}

// Call calls a value and returns its results, which are valid until the thread runs again.
// Builtins may use it (see Call.Thread), and must return its error; a builtin that wants
// to continue after an error uses PCall. The error is an *Error, or what the interrupt
// function returned.
func (t *Thread) Call(f Value, args ...Value) ([]Value, error) {
	here := t.here()
	rs, err := t.call(f, args)
	if err != nil {
		if here.ci == &t.root {
			t.finish(here)
		}
		return nil, err
	}
	t.ci, t.top = here.ci, here.top
	return t.ended(rs)
}

// DropResults releases the last results of Call, which otherwise stay in memory until the
// thread runs again.
func (t *Thread) DropResults() {
	if t.kept > t.top {
		clear(t.stack[t.top:t.kept])
		t.kept = t.top
	}
}

// PCall does the work of Call for builtins that continue after an *Error, as pcall does.
func (t *Thread) PCall(f Value, args ...Value) ([]Value, error) {
	return t.CallHandled(nil, f, args...)
}

// CallHandled does the work of PCall with a handler, which gets an *Error and may replace
// it. The handler runs before the machine removes the frames of the failed functions (see
// Position).
func (t *Thread) CallHandled(handler func(t *Thread, e *Error) *Error, f Value, args ...Value) ([]Value, error) {
	here := t.here()
	rs, err := t.call(f, args)
	if err != nil {
		if e := t.state.caught(err); e != nil && handler != nil {
			before := t.handling
			t.handling = e
			err = handler(t, e)
			t.handling = before
		}
		t.finish(here)
		return nil, err
	}
	t.ci, t.top = here.ci, here.top
	return t.ended(rs)
}

// ended returns results to the caller. If the interrupt function had stopped the program,
// ended returns that error instead.
func (t *Thread) ended(rs []Value) ([]Value, error) {
	if t.ci != &t.root {
		return rs, nil
	}
	if err := t.state.stopped; err != nil && t == t.state.main {
		t.finish(t.here())
		return nil, err
	}
	t.state.settle(t)
	return rs, nil
}

// finish removes the frames above a place after an error.
func (t *Thread) finish(p place) {
	t.leave(p)
	if p.ci == &t.root && t == t.state.main {
		t.state.stopped = nil
		t.state.settle(t)
	}
}

// call does the work of Call, and does not remove the frame of the calling builtin.
func (t *Thread) call(f Value, args []Value) ([]Value, error) {
	fn := t.top
	if err := t.reserve(fn + len(args) + 1); err != nil {
		return nil, err
	}
	if err := t.enter(); err != nil {
		return nil, err
	}
	t.stack[fn] = f
	copy(t.stack[fn+1:], args)
	if err := t.callAt(fn, len(args)); err != nil {
		return nil, err
	}
	t.kept = fn + t.results
	return t.stack[fn:t.kept:t.kept], nil
}

// Call1 calls as Call does, and returns the first result only, nil if there is none.
func (t *Thread) Call1(f Value, args ...Value) (Value, error) {
	rs, err := t.Call(f, args...)
	if err != nil || len(rs) == 0 {
		return Nil, err
	}
	return rs[0], nil
}

// callAt calls the value in a slot of the stack with the n values after it. The results
// begin in that slot; t.results is their number. After an error the frames stay as they
// are.
func (t *Thread) callAt(fn, n int) error {
	s := t.state
	if s.calls++; s.calls >= maxCalls {
		if s.calls == maxCalls {
			return t.errorf("C stack overflow")
		}
		if s.calls >= maxCalls+maxCalls/8 {
			return errInHandler
		}
	}
	if s.budget -= callCost; s.budget < 0 {
		if err := s.tick(); err != nil {
			return err
		}
	}
	if err := t.reserve(fn + n + 1); err != nil {
		return err
	}
	f := t.stack[fn]
	if !f.IsFunction() {
		if err := t.callable(fn, n, -1); err != nil {
			return err
		}
		f = t.stack[fn]
		n++
	}
	var err error
	if f.w>>tagShift == tagBuiltin {
		t.top = fn + 1 + n
		err = f.builtin().Run(Call{t, fn + 1, n})
	} else if err = t.push(f.closure(), fn, n); err == nil {
		t.ci.want, t.ci.flags = -1, flagFresh
		err = t.execute()
	}
	if err != nil {
		return err
	}
	s.calls--
	return nil
}

// push makes the frame for a call of a Lua function with n arguments above slot fn.
func (t *Thread) push(f *Closure, fn, n int) error {
	ci := t.ci.next
	if ci == nil {
		var err error
		if ci, err = t.nextFrame(); err != nil {
			return err
		}
	}
	base, err := t.frameFor(f.proto, fn, n)
	if err != nil {
		return err
	}
	ci.closure, ci.base, ci.fn, ci.pc = f, base, fn, 0
	ci.want, ci.tail, ci.flags = -1, 0, 0
	t.ci = ci
	return nil
}

// frameFor moves the arguments to the slots of the parameters, and returns the base of the
// frame. The extra arguments of a function with "..." stay below it.
func (t *Thread) frameFor(p *Prototype, fn, n int) (int, error) {
	base := fn + 1
	if p.Vararg {
		base += max(n, p.Params)
	}
	if base > t.limit {
		if err := t.grow(base); err != nil {
			return 0, err
		}
	}
	args := t.stack[fn+1:]
	for ; n < p.Params; n++ {
		args[n] = Nil
	}
	if !p.Vararg {
		return base, nil
	}
	for i := range p.Params {
		t.stack[base+i] = args[i]
		args[i] = Nil
	}
	if p.ArgTable {
		arg := newTable(&t.state.heap, n-p.Params, 1)
		for i := p.Params; i < n; i++ {
			if err := arg.SetInt(i-p.Params+1, args[i]); err != nil {
				return 0, err
			}
		}
		if err := arg.SetString("n", Int(n-p.Params)); err != nil {
			return 0, err
		}
		t.stack[base+p.Params] = TableValue(arg)
	}
	return base, nil
}

// upvalueAt returns the open upvalue of a slot, a new one if there is none.
func (t *Thread) upvalueAt(index int) *upvalue {
	at := &t.open
	for *at != nil && (*at).index > index {
		at = &(*at).next
	}
	if u := *at; u != nil && u.index == index {
		return u
	}
	u := &upvalue{p: &t.stack[index], index: index, next: *at}
	*at = u
	return u
}

// close closes the upvalues of a slot and those above.
func (t *Thread) close(index int) {
	for u := t.open; u != nil && u.index >= index; u = t.open {
		t.open, u.next = u.next, nil
		u.value = *u.p
		u.p = &u.value
	}
}

// Position returns the current position in a function. Level 0 is the running builtin,
// level 1 its caller, and so on. In the handler of CallHandled level 0 is the function
// that raised the error; in the interrupt function it is the running function. The source
// is the chunk's name as Load was given it. For a builtin the source is "=[C]" and the
// line -1; for a call that a tail call has replaced, they are "=(tail call)" and -1. ok is
// false if there is no function at the level.
func (t *Thread) Position(level int) (source string, line int, ok bool) {
	ci := t.ci
	if !t.state.ticking && (t.handling == nil || !t.handling.lua) {
		if level == 0 {
			return "=[C]", -1, true
		}
		level--
	}
	for ; ci != &t.root; ci = ci.prev {
		if level == 0 {
			if ci.closure == nil {
				return "=[C]", -1, true
			}
			return ci.closure.proto.Source, ci.line(), true
		}
		level--
		if ci.closure != nil {
			if level -= int(ci.tail); level < 0 {
				return "=(tail call)", -1, true
			}
		}
	}
	return "", 0, false
}

// line returns the line of the instruction that the frame is running.
func (ci *frame) line() int { return int(ci.closure.proto.lines[max(ci.pc-1, 0)]) }

// Where returns the position for messages: "name:line: " of the function at a level. Level
// 1 is the caller of the running builtin. Where returns "" if the function is not written
// in Lua.
func (t *Thread) Where(level int) string {
	source, line, ok := t.Position(level)
	if !ok || line < 0 {
		return ""
	}
	return prefix(source, line)
}
