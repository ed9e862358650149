// Package script runs Lua scripts and functions as Redis does: the sandbox, the table
// redis, the conversion of values, the cache of scripts and the libraries of functions. It
// contains no commands: a Host runs them.
//
//	          Engine                 catalogue of scripts and libraries (cache.go,
//	         /      \                library.go, register.go, payload.go)
//	   machine      machine          a State of Lua each: one for EVAL, one for FCALL
//	   (scripts)    (functions)      (machine.go, sandbox.go)
//	        \        /
//	          Host                   redis.call and similar functions (api.go)
//
//	RESP of a command ── reader ──> values of Lua         (reply.go)
//	result of a script ── write ──> wire.Writer           (answer.go)
//
// The libraries cjson, cmsgpack, struct and bit are in files of their names.
//
// Invariants:
//
//   - Nothing that a script of EVAL can write to outlives its run.
//   - Messages are those of redis-server 7.0.15, byte for byte.
//   - LoadLibrary and RestoreLibraries change nothing if they fail.
//   - Only Run, CallFunction, LoadLibrary and RestoreLibraries touch a machine,
//     and their caller runs one of them at a time.
//
// Start reading at Engine.Run, then machine.run.
package script
