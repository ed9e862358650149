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
// Start reading at New, then Console.serve and call.do. The endpoints of a screen, their rows and what they need are in the files of its
// name, as in ui/screens; a word behind the name is that of a card, as in ui/cards. A file uses what stands below it. The one exception is
// New in console.go, which reads the table of endpoints.
//
//	api.go, ui.go              the table of endpoints, and the pages
//	auth.go, me.go             who a request comes from, and what the user may do
//	feed.go, feed_*.go         the stream of events
//	do.go                      the one way to write
//
//	now.go                     what an operator should look at
//	expiry.go                  what expires when, and whether it was on time
//	limits.go, locks.go, queues.go
//	keys.go, key.go, key_*.go  lists of keys, and one key
//	streams.go                 streams, their groups, and expiry rules
//	performance*.go            commands, slow calls, latency, scripts, hot keys, memory by prefix
//	server*.go                 INFO, clients, replication, files, configuration, users, what was refused
//	shell.go                   what the shell knows of commands
//
//	ranked.go                  the rows of a list that come first by a column
//	transaction.go             commands that run only if the page has shown what is so
//	audit.go, gate.go          what a write leaves behind, and what is refused
//	hidden.go                  what a page gets where values are hidden
//	guard.go, request.go       bounds, what a browser must not send, and parameters; adminhttp.Guard is before them
//	caller.go                  commands under a user
//	console.go                 New, Close, and what a console has
//
//	viewer.go                  a user at an address, with its sessions
//	hub.go, ring.go, sample.go the state of the server each second
//	walk.go, versions.go       what a walk over all keys counts, and whether a key has changed
//	auditlog.go                the latest writes and refused calls, which a screen shows
//	shares.go, throttle.go     how much requests read at a time, and the pauses after failed logins
//	expiry_forecast.go         the keys that will expire, by intervals
//	feed_topics.go             what a stream of the page asks for
//	feed_lists.go              lists of rows that several streams share
//	feed_trail.go              what expiry rules have written
//	failure.go, encode.go      answers that are errors; bytes and int64 for JavaScript
//
// docs/design/console.md says why.
package console
