package session

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/settings"
	"github.com/ebbdb/ebb/internal/system"
	"github.com/ebbdb/ebb/internal/wire"
)

// limits are the parts of the configuration that hot paths read.
type limits struct {
	events    atomic.Uint32 // notify-keyspace-events
	slow      atomic.Int32  // the number of commands that run in the background
	maxBulk   atomic.Int64  // proto-max-bulk-len
	latency   atomic.Bool   // latency-tracking
	evictFor  atomic.Int64  // ns that a command may spend on eviction
	busyAfter atomic.Int64  // us after which a script is overdue
	unsynced  atomic.Int64  // us for which a reply waits for a group: sync-timeout
}

// configs runs one CONFIG SET at a time, and lends its transaction to the code that applies the directives:
// inside EXEC the engine's shards are already locked.
type configs struct {
	mu sync.Mutex // guards the fields below, and is held during a change
	// recount means that there is a new memory limit. The service applies it after the change, because that
	// locks shards, and their holders may read the configuration.
	recount bool
}

// binding is a function that runs when its directives have new values.
type binding struct {
	names []string
	apply func(*config.Set) error
}

func (s *Service) bindings() []binding {
	return []binding{
		{[]string{"maxmemory"}, func(*config.Set) error { s.configs.recount = true; return nil }},
		{[]string{"maxmemory", "maxmemory-clients"}, func(c *config.Set) error { s.bounds.memory.Store(settings.ClientLimit(c)); return nil }},
		{[]string{"lfu-log-factor", "lfu-decay-time"}, func(c *config.Set) error { s.DB.SetLFU(c.LFULogFactor(), c.LFUDecayTime()); return nil }},
		{[]string{"maxmemory-policy", "maxmemory-samples", "maxmemory-protect", "maxmemory-protect-limiters", "maxmemory"}, s.setEviction},
		{[]string{"max-clock-ahead"}, func(c *config.Set) error { s.DB.SetMaxAhead(c.Int("max-clock-ahead") * 1e6); return nil }},
		{[]string{"maxmemory-eviction-tenacity"},
			func(c *config.Set) error { s.evictFor.Store(int64(settings.Tenacity(c))); return nil }},
		{[]string{"replica-ignore-maxmemory"},
			func(c *config.Set) error { s.DB.SetReplicaEviction(!c.Bool("replica-ignore-maxmemory")); return nil }},
		{[]string{"requirepass"}, s.setPassword},
		{[]string{"notify-keyspace-events"}, func(c *config.Set) error { s.setEvents(settings.Events(c.Events())); return nil }},
		{[]string{"proto-max-bulk-len"}, func(c *config.Set) error {
			s.maxBulk.Store(c.ProtoMaxBulkLen())
			s.DB.SetMaxString(int(c.ProtoMaxBulkLen()))
			return nil
		}},
		{[]string{"sync-timeout"}, func(c *config.Set) error { s.unsynced.Store(c.Int("sync-timeout") * 1000); return nil }},
		{[]string{"sync-held-max"}, func(c *config.Set) error { s.heldBytes.setMax(c.Int("sync-held-max")); return nil }},
		{[]string{"timeout"}, func(c *config.Set) error { s.bounds.idle.Store(c.Timeout()); return nil }},
		{[]string{"client-query-buffer-limit"}, func(c *config.Set) error { s.bounds.maxInput.Store(c.ClientQueryBufferLimit()); return nil }},
		{[]string{"client-output-buffer-limit"}, s.bounds.setOutput},
		{settings.LayoutDirectives, func(c *config.Set) error { s.DB.SetLayout(settings.Layout(c)); return nil }},
		{[]string{"latency-tracking"}, func(c *config.Set) error { s.latency.Store(c.LatencyTracking()); return nil }},
		{[]string{"loglevel"}, s.setLogLevel},
		{[]string{"tracking-table-max-keys"}, s.setTrackMax},
		{[]string{"slowlog-log-slower-than", "slowlog-max-len", "latency-monitor-threshold"},
			func(*config.Set) error { s.setObserved(); return nil }},
		{[]string{"hotkey-top-k", "hotkey-window-seconds", "hotkey-sampling-percentage"}, s.setHotKeys},
		{[]string{"busy-reply-threshold"}, s.setBusy},
		{[]string{"appendonly", "appendfsync"}, s.keepsGroup},
		{[]string{"appendonly"}, s.toKeeper(func(k *durable.Keeper, c *config.Set) error { return k.SetAppendOnly(c.Bool("appendonly")) })},
		{[]string{"appendfsync"}, s.toKeeper(func(k *durable.Keeper, _ *config.Set) error { k.SetFsync(); return nil })},
		{[]string{"dir", "dbfilename"}, s.toKeeper(func(k *durable.Keeper, _ *config.Set) error { return k.SetDir() })},
		{[]string{"save", "stop-writes-on-bgsave-error"}, s.toKeeper(func(k *durable.Keeper, _ *config.Set) error { return k.SetSavePoints() })},
		{[]string{"port", "bind"}, s.listeners.Rebind},
		{[]string{"maxclients", "tcp-keepalive"}, s.listeners.Adjust},
		{[]string{"repl-backlog-size"}, func(c *config.Set) error { s.repl.ResizeBacklog(c); return nil }},
		{[]string{"min-replicas-to-write", "min-replicas-max-lag"}, func(*config.Set) error { s.repl.SetRequired(); return nil }},
		{[]string{"replica-read-only", "replica-serve-stale-data"}, func(*config.Set) error { s.repl.SetGates(); return nil }},
	}
}

func (s *Service) setTrackMax(c *config.Set) error {
	s.tracking.SetLimit(c.Int("tracking-table-max-keys"))
	if s.tracking.Active() {
		s.background.Go(s.tracking.Lower)
	}
	return nil
}

// toKeeper makes the files follow the configuration, once they are open.
func (s *Service) toKeeper(apply func(*durable.Keeper, *config.Set) error) func(*config.Set) error {
	return func(c *config.Set) error {
		if s.keeper == nil {
			return nil // the files read it when they are opened
		}
		return apply(s.keeper, c)
	}
}

// keepsGroup refuses to change the durability that a group member at sync-level disk has promised to the
// group.
func (s *Service) keepsGroup(c *config.Set) error {
	if s.Grouped() && c.String("sync-level") == "disk" && (!c.Bool("appendonly") || c.String("appendfsync") != "always") {
		return errors.New("sync-level is disk; it needs appendonly yes and appendfsync always")
	}
	return nil
}

// applyConfig applies the configuration, and subscribes to its changes.
func (s *Service) applyConfig() error {
	for _, b := range s.bindings() {
		if err := b.apply(s.Config); err != nil {
			return err
		}
		s.Config.OnChange(b.apply, b.names...)
	}
	s.limitMemory(s.DB.NewTx())
	s.DB.LimitUnpacked(system.Memory())
	return nil
}

// ChangeConfig runs CONFIG SET within tx, which holds every shard or none.
func (s *Service) ChangeConfig(tx *engine.Tx, local bool, pairs []string) error {
	s.configs.mu.Lock()
	s.configs.recount = false
	err := s.Config.Change(local, pairs...)
	recount := s.configs.recount
	s.configs.mu.Unlock()
	if recount {
		s.limitMemory(tx)
	}
	return err
}

// limitMemory sets the memory limit of the configuration; of several concurrent changes the last one applies.
func (s *Service) limitMemory(tx *engine.Tx) {
	for {
		limit := s.Config.MaxMemory()
		tx.LimitMemory(limit)
		if s.Config.MaxMemory() == limit {
			return
		}
	}
}

func (s *Service) setEviction(c *config.Set) error {
	s.DB.UseLFU(c.MaxMemoryPolicy().LFU())
	s.DB.SetEviction(settings.Eviction(c))
	return nil
}

// outOfMemory reports whether there is no memory for a write, and eviction cannot free any. The
// caller holds no shard.
func (s *Service) outOfMemory() bool {
	if !s.DB.OverLimit() {
		return false
	}
	began := s.DB.Clock().Micros()
	room := s.DB.MakeRoom(time.Duration(s.evictFor.Load()))
	s.Latency("eviction-cycle", s.DB.Clock().Micros()-began)
	return !room
}

// setBusy sets the time after which a script is overdue; at 0 no script ever is.
func (s *Service) setBusy(c *config.Set) error {
	ms := c.Int("busy-reply-threshold")
	if ms == 0 || ms > math.MaxInt64/1000 {
		ms = math.MaxInt64 / 1000
	}
	s.busyAfter.Store(ms * 1000)
	return nil
}

func (s *Service) setLogLevel(c *config.Set) error {
	if s.opts.LogLevel != nil {
		s.opts.LogLevel.Set(settings.LogLevel(c))
	}
	return nil
}

const (
	eventKeyspace = engine.EventKeyspace
	eventKeyevent = engine.EventKeyevent
)

// setEvents applies notify-keyspace-events: without K or E the server publishes nothing.
func (s *Service) setEvents(classes uint32) {
	s.events.Store(classes)
	if classes&(eventKeyspace|eventKeyevent) == 0 {
		classes = 0
	}
	s.DB.SetEvents(classes)
}

// setLimits gives the parser the limits of the client.
func (c *Session) setLimits() {
	c.parser.Limits = wire.Limits{MaxBulk: int(c.svc.maxBulk.Load()), Unauthenticated: c.LoggedOut()}
}
