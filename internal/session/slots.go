package session

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/routing"
	"slices"
)

// clustered reports whether the server is a cluster of one node.
func (s *Service) clustered() bool { return s.cluster }

// NodeID returns the node's id in the cluster of one node.
func (s *Service) NodeID() string { return s.nodeID }

// A cluster of one node has the rules of larger clusters, so that a program that works on it also works on a
// larger one: the keys of a request, or of a transaction, must be in one slot, and there is one database.
const errCrossSlot = command.ReplyError("CROSSSLOT Keys in request don't hash to the same slot")

// oneSlot returns errCrossSlot if the keys of a request, or its shard channels, are in several slots. It
// returns no error for wrong arguments: the handler reports these.
func (c *Session) oneSlot(spec *command.Spec, args [][]byte) error {
	slot := -1
	if c.splits(&slot, spec, args) {
		return errCrossSlot
	}
	return nil
}

// crossesSlots reports whether the keys of a transaction's commands are in several slots.
func (c *Session) crossesSlots(queue []queued) bool {
	if !c.svc.cluster || c.replay {
		return false
	}
	slot := -1
	return slices.ContainsFunc(queue, func(q queued) bool { return c.splits(&slot, q.spec, q.args) })
}

// splits reports whether a request has a key whose slot is not *slot. If *slot is -1, it sets *slot to the
// slot of the first key.
func (c *Session) splits(slot *int, spec *command.Spec, args [][]byte) bool {
	refs, err := c.ctx.KeysOf(spec, args)
	if err == nil {
		refs = spec.AppendNotKeys(refs, args)
	}
	for _, k := range refs {
		switch s := routing.Slot(args[k.Pos]); {
		case *slot < 0:
			*slot = s
		case *slot != s:
			return true
		}
	}
	return false
}

// mode returns the server's mode, as HELLO and INFO show it.
func (s *Service) mode() string {
	if s.clustered() {
		return "cluster"
	}
	return "standalone"
}
