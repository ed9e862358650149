package session

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/hotkeys"
	"github.com/ebbdb/ebb/internal/redact"
	"github.com/ebbdb/ebb/internal/wire"
)

// This file observes commands: it shows them to clients in MONITOR, measures their time, and records the keys
// that the client caches. Dispatch checks two words of flags, the service's and the session's; while both are
// zero it runs none of this.
const (
	obsMonitors uint32 = 1 << iota // a client is in MONITOR
	obsSlow                        // the server records calls that took long
	obsAll                         // including calls of commands that cannot take long
	obsHot                         // some commands are sampled for HOTKEYS
)

// These are the flags of a session.
const (
	obsTracks  uint32 = 1 << (iota + 8) // the server remembers the keys that the client reads
	obsCaching                          // the client has sent CLIENT CACHING for the next command
	obsMonitor                          // the client is in MONITOR
)

// fastMicros is a time that a fast command with few arguments, or a command on strings that stays on its
// loop, exceeds only by an accident of scheduling. While the threshold of slow calls is above it, the server
// does not time these commands. This saves reading the clock for each of them, which is 10 % of a SET.
const (
	fastMicros = 1000
	fastArgs   = 16
)

// observers holds the parts of a service that show and count commands.
type observers struct {
	observed    atomic.Uint32 // the flags that dispatch checks
	hot         *hotkeys.Tracker
	monitors    monitors
	expirations expirations
	crashes     crashes
	foreignAt   atomic.Int64 // us: when an attempt to send HTTP was last logged; 0: never
}

// setObserved computes the flags of the service from the configuration.
func (s *Service) setObserved() {
	slower, threshold := s.Config.SlowlogLogSlowerThan(), s.Config.LatencyMonitorThreshold()
	if s.Config.SlowlogMaxLen() == 0 {
		slower = -1
	}
	var on uint32
	if slower >= 0 || threshold > 0 {
		on |= obsSlow
	}
	if slower >= 0 && slower < fastMicros || threshold > 0 {
		on |= obsAll
	}
	for {
		old := s.observed.Load()
		if s.observed.CompareAndSwap(old, old&(obsMonitors|obsHot)|on) {
			return
		}
	}
}

// began returns the instant at which a command begins to run, or 0 if it is not timed.
func (c *Session) began(o uint32, spec *command.Spec, args [][]byte) int64 {
	if o&obsHot != 0 {
		c.beginHot(spec)
	}
	if o&obsAll == 0 && (o&obsSlow == 0 || len(args) <= fastArgs && c.alwaysFast(spec)) {
		return 0
	}
	return c.svc.DB.Clock().Micros()
}

// alwaysFast reports whether a command with few arguments cannot take long.
func (c *Session) alwaysFast(spec *command.Spec) bool {
	return spec.Has(command.Fast) || c.loop && spec.Group == command.GroupString
}

// ran makes the records that the flags require after a command has run, while its shards are still locked.
func (c *Session) ran(o uint32, spec *command.Spec, args [][]byte, began int64) {
	if o&obsMonitors != 0 && spec.Flags&(command.Admin|command.SkipMonitor) == 0 {
		c.svc.monitors.feed(c, redact.Request(c.svc.table, spec, args))
	}
	if began != 0 {
		c.svc.took(c, spec, args, began, c.svc.DB.Clock().Micros()-began)
	}
	if o&obsHot != 0 && c.hot.wanted != 0 {
		c.endHot(spec, args)
	}
	if c.observing&obsTracks != 0 {
		c.noteReads(c.tx, &c.ctx, spec, args)
	}
}

// settleCaching ends the effect of CLIENT CACHING after the command that it was sent for.
func (c *Session) settleCaching(spec *command.Spec) {
	if !c.multi.on && (spec == nil || spec.Parent() == nil || spec.Parent().Name != "client") {
		c.observing &^= obsCaching
	}
}

// took records a call that took long.
func (s *Service) took(c *Session, spec *command.Spec, args [][]byte, began, us int64) {
	s.logSlow(c, spec, args, began, us)
	event := "command"
	if spec.Has(command.Fast) {
		event = "fast-command"
	}
	s.Latency(event, us)
}

// served records the call of a command that has waited. As in Redis, the time of the wait does not
// count, and a call that timed out is not recorded.
func (s *Service) served(c *Session, spec *command.Spec, args [][]byte, began, us int64) {
	s.logSlow(c, spec, args, began, us)
	s.Latency("command-unblocking", us)
}

// Latency records the time of an event, in microseconds, if latency-monitor-threshold enables it.
func (s *Service) Latency(event string, us int64) {
	threshold := s.Config.LatencyMonitorThreshold()
	if threshold == 0 || us/1000 < threshold {
		return
	}
	s.admin.Latencies.Add(event, s.DB.Clock().Micros()/1e6, us/1000)
}

// Reclaim runs a slice of the engine's own work and records its time.
func (s *Service) Reclaim(run func() time.Duration) time.Duration {
	if s.Config.LatencyMonitorThreshold() == 0 {
		return run()
	}
	began := s.DB.Clock().Micros()
	next := run()
	s.Latency("expire-cycle", s.DB.Clock().Micros()-began)
	return next
}

// logSlow adds a slow call to the SLOWLOG.
func (s *Service) logSlow(c *Session, spec *command.Spec, args [][]byte, began, us int64) {
	limit := int(s.Config.SlowlogMaxLen())
	if slower := s.Config.SlowlogLogSlowerThan(); slower >= 0 && us >= slower && limit > 0 && !spec.Has(command.SkipSlowlog) {
		addr, name := c.logName()
		s.admin.Slowlog.Add(addr, name, redact.Request(s.table, spec, args), began+us, us, limit)
	}
}

// logName returns the address and the name by which SLOWLOG identifies the client. An embedded session
// without a name has the name of its library: the console's calls have the name ebb-console.
func (c *Session) logName() (addr, name string) {
	if name = c.name(); name == "" && c.origin != nil {
		name = c.origin.Lib
	}
	return c.remoteAddr(), name
}

// monitors are the clients in MONITOR. The server queues lines under its lock, and the lines about a key
// while its shard is locked. So all clients see the same order, in which each key's commands are in the order
// in which they ran.
type monitors struct {
	svc *Service

	mu   sync.Mutex // guards the fields below
	all  []*Session
	taps map[*tap]struct{}
	last int64 // us since 1970: the times of lines never decrease
	line []byte
}

// MonitorLine is a command as MONITOR shows it.
type MonitorLine struct {
	At   int64 // us since 1970
	DB   int
	Addr string
	Lib  string   // lib-name of an embedded session
	Args [][]byte // without passwords; valid during the call
}

// tap is a function that receives the lines of MONITOR.
type tap struct{ show func(MonitorLine) }

// Monitor calls show for every command that MONITOR would show, until the caller calls stop; once stop has
// returned, show is no longer called. The callers of show hold locks and wait for it: it must be fast, and
// must not run commands or call stop.
func (s *Service) Monitor(show func(MonitorLine)) (stop func()) {
	m, t := &s.monitors, &tap{show}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.taps == nil {
		m.taps = map[*tap]struct{}{}
	}
	m.taps[t] = struct{}{}
	s.observed.Or(obsMonitors)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.taps, t)
		m.rest()
	}
}

// rest ends the observation of commands if no client is in MONITOR.
func (m *monitors) rest() {
	if len(m.all)+len(m.taps) == 0 {
		m.svc.observed.And(^obsMonitors)
	}
}

func (m *monitors) add(c *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, c)
	m.svc.observed.Or(obsMonitors)
}

// remove removes a session from the list, if it is there.
func (m *monitors) remove(c *Session) {
	if m.svc.observed.Load()&obsMonitors == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, x := range m.all {
		if x == c {
			m.all = append(m.all[:i], m.all[i+1:]...)
			break
		}
	}
	m.rest()
}

// feed shows a command to all clients in MONITOR.
func (m *monitors) feed(c *Session, args [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = max(m.last, c.ctx.Now())
	if len(m.taps) > 0 {
		x := MonitorLine{At: m.last, DB: c.dbi, Addr: c.monitorName(), Args: args}
		if c.origin != nil {
			x.Lib = c.origin.Lib
		}
		for t := range m.taps {
			t.show(x)
		}
	}
	if len(m.all) == 0 {
		return
	}
	b := append(m.line[:0], '+')
	b = strconv.AppendInt(b, m.last/1e6, 10)
	b = append(b, '.')
	us := strconv.AppendInt(nil, 1e6+m.last%1e6, 10)
	b = append(b, us[1:]...)
	b = append(b, " ["...)
	b = strconv.AppendInt(b, int64(c.dbi), 10)
	b = append(append(append(b, ' '), c.monitorName()...), ']')
	for _, a := range args {
		b = wire.AppendQuoted(append(b, ' '), string(a))
	}
	b = append(b, "\r\n"...)
	m.line = b
	for _, to := range m.all {
		to.Push(b)
	}
	if cap(b) > 1<<16 {
		m.line = nil
	}
}

// monitorName returns the origin of a command in MONITOR's form.
func (c *Session) monitorName() string {
	switch {
	case c.script:
		return "lua"
	case c.conn != nil && c.conn.Network() == "unix":
		return "unix:" + c.svc.Config.String("unixsocket")
	}
	return c.remoteAddr()
}

// StartMonitor puts the client in MONITOR, and reports whether it was not there. The client has a connection.
func (c *Session) StartMonitor() bool {
	if c.observing&obsMonitor != 0 {
		return false
	}
	c.observing |= obsMonitor
	c.view.show(viewMonitor, true)
	c.svc.monitors.add(c)
	return true
}

// ShowInMonitors shows a request of the client to all clients in MONITOR, if there are any.
func (c *Session) ShowInMonitors(args [][]byte) {
	if c.svc.observed.Load()&obsMonitors != 0 && c.debugger == nil {
		c.svc.monitors.feed(c, args)
	}
}

// unmonitor ends MONITOR.
func (c *Session) unmonitor() {
	c.svc.monitors.remove(c)
	c.observing &^= obsMonitor
	c.view.show(viewMonitor, false)
}

// errMonitorKeys is the reply to a client in MONITOR that reads or writes data.
const errMonitorKeys = command.ReplyError("ERR Replica can't interact with the keyspace")

// watches reports whether the server refuses the command because the client is in MONITOR.
func (c *Session) watches(spec *command.Spec) bool {
	return c.observing&obsMonitor != 0 && spec.Flags&(command.Write|command.ReadOnly|command.MayReplicate) != 0
}

// ExpiredKey is a key that has expired.
type ExpiredKey struct {
	At  int64 // ms since 1970
	DB  int
	Key []byte // valid during the call
}

// expirations are the functions that receive expired keys.
type expirations struct {
	n atomic.Int32 // the number of functions

	mu   sync.Mutex // guards the field below
	taps map[*func(ExpiredKey)]struct{}
}

// Expirations calls show for every key that expires while notify-keyspace-events publishes expirations (E and
// x), until the caller calls stop; once stop has returned, show is no longer called. The callers of show hold
// locks and wait for it, as those of Monitor do.
func (s *Service) Expirations(show func(ExpiredKey)) (stop func()) {
	x := &s.expirations
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.taps == nil {
		x.taps = map[*func(ExpiredKey)]struct{}{}
	}
	x.taps[&show] = struct{}{}
	x.n.Add(1)
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.taps, &show)
		x.n.Store(int32(len(x.taps)))
	}
}

// tell calls the functions for an expired key.
func (x *expirations) tell(k ExpiredKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for show := range x.taps {
		(*show)(k)
	}
}
