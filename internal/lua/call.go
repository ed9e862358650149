package lua

import "fmt"

// Builtin is a function that is written in Go.
type Builtin struct {
	// Name is for code that inspects a State; messages take names from the call.
	Name string
	// Run does the work. It ends with a call of Return or Results of its Call,
	// or returns an error: from the Call's methods, or an *Error of its own. It
	// must not keep the Call.
	Run func(c Call) error
	// Held is a value that Run refers to, so that the heap counts it; nil: none.
	Held Value
	mark uint32
}

// Call is one call of a Builtin. Arguments count from 1, as messages do.
type Call struct {
	t       *Thread
	base, n int
}

// Thread returns the thread that calls.
func (c Call) Thread() *Thread { return c.t }

// State returns the machine in which it calls.
func (c Call) State() *State { return c.t.state }

// N returns the number of arguments.
func (c Call) N() int { return c.n }

// Arg returns argument i, nil if there are fewer.
func (c Call) Arg(i int) Value {
	if uint(i-1) >= uint(c.n) {
		return Nil
	}
	return c.t.stack[c.base+i-1]
}

// Return ends the call with these results, which it copies.
func (c Call) Return(vs ...Value) error {
	if len(vs) == 1 {
		c.t.stack[c.base-1] = vs[0]
		c.t.results = 1
		return nil
	}
	if len(vs) <= smallFrame/2 {
		copy(c.t.stack[c.base-1:], vs)
		c.t.results = len(vs)
		return nil
	}
	to, err := c.Results(len(vs))
	copy(to, vs)
	return err
}

// Results ends the call with n results, and returns the slots for them. The slots may
// overlap the arguments. The error is "stack overflow".
func (c Call) Results(n int) ([]Value, error) {
	if n > maxResults {
		return nil, c.Errorf("stack overflow (too many results)")
	}
	if err := c.t.reserve(c.base + n); err != nil {
		return nil, err
	}
	c.t.results = n
	return c.t.stack[c.base-1 : c.base-1+n : c.base-1+n], nil
}

// The following return argument i as luaL_check* and luaL_opt* do: numbers and
// strings are converted to each other, and what is wrong is an error such as
// "bad argument #1 to 'rep' (string expected, got no value)". Opt returns the
// default if the argument is nil or absent.

func (c Call) CheckString(i int) (string, error) {
	v := c.Arg(i)
	if v.IsString() {
		return v.str(), nil
	}
	if v.IsNumber() {
		return FormatNumber(v.number()), nil
	}
	return "", c.TypeError(i, "string")
}

func (c Call) CheckNumber(i int) (float64, error) {
	v := c.Arg(i)
	if v.IsNumber() {
		return v.number(), nil
	}
	if f, ok := c.State().toNumber(v); ok {
		return f, nil
	}
	return 0, c.TypeError(i, "number")
}

func (c Call) CheckInt(i int) (int, error) {
	if v := c.Arg(i); v.IsNumber() {
		return int(ToInt64(v.number())), nil
	}
	f, err := c.CheckNumber(i)
	return int(ToInt64(f)), err
}

func (c Call) CheckTable(i int) (*Table, error) {
	if v := c.Arg(i); v.IsTable() {
		return v.table(), nil
	}
	return nil, c.TypeError(i, "table")
}

func (c Call) CheckFunction(i int) (Value, error) {
	if v := c.Arg(i); v.IsFunction() {
		return v, nil
	}
	return Nil, c.TypeError(i, "function")
}

func (c Call) CheckAny(i int) (Value, error) {
	if i > c.n {
		return Nil, c.ArgError(i, "value expected")
	}
	return c.Arg(i), nil
}

func (c Call) OptString(i int, d string) (string, error) {
	if c.Arg(i).IsNil() {
		return d, nil
	}
	return c.CheckString(i)
}

func (c Call) OptInt(i int, d int) (int, error) {
	if c.Arg(i).IsNil() {
		return d, nil
	}
	return c.CheckInt(i)
}

// ArgError returns the error of luaL_argerror: "bad argument #i to 'name' (what)". The
// name is the one by which the calling instruction names the function.
func (c Call) ArgError(i int, what string) error {
	kind, name := c.t.calledAs()
	if kind == "method" {
		if i--; i == 0 {
			return c.Errorf("calling '%s' on bad self (%s)", name, what)
		}
	}
	if name = cut(name); name == "" {
		name = "?"
	}
	return c.Errorf("bad argument #%d to '%s' (%s)", i, name, what)
}

// TypeError returns the error of luaL_typerror: "want expected, got ...".
func (c Call) TypeError(i int, want string) error {
	got := "no value"
	if i <= c.n {
		got = c.Arg(i).Kind().String()
	}
	return c.ArgError(i, want+" expected, got "+got)
}

// Errorf returns the error of luaL_error: the message begins with the caller's position.
func (c Call) Errorf(format string, args ...any) error {
	text := c.t.Where(1) + fmt.Sprintf(format, args...)
	if len(text) > longString { // it contains a string of the program's
		if err := c.State().Charge(len(text)); err != nil {
			return err
		}
	}
	return &Error{Value: String(text)}
}

// calledAs returns the name that the running instruction has for what it calls.
func (t *Thread) calledAs() (what, name string) {
	f := t.ci.closure
	if f == nil {
		return "", ""
	}
	pc := t.ci.pc - 1
	switch i := f.proto.code[pc]; i.op() {
	case OpCall, OpTailCall, OpTForLoop:
		return f.proto.variable(pc, i.a())
	}
	return "", ""
}
