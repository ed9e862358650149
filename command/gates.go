package command

import "sync/atomic"

// Gates are states of the server in which it refuses commands. Dispatch looks at
// one word; only where a gate is closed does it look closer.

// gate is a reason to refuse commands: a bit.
type gate uint32

const (
	gateLoading    gate = 1 << iota // data is being loaded: LOADING
	gateReadOnly                    // a replica that is not to be written to: READONLY
	gateStale                       // a replica without its master, which is to say so: MASTERDOWN
	gateDisk                        // files cannot be written: MISCONF
	gateNoReplicas                  // too few good replicas: NOREPLICAS
)

// The refusals, in Redis's words, which clients know.
const (
	ErrLoading    = ReplyError("LOADING Redis is loading the dataset in memory")
	ErrReadOnly   = ReplyError("READONLY You can't write against a read only replica.")
	ErrMasterDown = ReplyError("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.")
	ErrNoReplicas = ReplyError("NOREPLICAS Not enough good replicas to write.")
)

// gates are those that are closed.
type gates struct {
	closed atomic.Uint32
	disk   atomic.Pointer[ReplyError] // what gateDisk says
}

// set closes or opens a gate.
func (g *gates) set(which gate, closed bool) {
	if closed {
		g.closed.Or(uint32(which))
	} else {
		g.closed.And(^uint32(which))
	}
}

// refuseWrites closes the gate of files that cannot be written, which then says
// why; "" opens it.
func (g *gates) refuseWrites(why ReplyError) {
	if why != "" {
		g.disk.Store(&why)
	}
	g.set(gateDisk, why != "")
}

func (g *gates) has(which gate) bool { return gate(g.closed.Load())&which != 0 }

// pass decides whether a command may pass the closed gates.
func (c *Session) pass(closed gate, spec *Spec) error {
	if c.replay {
		return nil // what the master, or the log, says is obeyed
	}
	if err := c.svc.gates.writing(closed, spec.Has(Write) || c.multi.writes(spec), spec.Name == "ping"); err != nil {
		return err
	}
	switch {
	case closed&gateStale != 0 && !c.multi.may(spec, Stale):
		return ErrMasterDown
	case closed&gateLoading != 0 && !c.multi.may(spec, Loading):
		return ErrLoading
	}
	return nil
}

// still decides again, with shards locked, whether a command may pass: since it was
// admitted the server may have become a replica, or have begun to load.
func (c *Session) still(spec *Spec) error {
	if closed := c.svc.gates.closed.Load(); closed != 0 {
		return c.pass(gate(closed), spec)
	}
	return nil
}

// writing decides whether the closed gates let somebody write. PING is told of
// disks as well: that is where monitoring looks.
func (g *gates) writing(closed gate, writes, ping bool) error {
	switch {
	case closed&gateDisk != 0 && (writes || ping && closed&gateReadOnly == 0):
		return *g.disk.Load()
	case !writes:
		return nil
	case closed&gateNoReplicas != 0 && closed&gateReadOnly == 0:
		return ErrNoReplicas
	case closed&gateReadOnly != 0:
		return ErrReadOnly
	}
	return nil
}
