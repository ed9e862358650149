package script

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/ebbdb/ebb/internal/lua"
	"github.com/ebbdb/ebb/internal/wire"
)

// tickSteps is the number of steps between two calls of Host.Tick. A step takes 2 to 10
// ns, so that a tick comes about every 20 us: often enough that a killed script ends at
// once, and seldom enough that the calls cost next to nothing.
const tickSteps = 4096

// machine is a Lua State with Redis's additions, and the present run in it.
type machine struct {
	state *lua.State
	main  *lua.Thread
	limit int // bytes of memory, 0: no limit
	// charged is the number of bytes that its State had charged at the end of the last run.
	charged int

	keys *lua.Table // of EVAL's machine: KEYS and ARGV
	argv *lua.Table

	lookup      *lua.Table // of the functions': the metatable by which they find globals,
	runGlobals  lua.Value  // these when they run,
	loadGlobals lua.Value  // these while they are loaded
	libraries   int        // that were ever loaded: the last id

	host    Host     // whose script runs; nil between runs
	proto   int      // of the replies to redis.call
	loading *loading // the library that registers functions now; nil: none
	where   position // of the error that ends the run
	written int      // bytes of the result, about
	refusal error    // why the result is not written

	debug *Debugger // watches the run; nil: none does

	handler  func(*lua.Thread, *lua.Error) *lua.Error // m.locate, made once
	args     [][]byte                                 // of redis.call, reused
	digits   []byte                                   // of numbers among them
	items    []lua.Value                              // of lists that are made, reused
	keepArgs int                                      // how many of args the run used
}

// position is a place in a script: its chunk's name and a line. The zero
// position is none.
type position struct {
	source string
	line   int
}

func newMachine() *machine {
	s := lua.New()
	m := &machine{state: s, main: s.Main(), proto: 2}
	s.SetInterrupt(tickSteps, m.tick)
	m.handler = m.locate
	return m
}

// bound sets the memory limit, after Redis's additions are made.
func (m *machine) bound(limit int) {
	m.limit = limit
	m.state.SetMemoryLimit(limit)
}

// begin prepares a run.
func (m *machine) begin(h Host) {
	m.host, m.proto, m.where, m.written = h, 2, position{}, 0
}

// maxKeptArgs and maxKeptDigits bound what redis.call's buffers keep from one run
// to the next: 24 KiB and 4 KiB.
const (
	maxKeptArgs   = 1024
	maxKeptDigits = 4096
)

// end releases the values of the run.
func (m *machine) end() {
	if m.proto != 2 {
		m.host.SetProto(2)
	}
	m.main.DropResults()
	m.host, m.proto = nil, 2
	clear(m.args[:m.keepArgs])
	m.args, m.keepArgs = m.args[:0], 0
	if cap(m.args) > maxKeptArgs {
		m.args = nil
	}
	if cap(m.digits) > maxKeptDigits {
		m.digits = nil
	}
}

// run calls the function of a script or library and writes its first result.
func (m *machine) run(f lua.Value, out *wire.Writer, args ...lua.Value) error {
	results, err := m.main.CallHandled(m.handler, f, args...)
	if err != nil {
		return err
	}
	var result lua.Value
	if len(results) > 0 {
		result = results[0]
	}
	return m.answer(out, result)
}

// runFunction calls a function with tables of keys and arguments. It makes new tables each
// time, because a function may keep them in an upvalue.
func (m *machine) runFunction(f *Function, keys, args [][]byte, out *wire.Writer) error {
	keyList, err := m.list(keys)
	if err != nil {
		return err
	}
	argList, err := m.list(args)
	if err != nil {
		return err
	}
	return m.run(f.callback, out, keyList, argList)
}

// tick returns the machine's interrupt function.
func (m *machine) tick() error {
	err := m.host.Tick()
	if err == nil && m.debug != nil {
		err = m.debug.tick()
	}
	if err != nil {
		m.where = m.position()
	}
	return err
}

// locate records the position of an error that the script does not catch. It runs before
// the calls are unwound.
func (m *machine) locate(_ *lua.Thread, e *lua.Error) *lua.Error {
	m.where = m.position()
	return e
}

// position returns the line that runs: that of the innermost function, or of its caller if
// it is one of Go.
func (m *machine) position() position {
	return m.positionFrom(0)
}

// handlerPosition returns the position for a builtin that handles an error.
func (m *machine) handlerPosition() position { return m.positionFrom(1) }

func (m *machine) positionFrom(level int) position {
	source, line, ok := m.state.Position(level)
	if ok && line < 0 {
		source, line, ok = m.state.Position(level + 1)
	}
	if !ok {
		return position{}
	}
	return position{source, line}
}

// failure returns the error reply of a script that failed: "message script: name, on
// @user_script:line.", where the message begins with a code. An error of Host.Tick stays
// as it is unless it is an Error.
func (m *machine) failure(err error, name string) error {
	var text string
	counted := false
	switch e := err.(type) {
	case *lua.Error:
		text = m.message(e)
		if t, ok := e.Value.AsTable(); ok {
			counted = t.GetString(countedMark).Truth()
		}
	case Error:
		text = string(e)
	default:
		return err
	}
	if m.where.source == "" {
		text = strings.Clone(text) // it may lie in the arguments' memory
	} else {
		text += " script: " + name + ", on " + m.where.source + ":" + strconv.Itoa(m.where.line) + "."
	}
	if counted {
		return Counted{Error(text)}
	}
	return Error(text)
}

// message returns an error's text with its code. That of an error table is in its field
// err; other values are what tostring makes of them, without a code.
func (m *machine) message(e *lua.Error) string {
	t, ok := e.Value.AsTable()
	if !ok {
		return cString("ERR " + m.text(e.Value))
	}
	v := t.GetString("err")
	if !v.IsString() && !v.IsNumber() {
		return "ERR unknown error"
	}
	return cString(m.text(v))
}

// text returns a value as tostring does, for values that are not tables.
func (m *machine) text(v lua.Value) string {
	if s, ok := v.AsString(); ok {
		return s
	}
	s, _ := m.main.ToString(v)
	return s
}

// cString cuts a text at its first NUL, as Redis does with texts of statuses and
// errors.
func cString(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}

// reset replaces the contents of a table by the list of items.
func (m *machine) reset(t *lua.Table, items [][]byte) error {
	err := t.Reset(m.strings(items))
	clear(m.items)
	return err
}

// list returns a new table of items.
func (m *machine) list(items [][]byte) (lua.Value, error) {
	t, err := m.state.NewArray(m.strings(items))
	clear(m.items)
	return lua.TableValue(t), err
}

// strings returns items as strings that share their bytes, valid until its next
// call.
func (m *machine) strings(items [][]byte) []lua.Value {
	m.items = m.items[:0]
	for _, b := range items {
		m.items = append(m.items, lua.Bytes(b))
	}
	return m.items
}

// bytesOf returns the bytes of a string, which must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
