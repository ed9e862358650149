package admin

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/durable"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/pubsub"
	"github.com/ebbdb/ebb/internal/replication"
	"github.com/ebbdb/ebb/internal/script"
	"github.com/ebbdb/ebb/internal/tracking"
)

// Server holds the sources that INFO, MEMORY and /metrics read. Its owner sets the fields
// before the first use, and does not change them then. Its methods are safe for concurrent
// use.
type Server struct {
	DB          *engine.DB
	Config      *config.Set
	Broker      *pubsub.Broker
	Tracker     *tracking.Tracker
	Scripts     *script.Engine
	Replication *replication.Node
	Host        Host
	Loops       []*LoopStats // one for each network loop, and one for everything else
	Commands    []string     // the names of the commands, by ID
	Direct      []int        // the commands as which direct calls count, by the kind of the call
	RunID       string
	Started     int64 // us since 1970
	// HTTP returns how many connections the admin pages have, and how many were closed because there were too many; nil: there
	// are no such pages.
	HTTP func() (open, closed int64)
	// CertificateEnd returns when the server's TLS certificate ends, zero without one; nil: no connection is encrypted.
	CertificateEnd func() time.Time

	Totals    Totals
	Rates     Rates
	Slowlog   Slowlog
	Latencies LatencyMonitor

	surveying sync.Once
	surveyor  *engine.Surveyor // set by surveying

	peak    atomic.Int64 // of the used memory, as far as a reader has seen it
	process processMemory

	scratch sync.Pool // of *infoScratch
	named   sync.Once
	program string // the path of the program; set by named, as system is
	system  string // the operating system and its release
}

// GroupNumbers has what a member of a group counts.
type GroupNumbers struct {
	Epoch  uint64
	InSync int   // nodes that are in sync
	Held   int64 // bytes of replies that wait for the group
	// How often this server has become the master, has handed the group over, and was replaced.
	Promoted, HandedOver, Replaced int64
}

// Host returns the numbers that only the sessions have. Any goroutine may call its
// methods.
type Host interface {
	// Clients returns how many clients have connections, how many of these have
	// subscriptions, and how many watch keys.
	Clients() (n, subscribed, watching int)
	// ClientMemory returns the bytes that the connections take up. It costs O(clients).
	ClientMemory() int64
	// Blocked returns how many clients wait in a command, and BlockedWithTimeout how many of
	// these have a timeout.
	Blocked() int64
	BlockedWithTimeout() int64
	// Paused returns the reason of a CLIENT PAUSE, what it pauses, and the ms that are left.
	Paused() (reason, actions string, ms int64)
	// Mode is "standalone" or "cluster"; Clustered reports whether it is the latter.
	Mode() string
	Clustered() bool
	// Port is the TCP port for clients; Listening reports whether the server has listeners;
	// Refused returns how many connections they turned away.
	Port() int
	Listening() bool
	Refused() int64
	// Files describes the state of the data's files; Loading reports whether the server
	// refuses commands because it loads data.
	Files() durable.Info
	Loading() bool
	// InfoGroup calls put for the lines of INFO replication about the server's group; there are none without a group.
	InfoGroup(put func(name string, value any))
	// Group returns the numbers of the server's group; ok is false without a group.
	Group() (n GroupNumbers, ok bool)
	// Timing reports whether the durations of calls are counted.
	Timing() bool
	// RunningScript returns when the script began that has left its loop because it takes
	// long (us), and whether other clients get BUSY because of it.
	RunningScript() (began int64, overdue, running bool)
}

// Counters returns the engine's counters for a caller without a transaction. It does not wait for a shard that is held for long: it
// takes the numbers that an earlier call got of it.
func (s *Server) Counters() *engine.Counters {
	s.surveying.Do(func() { s.surveyor = s.DB.NewSurveyor() })
	return &s.surveyor.Survey().Counters
}

// traffic returns what all loops have counted: commands, bytes in, bytes out.
func (s *Server) traffic() (t [3]int64) {
	for _, l := range s.Loops {
		t[0] += l.Total.Load()
		t[1] += l.Input.Load()
		t[2] += l.Output.Load()
	}
	return t
}

// batches returns how many batches of input and of output all loops have counted.
func (s *Server) batches() (reads, writes int64) {
	for _, l := range s.Loops {
		reads += l.Reads.Load()
		writes += l.Writes.Load()
	}
	return reads, writes
}

// Sample takes a sample of the traffic for INFO's rates if it is time, and reports whether it
// was. Call it about once a second; now is in us. It locks no shard, and so knows direct calls some later than INFO does.
func (s *Server) Sample(now int64) bool {
	if !s.Rates.Due(now) {
		return false
	}
	t := s.traffic()
	for _, l := range s.Loops {
		t[0] += l.Direct.Load()
	}
	s.Rates.Sample(now, t)
	return true
}

// Reset sets the statistics to 0, as CONFIG RESETSTAT does. The engine and the files have
// their own.
func (s *Server) Reset() {
	s.Totals.Reset()
	s.Replication.ResetStats()
	s.Scripts.ResetStats()
	for _, l := range s.Loops {
		l.Reset()
	}
	s.peak.Store(0)
	s.Rates.Reset()
}
