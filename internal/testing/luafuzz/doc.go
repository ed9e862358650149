// Package luafuzz writes random programs of Lua 5.1 and runs them on package lua
// and on two oracles: Debian's lua5.1 and the Lua inside redis-server. Where the
// two differ from each other, redis-server is right.
//
//	seed -> generator -> Program -> request -> Ours, Stock, Redis -> output
//	           |            |                      |
//	      generator.go    tree.go        machines.go, harness.lua, stock.lua
//	      statements.go   (made smaller
//	      expressions.go   when outputs
//	      library.go       differ)
//
// Programs print what they compute with the function emit, which writes values as
// text, tables in the order in which next goes over them. They end, because their
// loops count, and they do not depend on addresses; what slips through in spite of
// that is cut off by a bound on steps, memory or time, or does not differ again.
//
// The same harness runs a program on each machine, so that what it prints is
// compared byte by byte: values, the order of tables, and messages with their
// positions. What may differ stands in differences.go, with reasons. The
// campaigns are this package's tests; `make campaign KIND=lua` runs them for longer.
// The programs of internal/lua/testdata/conformance run with the same harness.
//
// Start reading at NewProgram and at harness.lua.
package luafuzz
