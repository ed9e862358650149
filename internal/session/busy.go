package session

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/script"
)

// scriptSlice is the time for which a script may occupy its network loop, in us: about that of the longest
// other commands. After it the script runs in the background, and Service.running shows it.
const scriptSlice = 500

// running is a script that has run for longer than scriptSlice. A command that waits for shards
// checks it, and SCRIPT KILL ends it.
type running struct {
	name     string // the name of the function; "" for a script
	args     [][]byte
	began    int64 // us
	wrote    atomic.Bool
	killed   atomic.Bool
	overdue  chan struct{} // closed after busy-reply-threshold: other clients get BUSY from then on
	over     atomic.Bool   // overdue is closed
	finished chan struct{} // closed when the script ends
	killing  chan struct{} // closed when killed is set
}

// beOverdue makes other clients get BUSY from now on.
func (r *running) beOverdue() {
	r.over.Store(true)
	close(r.overdue)
}

// The replies to commands that arrive while a script is overdue, and to commands that end a script.
const (
	errBusyScript   = command.ReplyError("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
	errBusyFunction = command.ReplyError("BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.")
	errNotBusy      = command.ReplyError("NOTBUSY No scripts in execution right now.")
	errUnkillable   = command.ReplyError("UNKILLABLE Sorry the script already executed write commands against the dataset. " +
		"You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.")
	ErrScriptKilled = script.Error("ERR Script killed by user with SCRIPT KILL...")
	errScriptEnded  = script.Error("ERR Script ended because the server stops")
	errScriptLeft   = script.Error("ERR Script ended because its caller has left")
)

// busy returns the error for a command that is refused because the script runs.
func (r *running) busy() error {
	if r.name != "" {
		return errBusyFunction
	}
	return errBusyScript
}

// tooBusy returns the error for a command that may not begin because a script is overdue, or nil.
func (c *Session) tooBusy(spec *command.Spec, args [][]byte) error {
	r := c.svc.running.Load()
	switch {
	case r == nil || !r.over.Load() || c.replay:
		return nil
	case spec.Name == "shutdown":
		if len(args) > 1 && (command.EqualFold(args[1], "NOSAVE") || command.EqualFold(args[1], "ABORT")) {
			return nil
		}
	case spec.Has(command.AllowBusy):
		return nil
	}
	return r.busy()
}

// mostTurns is the number of times that sleepFor checks whether shards are free before it queues for them.
const mostTurns = 100

// sleepFor locks the shards of keys, or all shards. It runs in a goroutine that may sleep for them and whose
// caller has called Await. While a script holds the shards, it waits until the script ends; once the script
// is overdue, it returns the error of an overdue script.
//
// A script that has just begun is not in Service.running yet; when it enters, it wakes the
// goroutines that wait here. A goroutine that sleeps in the lock of a shard is not woken for as
// long as the script runs, so this function locks a shard only as the last resort. It uses no
// timers: in a testing/synctest bubble, time stands still while a goroutine waits for a mutex that
// our caller holds, so a timer would never fire.
//
// Commands of a master's stream or of a log get no error for an overdue script: they wait.
func (c *Session) sleepFor(all bool, keys [][]byte) error {
	for turns := 0; turns < mostTurns && !c.replay; turns++ {
		turn := c.tx.Turn()
		if c.tryLock(all, keys) {
			return nil
		}
		var overdue, done <-chan struct{}
		r := c.svc.running.Load()
		if r != nil {
			overdue = r.overdue
			turns = 0
		}
		if c.doing != nil {
			done = c.doing.Done()
		}
		select {
		case <-turn:
		case <-overdue:
			return r.busy()
		case <-done:
			c.doneEarly = c.doing.Err()
			return errScriptLeft
		case <-c.quit:
			c.doneEarly = engine.ErrClosed
			return errScriptLeft
		}
	}
	if all {
		c.tx.LockAll(c.dbi)
	} else {
		c.tx.Lock(c.dbi, keys)
	}
	return nil
}

func (c *Session) tryLock(all bool, keys [][]byte) bool {
	if all {
		return c.tx.TryLockAll(c.dbi)
	}
	return c.tx.TryLock(c.dbi, keys)
}

// RunningFunction is a function that runs.
type RunningFunction struct {
	Name  string
	Args  [][]byte // the request of FCALL
	Began int64    // us since 1970
}

// RunningFunction returns the function that has run for longer than half a millisecond; ok is false if there
// is none. While an EVAL script is overdue, err is the error that other clients get.
func (s *Service) RunningFunction() (f RunningFunction, ok bool, err error) {
	r := s.running.Load()
	switch {
	case r == nil:
		return f, false, nil
	case r.name != "":
		return RunningFunction{Name: r.name, Args: r.args, Began: r.began}, true, nil
	case r.over.Load():
		return f, false, r.busy()
	}
	return f, false, nil
}

// KillScript ends the running script, which must be a function if function is set, and an EVAL script
// otherwise.
func (s *Service) KillScript(function bool) error {
	r := s.running.Load()
	switch {
	case r == nil:
		return errNotBusy
	case r.wrote.Load():
		return errUnkillable
	case function != (r.name != ""):
		return r.busy()
	}
	if !r.killed.Swap(true) {
		close(r.killing)
	}
	s.Log.Warn("a script is killed", "name", r.name, "after ms", (s.DB.Clock().Micros()-r.began)/1000)
	return nil
}

// BusyAfter returns the time, in us, after which a script is overdue.
func (s *Service) BusyAfter() int64 { return s.busyAfter.Load() }

// Interrupt ends the running scripts, at any point, and the waits of embedded sessions. Close must follow.
func (s *Service) Interrupt() { s.stop() }
