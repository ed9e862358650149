package session

import (
	"context"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
)

// Of returns the session whose command runs, for handlers that need more of it than command.Host.
func Of(c *command.Ctx) *Session { return c.Host.(*Session) }

// ServiceOf returns the service of the session whose command runs.
func ServiceOf(c *command.Ctx) *Service { return Of(c).svc }

var _ command.Host = (*Session)(nil)

// OnLoop implements Host.
func (c *connection) OnLoop() bool { return c.loop }

// OthersRun implements Host: a loop may have to wait long for a shard, because other commands run in the
// background.
func (c *Session) OthersRun() bool { return c.loop && c.svc.slow.Load() > 0 }

// Replaying implements Host.
func (c *Session) Replaying() bool { return c.replay }

// InScript implements Host.
func (c *Session) InScript() bool { return c.script }

// NoTouch implements Host.
func (c *client) NoTouch() bool { return c.noTouch }

// Clustered implements Host.
func (c *Session) Clustered() bool { return c.svc.clustered() }

// Context implements Host.
func (c *Session) Context() context.Context { return c.svc.ctx }

// Outgrown implements Host.
func (c *Session) Outgrown(n int) bool {
	if c.conn == nil || !c.overLimit(n, false) {
		return false
	}
	c.closeUnsent(errSlowReader)
	return true
}

// Emptied implements Host.
func (c *Session) Emptied(tx *engine.Tx) { c.svc.keeper.Emptied(tx) }
