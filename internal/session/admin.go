package session

import (
	"slices"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/direct"
	"github.com/ebbdb/ebb/internal/durable"
)

// initAdmin connects INFO, MEMORY and /metrics with their sources.
func (s *Service) initAdmin() {
	a := &s.admin
	a.DB, a.Config, a.Host = s.DB, s.Config, (*adminHost)(s)
	a.Broker, a.Tracker, a.Scripts, a.Replication = &s.pubsub, &s.tracking, s.scripts, s.repl
	a.RunID, a.Started = s.runID, s.started
	for _, l := range s.stats {
		a.Loops = append(a.Loops, &l.LoopStats)
	}
	for id := range s.table.Len() {
		a.Commands = append(a.Commands, s.table.Spec(id).Name)
	}
	for _, name := range direct.Commands {
		a.Direct = append(a.Direct, slices.Index(a.Commands, name))
	}
}

// Admin returns the server that INFO and /metrics read.
func (s *Service) Admin() *admin.Server { return &s.admin }

// adminHost implements the host interface of package admin.
type adminHost Service

func (h *adminHost) Clients() (n, subscribed, watching int)     { return h.clients.count() }
func (h *adminHost) Blocked() int64                             { return h.blocked.Load() + h.pause.count() }
func (h *adminHost) BlockedWithTimeout() int64                  { return h.timeouts.Timed() }
func (h *adminHost) Paused() (reason, actions string, ms int64) { return h.pause.state() }
func (h *adminHost) Mode() string                               { return (*Service)(h).mode() }
func (h *adminHost) Clustered() bool                            { return h.cluster }
func (h *adminHost) Listening() bool                            { return h.listeners.Listening() }
func (h *adminHost) Refused() int64                             { return h.listeners.Refused() }
func (h *adminHost) Files() durable.Info                        { return h.keeper.Info() }
func (h *adminHost) Loading() bool                              { return h.gates.has(gateLoading) }
func (h *adminHost) Timing() bool                               { return h.latency.Load() }

func (h *adminHost) InfoGroup(put func(name string, value any)) {
	if g := h.group.Load(); g != nil {
		(*g).Info(put)
		h.admin.InfoHeld(put)
	}
}

func (h *adminHost) Group() (n admin.GroupNumbers, ok bool) {
	if h.opts.Group == nil {
		return n, false
	}
	n = h.opts.Group.Numbers()
	n.Held = h.heldBytes.bytes.Load()
	return n, true
}

func (h *adminHost) ClientMemory() (n int64) {
	for _, c := range h.clients.list() {
		n += c.memory().total()
	}
	return n
}

// Port returns the TCP port at which clients reach the server.
func (h *adminHost) Port() int {
	if h.opts.Port != 0 {
		return h.opts.Port
	}
	return int(h.Config.Int("port"))
}

func (h *adminHost) RunningScript() (began int64, overdue, running bool) {
	if x := h.running.Load(); x != nil {
		return x.began, x.over.Load(), true
	}
	return 0, false, false
}
