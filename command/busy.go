package command

import (
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/script"
)

// scriptSlice is how long a script may keep its network loop, in us: about as
// long as any command may. After it the script runs beside the loops, and shows
// in Service.running.
const scriptSlice = 500

// running is a script that has run for longer than scriptSlice: who waits for
// shards looks at it, and SCRIPT KILL ends it.
type running struct {
	name     string // of the function; "" for a script
	args     [][]byte
	began    int64 // us
	wrote    atomic.Bool
	killed   atomic.Bool
	overdue  chan struct{} // closed after busy-reply-threshold: others get errBusy
	over     atomic.Bool   // overdue is closed
	finished chan struct{} // closed at the end
}

// Words for who comes while a script is overdue, and for who wants to end one.
const (
	errBusyScript   = ReplyError("BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.")
	errBusyFunction = ReplyError("BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.")
	errNotBusy      = ReplyError("NOTBUSY No scripts in execution right now.")
	errUnkillable   = ReplyError("UNKILLABLE Sorry the script already executed write commands against the dataset. " +
		"You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.")
	errScriptKilled = script.Error("ERR Script killed by user with SCRIPT KILL...")
	errScriptEnded  = script.Error("ERR Script ended because the server stops")
	errScriptLeft   = script.Error("ERR Script ended because its caller has left")
)

// busy is the error for who finds the script running.
func (r *running) busy() error {
	if r.name != "" {
		return errBusyFunction
	}
	return errBusyScript
}

// tooBusy returns the error for a command that may not begin because a script is
// overdue, nil if it may.
func (c *Session) tooBusy(spec *Spec, args [][]byte) error {
	r := c.svc.running.Load()
	switch {
	case r == nil || !r.over.Load() || c.replay:
		return nil
	case spec.Name == "shutdown":
		if len(args) > 1 && (EqualFold(args[1], "NOSAVE") || EqualFold(args[1], "ABORT")) {
			return nil
		}
	case spec.Has(AllowBusy):
		return nil
	}
	return r.busy()
}

// longestPause is how long sleepFor pauses at most between two looks at shards.
const longestPause = 5 * time.Millisecond

// sleepFor locks the shards of keys, or all, in a goroutine that may sleep for them.
// While a script holds them it waits until that ends; once it is overdue, the
// error is that it is.
//
// A script that is young does not show yet. Who slept in a shard's lock then would
// hear nothing for as long as it runs, so that is the last resort.
func (c *Session) sleepFor(all bool, keys [][]byte) error {
	for pause := time.Duration(0); pause < longestPause; {
		r := c.svc.running.Load()
		if r == nil {
			pause += scriptSlice * time.Microsecond / 8
			time.Sleep(pause)
			if c.tryLock(all, keys) {
				return nil
			}
			continue
		}
		var done <-chan struct{}
		if c.doing != nil {
			done = c.doing.Done()
		}
		select {
		case <-r.overdue:
			return r.busy()
		case <-r.finished:
		case <-done:
			c.left = c.doing.Err()
			return errScriptLeft
		case <-c.quit:
			c.left = engine.ErrClosed
			return errScriptLeft
		}
		if c.tryLock(all, keys) {
			return nil
		}
		pause = 0
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

// kill ends the running script, if it is a function or a script as asked.
func (s *Service) kill(function bool) error {
	r := s.running.Load()
	switch {
	case r == nil:
		return errNotBusy
	case r.wrote.Load():
		return errUnkillable
	case function != (r.name != ""):
		return r.busy()
	}
	r.killed.Store(true)
	s.Log.Warn("a script is killed", "name", r.name, "after ms", (s.DB.Clock().Micros()-r.began)/1000)
	return nil
}
