// Package effecttest compares ebb with redis-server 7.0.15, Redis 8.0.6 and Valkey 9.1.2 in
// what directives, limits and commands cause, beside the replies that the transcripts compare:
// a connection that is closed, a file that is written, a field of INFO, a key that is evicted,
// an entry of a log.
//
// The scripts in testdata have a section for each directive, limit or field of INFO. A section
// sets what it is about, has clients cause the effect, and writes down what they observe. It is
// played on ebb and on each server that knows the directives in its title, and the
// observations must be the same. Where they are not, the section names the difference:
//
//	== directive hash-max-listpack-entries
//	start --databases 4          options of the start; sections with the same ones share a process
//	# differs: some-id           the observations differ as internal/compat says
//	set hash-max-listpack-entries 2
//	> HSET h a 1 b 2 c 3         send a command, and write down its reply
//	2> OBJECT ENCODING h         the same on another connection
//
// Further lines stand in the table of verbs in player_test.go. The text {x*1000} is a thousand x,
// and {k#*3} is k1 k2 k3. What
// a section has changed with set is undone behind it.
//
// Start reading at TestEffectsAreThoseOfTheServers.
package effecttest
