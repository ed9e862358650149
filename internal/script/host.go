package script

// Host is the server that runs a script; redis.call and similar functions call it. The
// Engine calls it from the goroutine that called Run, CallFunction, LoadLibrary or
// RestoreLibraries, and not after those returned.
type Host interface {
	// Call runs a command and returns its reply in RESP, valid until the next
	// call, encoded for the protocol that SetProto chose last (2 before that).
	// Refusals are error replies as well, with Redis's words for scripts.
	// args are valid during the call only, and must not be changed.
	Call(args [][]byte) []byte
	// SetProto implements redis.setresp: 2 or 3. A run that changed it ends with
	// SetProto(2), for the next run.
	SetProto(proto int)
	// SetReplication implements redis.set_repl: whether the effects from now on go to the
	// append-only file and to replicas.
	SetReplication(aof, replicas bool)
	// Allowed implements redis.acl_check_cmd. The error is for a command that does not
	// exist; its text is not used.
	Allowed(args [][]byte) (bool, error)
	// Log implements redis.log: level is 0 for debug, 1 verbose, 2 notice, 3 warning.
	Log(level int, text string)
	// CountError counts an error that the script returns, for the statistics. counted says
	// that the error is one of a command, which the Host has counted already.
	CountError(text string, counted bool)
	// The Engine calls Tick every few thousand steps, about every 20 us. An error of Tick
	// ends the script, which cannot catch it, and Run returns the error.
	Tick() error
}
