package session

import (
	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/command"
)

// MayReadKeys implements Host.
func (c *Session) MayReadKeys(x *command.Ctx) func(key []byte) bool {
	if c.MayReadEveryKey(x) {
		return nil
	}
	return func(key []byte) bool {
		return allowsToo(x, func(s *acl.Selector) bool { return s.MayTouch(key, acl.Read) })
	}
}
