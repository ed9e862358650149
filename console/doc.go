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
// Start reading at New, then Console.serve and call.do. A file uses those that stand below it, except for New, which reads the table of
// endpoints. The endpoints of a screen, their rows and what they need are in the files of its name, as in ui/screens; a word behind the name
// is that of a card, as in ui/cards.
//
//	console.go                 New, Close, and what a console has
//	api.go, ui.go              the table of endpoints, and the pages
//	auth.go                    who a request comes from: logins, and users without one
//	me.go                      what the user may do
//
//	now.go                     what an operator should look at
//	expiry*.go                 what expires when, and whether it was on time
//	keys.go, key*.go           lists of keys, and one key
//	limits.go, locks.go, queues.go, streams.go
//	performance*.go            commands, slow calls, latency, scripts, hot keys, memory by prefix
//	server*.go                 INFO, clients, replication, files, configuration, users, what was refused
//	shell.go                   what the shell knows of commands
//	ranked.go                  the rows of a list that come first by a column
//
//	feed.go                    the stream of events, with feed_*.go for its topics and its state
//	do.go, transaction.go      the one way to write, gate.go what it refuses, audit.go what it notes
//	hidden.go                  what a page does not get where values are hidden
//
//	request.go, guard.go       parameters, bounds, and what a browser must not send; adminhttp.Guard is before it
//	caller.go                  commands under a user
//	viewer.go                  a user at an address, with its sessions
//	hub.go, sample.go, ring.go the state of the server each second
//	walk.go, versions.go       walks over all keys, and whether a key has changed
//	auditlog.go, shares.go, throttle.go
//	failure.go, encode.go      answers that are errors; bytes and int64 for JavaScript
//
// docs/design/console.md says why.
package console
