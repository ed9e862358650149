// Package console is a web console for an ebb server, or for an engine in a program: pages on the state of
// the data, and one API under them.
//
//	browser ── GET pages, GET api/... ──▶ Console.ServeHTTP ── guard ── viewer ── call ── a session of the user ── engine
//	        ── POST api/do {argv} ─────▶       (the same)                                    ACL, gates, log
//
// The user of the console is a user of the server: what the user may not run by the Redis protocol, the
// console does not run either. Its reads change neither idle times nor sliding deadlines.
//
// Invariants: every command of a viewer passes through call.do, or through the gate and call.run. A session
// runs the commands of one viewer. After Close nothing of the console runs.
//
// Start reading at New, then Console.serve and call.do. Each screen has files with its name, as in
// ui/screens: its endpoints, their rows and helpers; a second word in the name is that of a card, as in
// ui/cards. A file uses only files below it in this list, except that New in console.go reads the table of
// endpoints.
//
//	api.go, ui.go              the table of endpoints, and the pages
//	auth.go, me.go             the user of a request, and the user's permissions
//	feed.go, feed_*.go         the stream of events
//	do.go                      writes
//
//	now.go                     concerns for an operator
//	expiry.go                  expirations to come, and the lateness of past ones
//	limits.go, locks.go, queues.go
//	keys.go, key.go, key_*.go  lists of keys, and one key
//	streams.go                 streams, their groups, and expiry rules
//	performance*.go            commands, slow calls, latency, scripts, hot keys, memory by prefix
//	server*.go                 INFO, clients, replication, files, configuration, users, refused calls
//	shell.go                   the commands that the shell knows
//
//	ranked.go                  the first rows of a list, sorted by a column
//	transaction.go             commands that run only if the values that the page has shown are unchanged
//	audit.go, gate.go          the record of writes, and refusals
//	hidden.go                  the form of values for a page if values are hidden
//	guard.go, request.go       bounds, checks of browser requests, and parameters; adminhttp.Guard runs before
//	caller.go                  commands as a user
//	console.go                 New, Close, and the fields of a console
//
//	viewer.go                  a user at an address, with its sessions
//	hub.go, ring.go, sample.go the state of the server each second
//	walk.go, versions.go       counts by a walk over all keys, and changes of a key
//	auditlog.go                the latest writes and refused calls, which a screen shows
//	shares.go, throttle.go     bounds of concurrent reading, and the pauses after failed logins
//	expiry_forecast.go         the keys that will expire, by intervals
//	feed_topics.go             the topics that a page's stream requests
//	feed_lists.go              lists of rows that several streams share
//	feed_trail.go              the entries that expiry rules have written
//	failure.go, encode.go      error responses; bytes and int64 for JavaScript
//
// docs/design/console.md gives the reasons.
package console
