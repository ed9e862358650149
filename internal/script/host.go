package script

// Host is the server that runs a script: the target of redis.call and its kin. The Engine
// calls it from the goroutine that called Run, CallFunction, LoadLibrary or
// RestoreLibraries, and not after those returned.
type Host interface {
	// Call runs a command and returns its reply in RESP, valid until the next
	// call, encoded for the protocol that SetProto chose last (2 before that).
	// Refusals are error replies as well, with Redis's words for scripts.
	// args are valid during the call only, and must not be changed.
	Call(args [][]byte) []byte
	// SetProto is redis.setresp: 2 or 3. A run that changed it ends with
	// SetProto(2), for the next.
	SetProto(proto int)
	// SetReplication is redis.set_repl: whether what follows goes to the
	// append-only file and to replicas.
	SetReplication(aof, replicas bool)
	// Allowed is redis.acl_check_cmd. The error is for a command that does not
	// exist; its text is not used.
	Allowed(args [][]byte) (bool, error)
	// Log is redis.log: level is 0 for debug, 1 verbose, 2 notice, 3 warning.
	Log(level int, text string)
	// CountError counts an error that the script returns, for the statistics. One of
	// a command, which the Host has made, is counted.
	CountError(text string, counted bool)
	// Tick is called every few thousand steps, 20 us or so. Its error ends the
	// script, which cannot catch it, and is what Run returns.
	Tick() error
}
