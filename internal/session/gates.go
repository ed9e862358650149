package session

import (
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/script"
)

// Gates are states of the server in which it refuses commands. Dispatch reads one word, and checks further
// only if a gate is closed.

// gate is a bit that stands for a reason to refuse commands.
type gate uint32

const (
	gateLoading    gate = 1 << iota // the server loads data: LOADING
	gateReadOnly                    // a replica that clients may not write to: READONLY
	gateStale                       // a replica without its master, which replies MASTERDOWN
	gateDisk                        // the server cannot write its files: MISCONF
	gateNoReplicas                  // too few good replicas: NOREPLICAS
	gateGroup                       // too few members of the group keep up: NOREPLICAS
)

// These are the refusals, in Redis's words, which clients know.
const (
	errLoading    = command.ReplyError("LOADING Redis is loading the dataset in memory")
	errReadOnly   = command.ReplyError("READONLY You can't write against a read only replica.")
	errMasterDown = command.ReplyError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
	errNoReplicas = command.ReplyError("NOREPLICAS Not enough good replicas to write.")

	// errScriptStale is the error of a command that a script calls on a replica without its master.
	// The script itself was admitted.
	errScriptStale = command.ReplyError("ERR Can not execute the command on a stale replica")
)

// gates holds the gates that are closed.
type gates struct {
	closed atomic.Uint32
	disk   atomic.Pointer[command.ReplyError] // the error of gateDisk
}

// set closes or opens a gate.
func (g *gates) set(which gate, closed bool) {
	if closed {
		g.closed.Or(uint32(which))
	} else {
		g.closed.And(^uint32(which))
	}
}

// refuseWrites closes the gate for files that cannot be written; why is the error that clients get. An empty
// why opens the gate.
func (g *gates) refuseWrites(why command.ReplyError) {
	if why != "" {
		g.disk.Store(&why)
	}
	g.set(gateDisk, why != "")
}

// FilesFail reports whether the server refuses writes because it cannot write its files.
func (s *Service) FilesFail() bool { return s.gates.closed.Load()&uint32(gateDisk) != 0 }

// StreamWaits reports whether CLIENT PAUSE holds a master's stream back, if this server is a replica.
func (s *Service) StreamWaits() bool { return s.pause.active() }

func (g *gates) has(which gate) bool { return gate(g.closed.Load())&which != 0 }

// pass decides whether a command whose flags are f, as Session.effectiveFlags returns them, may
// pass the closed gates.
func (c *Session) pass(closed gate, spec *command.Spec, f command.Flags) error {
	if c.replay {
		return nil // commands of the master or of a log are never refused
	}
	if err := c.svc.gates.writing(closed, f&command.Write != 0, spec.Name == "ping"); err != nil {
		return err
	}
	switch {
	case closed&gateStale != 0 && f&command.Stale == 0:
		return errMasterDown
	case closed&gateLoading != 0 && f&command.Loading == 0:
		return errLoading
	}
	return nil
}

// recheck checks again, with shards locked, whether a command may pass: since it was admitted the
// server may have become a replica, or have begun to load.
func (c *Session) recheck(spec *command.Spec, args [][]byte) error {
	if closed := c.svc.gates.closed.Load(); closed != 0 {
		return c.pass(gate(closed), spec, c.effectiveFlags(spec, args))
	}
	return nil
}

// effectiveFlags returns the flags that gates, pauses and memory limits check. They are Spec.FlagsOf, with
// two exceptions: EXEC has the flags of the commands that it runs, and a script or function that declares
// flags has those. It costs O(1) for EXEC, and for EVAL one read of the script's first line.
func (c *Session) effectiveFlags(spec *command.Spec, args [][]byte) command.Flags {
	switch {
	case spec.Has(command.Scripts):
		if f, ok := c.svc.declared(spec, args); ok {
			return scriptFlagsOf(spec.Flags, f)
		}
	case spec.Has(command.RunsQueue) && c.multi.on:
		f := spec.Flags | c.multi.any&(command.Write|command.MayReplicate)
		return f &^ (c.multi.lacks & (command.Stale | command.Loading))
	}
	return spec.FlagsOf(args)
}

// declared returns the flags that a script or function declares. ok is false if it declares none, as an EVAL
// without a shebang line. ok is also false if there is no such script: its handler then reports the error.
func (s *Service) declared(spec *command.Spec, args [][]byte) (f script.Flags, ok bool) {
	switch spec.Name {
	case "eval", "eval_ro":
		f, ok = script.Declared(args[1])
	case "evalsha", "evalsha_ro":
		if cached := s.scripts.BySHA(args[1]); cached != nil {
			f, ok = cached.Flags, cached.Flags&script.Compat == 0
		}
	case "fcall", "fcall_ro":
		if function := s.scripts.Function(args[1]); function != nil {
			f, ok = function.Flags, true
		}
	}
	return f, ok
}

// scriptFlagsOf returns the flags of a command that runs a script which declares f. A script that does not
// declare no-writes counts as a writing script.
func scriptFlagsOf(own command.Flags, f script.Flags) command.Flags {
	own &^= command.Write | command.MayReplicate | command.DenyOOM | command.Stale
	if f&script.NoWrites == 0 {
		own |= command.Write | command.MayReplicate
	}
	if f&(script.NoWrites|script.AllowOOM) == 0 {
		own |= command.DenyOOM
	}
	if f&script.AllowStale != 0 {
		own |= command.Stale
	}
	return own
}

// writing returns the error of the closed gates for a command that writes, or nil. PING gets the error of the
// disk too, because monitoring programs use PING.
func (g *gates) writing(closed gate, writes, ping bool) error {
	switch {
	case closed&gateDisk != 0 && (writes || ping && closed&gateReadOnly == 0):
		return *g.disk.Load()
	case !writes:
		return nil
	case closed&(gateNoReplicas|gateGroup) != 0 && closed&gateReadOnly == 0:
		return errNoReplicas
	case closed&gateReadOnly != 0:
		return errReadOnly
	}
	return nil
}
