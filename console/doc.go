// Package console is a web console for an ebb server, or for an engine in a program: pages on the state of
// the data, and one API under them.
//
//	browser ── GET pages, GET api/... ──▶ Console.ServeHTTP ── guard ── viewer ── call ── a session of the user ── engine
//	        ── POST api/do {argv} ─────▶       (the same)                                    ACL, gates, log
//
// The user of the console is a user of the server: what the user may not run by the Redis protocol, the
// console does not run either. Its reads change neither idle times nor sliding deadlines.
//
// Invariants: every command of a viewer goes through call.do, or through the gate and call.run; a session runs the
// commands of one viewer; what Close does not wait for does not run.
//
// Start reading at New, then Console.serve and call.do. These files are around them:
//
//	api.go                     the table of endpoints, parameters and errors
//	guard.go                   bounds, and what a browser must not send; adminhttp.Guard is before it
//	auth.go, throttle.go       who a request comes from: logins, and users without one
//	caller.go                  commands under a user
//	gate.go, do.go, audit.go   the one way to write, what it refuses, and what it notes
//	me.go                      what the user may do
//	encode.go                  bytes and int64 for JavaScript
//	keys.go, view.go, walk.go  lists of keys, one key, and walks over all of them
//	feed.go, sample.go         news as they come
//	versions.go                whether a key has changed
//	concerns.go                what an operator should look at
//	docs.go, ui.go             what the shell knows of commands, and the pages
//
// docs/design/console.md says why.
package console
