package lua

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is an error of a program: a value, mostly a string that begins with a
// position. pcall catches it; it does not catch any other Go error, so that what
// an interrupt function returns ends the program.
type Error struct {
	Value Value
	lua   bool // an instruction has raised it, not a builtin
}

// Error returns the message, or the type of a value that is not a message.
func (e *Error) Error() string {
	if s, ok := e.Value.AsString(); ok {
		return s
	}
	return "(error object is a " + e.Value.Kind().String() + " value)"
}

// Errors that have no position.
var (
	// errMemory is raised when a program's values would take more than they may.
	errMemory error = &Error{Value: String("not enough memory")}
	// errInHandler replaces an error whose handler has failed, too.
	errInHandler error = &Error{Value: String("error in error handling")}
)

// prefix returns what a message begins with.
func prefix(source string, line int) string {
	return ChunkID(source) + ":" + strconv.Itoa(line) + ": "
}

// errorf makes an error of the running function: the message begins with its
// position if it is one of Lua.
func (t *Thread) errorf(format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	ci := t.ci
	if ci.closure == nil {
		return &Error{Value: String(text)}
	}
	return &Error{Value: String(prefix(ci.closure.proto.Source, ci.line()) + text), lua: true}
}

// raised gives an error of a table's the position of the running instruction.
func (t *Thread) raised(err error) error {
	switch err {
	case ErrReadonly, errNilIndex, errNaNIndex, errOverflow:
		return t.errorf("%s", err)
	}
	return err
}

// unnamed is the register of a value that is in none.
const unnamed = -1

// describe returns what a message calls the value in a register: "local 'x' (a nil
// value)", or "a nil value".
func (t *Thread) describe(v Value, register int) string {
	kind := "a " + v.Kind().String() + " value"
	if register == unnamed || t.ci.closure == nil {
		return kind
	}
	what, name := t.ci.closure.proto.variable(t.ci.pc-1, register)
	if what == "" {
		return kind
	}
	return what + " '" + cut(name) + "' (" + kind + ")"
}

// cut returns a string as C's printf prints it: up to its first zero.
func cut(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

// typeError returns the error for an operation that the kind of the value in a register
// does not allow.
func (t *Thread) typeError(do string, v Value, register int) error {
	return t.errorf("attempt to %s %s", do, t.describe(v, register))
}

// compareError says that two values have no order.
func (t *Thread) compareError(a, b Value) error {
	ka, kb := a.Kind().String(), b.Kind().String()
	if ka[2] == kb[2] { // how C tells the names apart: a string and a thread are the same
		return t.errorf("attempt to compare two %s values", ka)
	}
	return t.errorf("attempt to compare %s with %s", ka, kb)
}

// operand returns the value that B or C of an instruction of the running
// function names, and its register.
func (t *Thread) operand(x int) (Value, int) {
	if x >= constantBit {
		return t.ci.closure.proto.constants[x-constantBit], unnamed
	}
	return t.stack[t.ci.base+x], x
}
