package lua

import "math"

// State is a Lua machine: a global environment, and the limits for its programs. Only one
// goroutine at a time may use a State and its values.
type State struct {
	heap     heap
	globals  *Table
	registry *Table
	main     *Thread
	current  *Thread // the running thread
	strings  *Table  // the metatable of strings; nil: none

	// budget is the number of steps until the next tick.
	budget    int
	every     int
	interrupt func() error
	stopped   error                // the last result of interrupt, until the end of the program
	atLine    func(line int) error // of SetLine
	ticking   bool                 // an instruction caused the call of interrupt, not a builtin
	// calls is the nesting depth of calls from Go code, over all threads.
	calls int

	// next and inext are the builtins that for loops run without a call: next, and the
	// function that ipairs returns.
	next, inext *Builtin

	concat  concatBuffer
	settled int    // the charged bytes after the last cleaning by settle
	scratch []byte // a buffer for converting numbers to strings
}

const (
	// mainStack is the initial size of the main thread's stack, in values; coroutineStack is
	// that of other threads.
	mainStack      = 1024
	coroutineStack = 32
	// callCost is the number of steps that a call costs.
	callCost = 4
)

// New returns a State whose environment is empty.
func New() *State {
	s := &State{budget: math.MaxInt}
	s.heap.init(s)
	s.globals = newTable(&s.heap, 0, 0)
	s.registry = newTable(&s.heap, 0, 0)
	s.main = newThread(s, mainStack)
	s.main.status = running
	s.current = s.main
	return s
}

// Globals returns the table of globals.
func (s *State) Globals() *Table { return s.globals }

// SetGlobals replaces the table of globals for chunks that are loaded later.
func (s *State) SetGlobals(t *Table) { s.globals = t }

// Registry returns a table in which Go code can keep values, and which programs cannot
// reach.
func (s *State) Registry() *Table { return s.registry }

// Main returns the main thread. Programs run in it, except for their coroutines.
func (s *State) Main() *Thread { return s.main }

// SetStringMeta sets the metatable of all strings.
func (s *State) SetStringMeta(t *Table) { s.strings = t }

// Load compiles a chunk and returns it as a function in the State's environment. The name
// has the form of Lua's chunk names: "=stdin", "@file", or the text itself. The error is
// an *Error whose value is the message of luaL_loadbuffer.
func (s *State) Load(chunk, name string) (*Closure, error) {
	if err := s.heap.charge(CompileMemory * len(chunk)); err != nil {
		return nil, err
	}
	p, err := CompileTicking(chunk, name, func() error { return s.Spend(10 * tickBytes) })
	if err != nil {
		return nil, err
	}
	if err := s.heap.charge(p.size + closureBytes); err != nil {
		return nil, err
	}
	return s.Bind(p, s.globals), nil
}

// Bind returns a compiled chunk as a function in an environment.
func (s *State) Bind(p *Prototype, env *Table) *Closure { return &Closure{proto: p, env: env} }

// NewTable returns an empty table with room for items and fields.
func (s *State) NewTable(items, fields int) *Table { return newTable(&s.heap, items, fields) }

// SetMemoryLimit limits the memory of a program's values, in bytes; 0 means no limit. A
// program can exceed the limit by a sixteenth before the machine notices.
func (s *State) SetMemoryLimit(bytes int) { s.heap.setLimit(bytes) }

// SetInterrupt makes f be called after every `every` steps of a program (see
// Spend). An error that it returns ends the program: nothing in it can catch it.
func (s *State) SetInterrupt(every int, f func() error) {
	s.every, s.interrupt, s.budget = every, f, every
	if f == nil || every <= 0 {
		s.every, s.interrupt, s.budget = 0, nil, math.MaxInt
	}
}

// Charge accounts for n bytes that a program has made the caller allocate. The
// error is "not enough memory", which a program may catch.
func (s *State) Charge(n int) error { return s.heap.charge(n) }

// Spend accounts for n steps, one being about what an instruction takes: a
// builtin whose work grows with its arguments calls it as it goes on.
func (s *State) Spend(n int) error {
	if s.budget -= n; s.budget >= 0 {
		return nil
	}
	return s.tick()
}

// work accounts for n steps where nothing can be ended: the next jump or call does
// that.
func (s *State) work(n int) { s.budget -= n }

// longString is the length from which on a look at all of a string counts as more
// than the instruction that takes it.
const longString = 1 << 10

// read accounts for a look at the n bytes of a string that is compared or hashed.
func (s *State) read(n int) {
	if n > longString {
		s.work(n >> 4)
	}
}

// tick is called when the budget is used up. Once the interrupt function has returned
// an error the budget stays used up: the next jump or call ends the program, where
// what ticked could not, as a new table.
func (s *State) tick() error {
	if s.interrupt == nil {
		s.budget = math.MaxInt
		return nil
	}
	if s.stopped == nil {
		s.budget = s.every
		s.stopped = s.interrupt()
	}
	if s.stopped != nil {
		s.budget = 0
	}
	return s.stopped
}

// tickAt is tick between two instructions.
func (s *State) tickAt() error {
	s.ticking = true
	err := s.tick()
	s.ticking = false
	return err
}

// Position returns where the function at a level is, as Thread.Position says, on the
// thread that runs: for the interrupt function.
func (s *State) Position(level int) (source string, line int, ok bool) {
	return s.current.Position(level)
}

// caught returns err as an error that a program may catch, nil if it may not.
func (s *State) caught(err error) *Error {
	if e, ok := err.(*Error); ok && s.stopped == nil {
		return e
	}
	return nil
}

// settleAfter is the number of bytes that a program allocates before its stack is cleaned
// when it ends, so that what it has left there does not stay for long.
const settleAfter = 1 << 20

// settle is called when a program has ended and its results, if any, are up to
// t.kept.
func (s *State) settle(t *Thread) {
	charged := s.Charged()
	if charged-s.settled < settleAfter && len(t.stack) <= 8*mainStack {
		return
	}
	s.settled = charged
	if s.concat.size() > settleAfter {
		s.concat = concatBuffer{}
	}
	if len(t.stack) > 8*mainStack && t.kept < mainStack {
		stack := make([]Value, mainStack+spare)
		copy(stack, t.stack[:max(t.kept, t.top)])
		t.stack, t.limit = stack, mainStack
	}
	clear(t.stack[max(t.kept, t.top):])
	if t.frames > 1024 {
		t.ci.next, t.frames = nil, 0
	}
	for ci := t.ci.next; ci != nil; ci = ci.next {
		ci.closure = nil
	}
}
