package lua

// status is the state of a coroutine.
type status uint8

const (
	suspended status = iota
	running
	normal // it has resumed another one
	dead
)

func (s status) String() string { return [...]string{"suspended", "running", "normal", "dead"}[s] }

// errYield goes up from the builtin yield to the resume that runs the coroutine.
var errYield error = &Error{Value: String("attempt to yield from outside a coroutine")}

// errBoundary is the error of yield where a builtin, or the main program, is between
// it and the resume.
var errBoundary error = &Error{Value: String("attempt to yield across metamethod/C-call boundary")}

// newCoroutine returns a coroutine that will run f.
func (s *State) newCoroutine(f *Closure) (*Thread, error) {
	if err := s.heap.charge(threadBytes + (coroutineStack+spare)*valueBytes); err != nil {
		return nil, err
	}
	co := newThread(s, coroutineStack)
	co.body = f
	return co, nil
}

// resume runs a coroutine until it yields, returns or fails. The arguments lie on
// the stack of from, as the results then do on that of t. It nests a run of the
// interpreter in the one that has called it.
func (t *Thread) resume(from *Thread, args []Value) ([]Value, error) {
	s := t.state
	if t.status != suspended {
		return nil, &Error{Value: String("cannot resume " + t.status.String() + " coroutine")}
	}
	if s.calls >= maxCalls-1 {
		return nil, &Error{Value: String("C stack overflow")}
	}
	calls := s.calls
	s.calls++
	t.calls = s.calls
	from.status, t.status = normal, running
	s.current = t
	rs, err := t.run(args)
	s.current = from
	from.status = running
	s.calls = calls

	switch {
	case err == errYield:
		t.status = suspended
		return t.yielded, nil
	case err != nil:
		t.leave(place{ci: &t.root, calls: calls})
	}
	t.status = dead
	// The stack is no more needed once the results have been copied from it.
	t.stack, t.limit, t.root.next, t.yielded, t.body = nil, 0, nil, nil, nil
	return rs, err
}

// run starts or continues the coroutine.
func (t *Thread) run(args []Value) ([]Value, error) {
	if t.body != nil {
		f := t.body
		t.body = nil
		if err := t.reserve(len(args) + 1); err != nil {
			return nil, err
		}
		t.stack[0] = ClosureValue(f)
		copy(t.stack[1:], args)
		if err := t.push(f, 0, len(args)); err != nil {
			return nil, err
		}
		t.ci.flags = flagFresh
	} else if err := t.answer(args); err != nil {
		return nil, err
	}
	if err := t.execute(); err != nil {
		return nil, err
	}
	return t.stack[:t.results], nil
}

// answer makes args the results of the call of yield at which the coroutine
// stands.
func (t *Thread) answer(args []Value) error {
	ci := t.ci
	i := ci.closure.proto.code[ci.pc-1]
	at := ci.base + i.a()
	if err := t.reserve(at + len(args)); err != nil {
		return err
	}
	copy(t.stack[at:], args)
	if i.op() == OpTailCall {
		t.returning, t.results, t.top = true, len(args), at+len(args)
		return nil
	}
	want := i.c() - 1
	if want < 0 {
		t.top = at + len(args)
	}
	for j := len(args); j < want; j++ {
		t.stack[at+j] = Nil
	}
	return nil
}

func openCoroutine(s *State) {
	openLibrary(s, "coroutine", []library{
		{"create", coroutineCreate},
		{"resume", coroutineResume},
		{"running", coroutineRunning},
		{"status", coroutineStatus},
		{"wrap", coroutineWrap},
		{"yield", coroutineYield},
	})
}

// newFrom makes a coroutine of argument 1.
func newFrom(c Call) (*Thread, error) {
	f := c.Arg(1)
	if f.w>>tagShift != tagClosure {
		return nil, c.ArgError(1, "Lua function expected")
	}
	return c.State().newCoroutine(f.closure())
}

func coroutineCreate(c Call) error {
	co, err := newFrom(c)
	if err != nil {
		return err
	}
	return c.Return(ThreadValue(co))
}

func coroutineResume(c Call) error {
	co, ok := c.Arg(1).AsThread()
	if !ok {
		return c.ArgError(1, "coroutine expected")
	}
	t := c.t
	rs, err := co.resume(t, t.stack[c.base+1:c.base+c.n])
	if err != nil {
		if e := t.state.caught(err); e != nil {
			return c.Return(False, e.Value)
		}
		return err
	}
	to, err := c.Results(1 + len(rs))
	if err != nil {
		return err
	}
	to[0] = True
	copy(to[1:], rs)
	return nil
}

func coroutineRunning(c Call) error {
	if t := c.t; t != t.state.main {
		return c.Return(ThreadValue(t))
	}
	return c.Return(Nil)
}

func coroutineStatus(c Call) error {
	co, ok := c.Arg(1).AsThread()
	if !ok {
		return c.ArgError(1, "coroutine expected")
	}
	return c.Return(String(co.status.String()))
}

func coroutineWrap(c Call) error {
	co, err := newFrom(c)
	if err != nil {
		return err
	}
	return c.Return(BuiltinValue(&Builtin{Name: "wrap", Held: ThreadValue(co), Run: func(c Call) error {
		t := c.t
		rs, err := co.resume(t, t.stack[c.base:c.base+c.n])
		if err != nil {
			if e := t.state.caught(err); e != nil && joins(e.Value) {
				return &Error{Value: String(t.Where(1) + asText(e.Value))}
			}
			return err
		}
		to, err := c.Results(len(rs))
		copy(to, rs)
		return err
	}}))
}

func coroutineYield(c Call) error {
	t := c.t
	if t == t.state.main || t.state.calls > t.calls {
		return errBoundary
	}
	for ci := t.ci; ci != &t.root; ci = ci.prev {
		if ci.flags&flagIterator != 0 {
			return errBoundary
		}
	}
	t.yielded = t.stack[c.base : c.base+c.n]
	return errYield
}
