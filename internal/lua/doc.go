// Package lua implements Lua 5.1.5 as the scripts of Redis see it: a compiler, a virtual
// machine and the libraries base, coroutine, table, math and string. It knows nothing of
// the server and imports the standard library alone.
//
//	text --Compile--> Prototype --Bind--> Closure --Call--> results
//	                  (code, constants;   (with an environment and upvalues,
//	                   shared by all)      of one State)
//
// A State is a machine: globals, limits, a main Thread. A Thread is a stack of
// Values and a list of frames:
//
//	stack  | f | a1 a2 | g | b1 ...            values; a frame's registers are the
//	           ^base        ^base              256 from its base
//	frames root <-> f <-> g                    f's pc stands behind its call of g
//
// The function execute runs a frame's instructions; a call from Lua to Lua is
// another frame in the same loop, and a builtin is a Go function that finds its
// arguments on the stack and puts its results there. Only builtins that call back
// (pcall, sort, gsub), metamethods and coroutines nest execute, at most maxCalls
// deep.
//
// Invariants:
//   - An error is returned up the Go stack at once and leaves frames and stack as
//     they are. The catcher (pcall, resume, the outermost Call) removes what is
//     above its own place. So a State can be used again after every error.
//   - No program can catch the error of an interrupt function.
//   - An upvalue is open, and in its thread's list, as long as its register lives.
//   - Everything a program makes grow is charged to the heap before or when it is
//     made, and every loop of a builtin spends steps.
//
// Start reading at Thread.execute, value.go and instruction.go.
package lua
