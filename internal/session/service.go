package session

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/acl"
	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/hotkeys"
	"github.com/ebbdb/ebb/internal/listen"
	"github.com/ebbdb/ebb/internal/pubsub"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/timeouts"
	"github.com/ebbdb/ebb/internal/tracking"
)

// Options configure a Service. DB and Table are required, all other fields are optional.
type Options struct {
	DB *engine.DB
	// Table returns the commands, under the names that the directive rename-command sets.
	Table  func(*config.Set) (*command.Table, error)
	Config *config.Set  // for this service alone; defaults if nil
	Logger *slog.Logger // no log if nil
	Loops  int          // the number of network loops: each has statistics of its own
	Port   int          // the TCP port for INFO, if it differs from the directive port
	// MostClients is the greatest value of maxclients that the system's limit of descriptors allows; 0: any.
	MostClients int64
	// LogLevel follows the directive loglevel; it may be nil.
	LogLevel *slog.LevelVar
	// Group makes the server a member of a group: it begins as a replica without a master. nil: it belongs to no
	// group.
	Group Member
	// Shutdown is called when a client has sent SHUTDOWN and the data is saved as required. It starts the end of
	// the server, and must not wait for it, because Close waits for the caller of Shutdown. If it is nil, the
	// server refuses the command.
	Shutdown func()
}

// Service holds the state that the sessions of an engine share: the table of commands, the sessions, the
// configuration. Its methods are safe for concurrent use.
type Service struct {
	DB     *engine.DB
	Config *config.Set
	Log    *slog.Logger

	limits
	observers
	scripting
	opts      Options
	table     *command.Table
	pubsub    pubsub.Broker
	clients   clients
	bounds    clientBounds
	pause     pause
	gates     gates
	keeper    *durable.Keeper
	ending    ending
	timeouts  timeouts.Timeouts // of waiting commands
	blocked   atomic.Int64      // sessions whose commands wait
	listeners listen.Addresses
	configs   configs
	tracking  tracking.Tracker
	admin     admin.Server // for INFO and /metrics
	acl       acl.Accounts
	stats     []*loopStats // one for each loop, and one for all other goroutines
	runID     string
	nodeID    string // the node's id in the cluster of one node
	repl      *replication.Node
	group     atomic.Pointer[Group] // nil: the server belongs to no group
	heldBytes heldBytes
	cluster   bool  // cluster-enabled
	started   int64 // us

	ctx        context.Context // ends with Close
	stop       context.CancelFunc
	background sync.WaitGroup // goroutines that run commands in the background
}

// NewService returns a service on an engine that was opened with a *Hooks of this package; this
// call binds the hooks to the service. Close the service before the engine.
func NewService(o Options, hooks *Hooks) (*Service, error) {
	s := &Service{DB: o.DB, Config: o.Config, Log: o.Logger, opts: o}
	if s.Config == nil {
		s.Config = config.New()
	}
	var err error
	if s.table, err = o.Table(s.Config); err != nil {
		return nil, err
	}
	s.Log = cmp.Or(s.Log, slog.New(slog.DiscardHandler))
	for range o.Loops + 1 {
		s.stats = append(s.stats, newLoopStats(s.table.Len()))
	}
	s.runID, s.nodeID = replication.NewID(), replication.NewID()
	s.cluster = s.Config.Bool("cluster-enabled")
	s.started = s.DB.Clock().Micros()
	s.pubsub.Init(s.DB)
	s.clients.init()
	s.pause.svc = s
	s.listeners.Most = o.MostClients
	s.tracking.Init(s.DB, &s.clients)
	s.monitors.svc = s
	s.hot = hotkeys.New(s.switchHot)
	s.timeouts.Init(s.DB.Steady())
	s.acl.Init(acl.CatalogOf(s.table), s.Config, s.Log, s.DB)
	s.initScripts()
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.repl = replication.New(replication.Options{DB: s.DB, Config: s.Config, Logger: s.Log, Host: (*replHost)(s), Version: admin.RedisVersion})
	s.initAdmin()
	if err := s.applyConfig(); err != nil {
		return nil, err
	}
	if err := s.acl.Load(); err != nil {
		return nil, err
	}
	if o.Group != nil {
		s.repl.JoinGroup(o.Group)
		s.JoinGroup(o.Group)
		s.DB.Log().Rest() // the server is not the master yet
	}
	s.repl.Begin()
	mem := s.keeperOptions()
	mem.Memory = true
	if s.keeper, err = durable.Open(mem); err != nil {
		return nil, err
	}
	if hooks != nil {
		hooks.svc.Store(s)
	}
	return s, nil
}

// Close waits for the commands that run in the background. The caller must have closed all sessions, or be
// closing them.
func (s *Service) Close() {
	s.stop()
	s.pause.close()
	s.timeouts.Close()
	s.repl.Close()
	s.background.Wait()
	for _, l := range s.stats {
		if l.coroutine != nil {
			l.coroutine.stop()
		}
	}
}

// Table returns the service's commands.
func (s *Service) Table() *command.Table { return s.table }

// Hooks passes an engine's events to a service. Give one to engine.Open, and then to NewService.
type Hooks struct{ svc atomic.Pointer[Service] }

// Event implements engine.Hooks: it publishes keyspace events.
func (h *Hooks) Event(tx *engine.Tx, class uint32, event string, key []byte) {
	s := h.svc.Load()
	if s == nil {
		return
	}
	on := s.events.Load()
	if s.expirations.n.Load() > 0 && on&eventKeyevent != 0 && event == "expired" {
		s.expirations.tell(ExpiredKey{At: tx.Now() / 1000, DB: tx.Selected(), Key: key})
	}
	if s.pubsub.Active() {
		s.pubsub.KeyspaceEvent(on&eventKeyspace != 0, on&eventKeyevent != 0, tx.Selected(), event, key)
	}
}

// Afterwards implements engine.Delayer: a network loop, or a reclaimer that runs on one, does not wait for
// shards that other transactions hold. It cannot know for how long they hold them: a script that never ends
// is not recognised at its beginning. Other sessions wait, so that their next request finds the work done;
// but while long commands run, their reply would be late, so they do not wait either.
func (h *Hooks) Afterwards(caller any, run func()) {
	s := h.svc.Load()
	if s == nil || s.ctx.Err() != nil { // Close ends scripts, and may not wait for a new goroutine
		run()
		return
	}
	c, ok := caller.(*Session)
	if _, is := caller.(engine.Follower); (ok && !c.loop || is) && s.slow.Load() == 0 {
		run()
		return
	}
	s.background.Go(run)
}

// Sweep implements engine.Sweeper.
func (h *Hooks) Sweep(run func()) {
	if s := h.svc.Load(); s != nil {
		s.background.Go(run)
		return
	}
	run()
}

// RuleSuspended implements engine.RuleWatcher.
func (h *Hooks) RuleSuspended(db int, rule, why string) {
	s := h.svc.Load()
	switch {
	case s == nil:
	case why != "":
		s.Log.Warn("an expiry rule is suspended", "db", db, "rule", rule, "why", why)
	default:
		s.Log.Info("an expiry rule resumes", "db", db, "rule", rule)
	}
}

// Modified implements engine.Hooks: it invalidates the copies that clients have cached.
func (h *Hooks) Modified(tx *engine.Tx, key []byte) {
	if s := h.svc.Load(); s != nil {
		s.tracking.Modified(tx, key)
	}
}

// Flushed implements engine.Hooks.
func (h *Hooks) Flushed(*engine.Tx, int) {
	if s := h.svc.Load(); s != nil {
		s.tracking.Flushed()
	}
}
