// Package servercmd implements the commands about the server and its clients: connections, users, the
// configuration, pub/sub, replication, scripts and statistics. It also lists all commands.
//
//	request ─ session.dispatch ─ runConfigSet(*command.Ctx) ─ session.ServiceOf(c).ChangeConfig
//	          may it run?        parse, do, reply             the state
//
// A command is one block: its Spec, which package command explains, and its run function. Commands that need
// no more than their transaction and command.Host are in package commands. The state of a client and of the
// server is in package session and the packages that it imports: a handler gets the client by session.Of, and
// the server by session.ServiceOf. No package below this one knows its commands: a service gets their Table
// as an option.
//
// Start reading at Specs and Table, then at runConfigSet. Each family has a file, or some with the same stem:
//
//	connection, client, tracking  PING, AUTH, HELLO, CLIENT ..., client-side caching
//	transactions, pubsub, monitor MULTI, SUBSCRIBE, PUBLISH, MONITOR
//	script                        EVAL, SCRIPT, FUNCTION, FCALL, and the debugger
//	acl, config, cluster          users, directives, a cluster of one node
//	replication, persist, group   REPLICAOF, PSYNC, WAIT, SAVE, BGREWRITEAOF; shutdown; GROUP
//	info, memory, latency,        statistics for operators: package admin has the numbers
//	slowlog, hotkeys
//	debug, digest, module, server DEBUG, MODULE, TIME, LOLWUT
package servercmd
