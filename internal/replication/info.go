package replication

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// LinkState is the state of a replica's link to its master, for INFO, ROLE and metrics.
type LinkState struct {
	Host    string // the master's address
	Port    int
	Step    string // the word of ROLE: connect, connecting, handshake, sync or connected
	Up      bool   // it receives the stream: Step is connected
	Syncing bool   // the master sends all its data: Step is sync
	Idle    int64  // seconds since something was received; -1 while the link is down
	// Async reports that clients are served from the old data while a full synchronisation is loaded.
	Async bool
}

// Link returns the state of the link to the master; false: the server is a master.
func (r *Node) Link() (LinkState, bool) {
	l := r.follows.Load()
	if l == nil {
		return LinkState{}, false
	}
	step := l.step()
	x := LinkState{Host: l.host, Port: l.port, Step: linkRoles[step], Up: step == linkConnected, Syncing: step == linkSync, Idle: -1, Async: l.async.Load()}
	if x.Up {
		x.Idle = l.idle()
	}
	return x, true
}

// idle returns the number of seconds since the link last received something.
func (l *link) idle() int64 { return max(l.r.db.Steady().Micros()-l.lastReceived.Load(), 0) / 1e6 }

// ReplicaState describes a replica of this server.
type ReplicaState struct {
	Host   string // the address at which clients reach it
	Port   int
	State  string // the word of INFO: wait_bgsave, send_bulk, online or rdb_transmitted
	Online bool   // it receives the stream
	Acked  int64  // the offset in the stream that it has acknowledged
	Lag    int64  // seconds since it acknowledged something; 0 unless Online
}

// Replicas returns the replicas, in the order in which they connected.
func (r *Node) Replicas() (all []ReplicaState) {
	now := r.db.Steady().Micros()
	for _, f := range r.master.all() {
		x := ReplicaState{State: stateNames[f.at()], Online: f.at() == followOnline, Acked: f.acked.Load()}
		x.Host, x.Port = f.place()
		if x.Online {
			x.Lag = max(now-f.ackAt.Load(), 0) / 1e6
		}
		all = append(all, x)
	}
	return all
}

// Info calls put for each line of INFO replication. A value is a string, a number or a
// bool.
func (r *Node) Info(put func(name string, value any)) {
	if l := r.follows.Load(); l != nil {
		put("role", "slave")
		l.info(put)
	} else {
		put("role", "master")
	}
	r.master.info(put)
	put("master_failover_state", r.failover.state())
	id, id2, second := r.Names()
	put("master_replid", id)
	put("master_replid2", id2)
	put("master_repl_offset", r.db.Log().End())
	put("second_repl_offset", second)
	r.master.infoBacklog(put)
}

// info calls put for the lines of INFO about the link to the master.
func (l *link) info(put func(name string, value any)) {
	r, c, step := l.r, l.r.config, l.step()
	offset, up := r.db.Log().End(), step == linkConnected
	put("master_host", l.host)
	put("master_port", l.port)
	put("master_link_status", map[bool]string{true: "up", false: "down"}[up])
	if up {
		put("master_last_io_seconds_ago", l.idle())
	} else {
		put("master_last_io_seconds_ago", -1)
	}
	put("master_sync_in_progress", step == linkSync)
	put("slave_read_repl_offset", offset)
	put("slave_repl_offset", offset)
	if step == linkSync {
		l.infoSync(put)
	}
	if !up {
		put("master_link_down_since_seconds", max(r.db.Steady().Micros()-l.down.Load(), 0)/1e6)
	}
	if why := r.syncError.Load(); why != nil && *why != "" {
		put("master_sync_last_error", *why)
	}
	if why := r.linkError.Load(); !up && why != nil && *why != "" {
		put("master_link_last_error", *why)
	}
	put("slave_priority", c.Int("replica-priority"))
	put("slave_read_only", c.Bool("replica-read-only"))
	put("replica_announced", c.Bool("replica-announced"))
	put("replica_refused_commands", r.refused.Load())
	if last := r.refusal.Load(); last != nil {
		text := fmt.Sprintf("offset=%d,command=%s,error=%s", last.offset, last.command, last.why)
		put("replica_refused_last", strings.NewReplacer("\r", " ", "\n", " ").Replace(text))
	}
}

// infoSync calls put for the progress of a full synchronisation.
func (l *link) infoSync(put func(name string, value any)) {
	total, got := l.expected.Load(), l.received.Load()
	left, percent := total-got, 0.0
	if total > 0 {
		percent = 100 * (float64(got) / float64(total))
	}
	if total < 0 {
		total, left = 0, 0
	}
	put("master_sync_total_bytes", total)
	put("master_sync_read_bytes", got)
	put("master_sync_left_bytes", left)
	put("master_sync_perc", percent)
	put("master_sync_last_io_seconds_ago", l.idle())
}

// info calls put for the replicas.
func (m *master) info(put func(name string, value any)) {
	c, all := m.r.config, m.r.Replicas()
	put("connected_slaves", len(all))
	if lag := c.Int("min-replicas-max-lag"); lag > 0 && c.Int("min-replicas-to-write") > 0 {
		put("min_slaves_good_slaves", m.good(lag))
	}
	for n, f := range all {
		put("slave"+strconv.Itoa(n), fmt.Sprintf("ip=%s,port=%d,state=%s,offset=%d,lag=%d", f.Host, f.Port, f.State, f.Acked, f.Lag))
	}
}

// infoBacklog calls put for the lines about the backlog.
func (m *master) infoBacklog(put func(name string, value any)) {
	log, on, size := m.r.db.Log(), m.keeps(), m.r.config.Int("repl-backlog-size")
	put("repl_backlog_active", on)
	put("repl_backlog_size", size)
	if !on {
		put("repl_backlog_first_byte_offset", 0)
		put("repl_backlog_histlen", 0)
		return
	}
	first := max(log.Oldest(), log.End()-size)
	put("repl_backlog_first_byte_offset", first+1)
	put("repl_backlog_histlen", log.End()-first)
}

// InfoSyncs calls put for the statistics of synchronisations in INFO stats.
func (r *Node) InfoSyncs(put func(name string, value any)) {
	m := &r.master
	put("sync_full", m.full.Load())
	put("sync_partial_ok", m.partial.Load())
	put("sync_partial_err", m.refused.Load())
}

// ResetStats sets the statistics of INFO stats to 0: those of Received, Sent and InfoSyncs.
func (r *Node) ResetStats() {
	m := &r.master
	for _, n := range []*atomic.Int64{&m.full, &m.partial, &m.refused, &r.received, &r.sent} {
		n.Store(0)
	}
}

// Received returns the number of bytes that masters have sent.
func (r *Node) Received() int64 { return r.received.Load() }

// Sent returns the number of bytes sent to replicas: snapshots and the stream.
func (r *Node) Sent() int64 { return r.sent.Load() }
