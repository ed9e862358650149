package session

import (
	"slices"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/tracking"
)

// This file is the session's part of client-side caching: it records the keys that its client reads.

// StartTracking begins client-side caching in a mode, or changes the mode. The client has a connection.
func (c *Session) StartTracking(m *tracking.Mode) {
	c.svc.tracking.Start(c, m)
	c.observing &^= obsTracks | obsCaching
	if !m.BCast {
		c.observing |= obsTracks
	}
}

// StopTracking ends the client's tracking, if there is any.
func (c *Session) StopTracking() {
	c.svc.tracking.Stop(c)
	c.observing &^= obsTracks | obsCaching
}

// CacheNext makes the mode's exception apply to the next command, for CLIENT CACHING.
func (c *Session) CacheNext() { c.observing |= obsCaching }

// Caching reports whether CacheNext was called for the next command.
func (c *Session) Caching() bool { return c.observing&obsCaching != 0 }

// noteReads records the keys that a command of the session has read; for a script or function, the keys that
// its calls have read. The transaction still holds their shards.
func (c *Session) noteReads(tx *engine.Tx, x *command.Ctx, spec *command.Spec, args [][]byte) {
	t := &c.svc.tracking
	if !t.Active() || !spec.Has(command.ReadOnly) || spec.Has(command.Scripts) || !c.track.Mode().Tracks(c.observing&obsCaching != 0) {
		return
	}
	refs, err := x.KeysOf(spec, args)
	if err != nil {
		return
	}
	for _, r := range refs {
		t.Read(tx, c, args[r.Pos])
	}
}

// These methods implement tracking.Client.

func (c *client) ID() int64                 { return c.id }
func (c *client) Subscribed() bool          { return c.subs.Len() > 0 }
func (c *client) Tracking() *tracking.State { return &c.track }

// Client implements tracking.Host.
func (r *clients) Client(id int64) tracking.Client {
	if c := r.find(id); c != nil {
		return c
	}
	return nil
}

// Clients implements tracking.Host.
func (r *clients) Clients() []tracking.Client {
	all := r.snapshot()
	list := make([]tracking.Client, len(all))
	for i, c := range all {
		list[i] = c
	}
	return list
}

// Readable returns the keys that the session's user may read: a client that tracks by prefix gets no others.
// If the user may read all of them, it allocates nothing.
func (c *client) Readable(keys [][]byte) [][]byte {
	u := c.view.user.Load().User()
	hidden := func(key []byte) bool { return !u.MayTouch(key, acl.Read) }
	if u.Unlimited || !slices.ContainsFunc(keys, hidden) {
		return keys
	}
	return slices.DeleteFunc(slices.Clone(keys), hidden)
}
