// Package console is a web console for an ebb server, or for an engine in a program: pages on the state of
// the data, and one API under them.
//
//	browser ── GET pages, GET api/... ──▶ Console.ServeHTTP ── guard ── viewer ── call ── a session of the user ── engine
//	        ── POST api/do {argv} ─────▶       (the same)                                    ACL, gates, log
//
// The user of the console is a user of the server: what the user may not run by the Redis protocol, the
// console does not run either. Its reads change neither idle times nor sliding deadlines.
//
// Start reading at New, then Console.serve and call.do. These files are around them:
//
//	api.go     the table of endpoints, parameters and errors
//	auth.go    who a request comes from
//	caller.go  commands under a user
//	docs.go    what the shell knows of commands
//	encode.go  bytes and int64 for JavaScript
package console
