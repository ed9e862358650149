package command

import "fmt"

// What INFO, ROLE and metrics say of replication.

func (i *info) replication() {
	r := &i.svc.repl
	if l := r.follows.Load(); l != nil {
		i.put("role", "slave")
		i.master(l)
	} else {
		i.put("role", "master")
	}
	i.connectedReplicas()
	i.put("master_failover_state", r.failover.state())
	id, id2, second := r.names()
	i.put("master_replid", id)
	i.put("master_replid2", id2)
	i.put("master_repl_offset", i.svc.DB.Log().End())
	i.put("second_repl_offset", second)
	i.backlogLines()
}

// master writes what a replica says of its link.
func (i *info) master(l *link) {
	c, step, offset := i.svc.Config, l.step(), i.svc.DB.Log().End()
	up := step == linkConnected
	i.put("master_host", l.host)
	i.put("master_port", l.port)
	i.put("master_link_status", map[bool]string{true: "up", false: "down"}[up])
	if up {
		i.put("master_last_io_seconds_ago", max(i.now-l.heard.Load(), 0)/1e6)
	} else {
		i.put("master_last_io_seconds_ago", -1)
	}
	i.put("master_sync_in_progress", step == linkSync)
	i.put("slave_read_repl_offset", offset)
	i.put("slave_repl_offset", offset)
	if step == linkSync {
		i.transfer(l)
	}
	if !up {
		i.put("master_link_down_since_seconds", max(i.now-l.down.Load(), 0)/1e6)
	}
	if why := i.svc.repl.syncError.Load(); why != nil && *why != "" {
		i.put("master_sync_last_error", *why)
	}
	i.put("slave_priority", c.Int("replica-priority"))
	i.put("slave_read_only", c.Bool("replica-read-only"))
	i.put("replica_announced", c.Bool("replica-announced"))
	i.put("replica_refused_commands", i.svc.repl.refused.Load())
	if last := i.svc.repl.refusal.Load(); last != nil {
		i.put("replica_refused_last", oneLine(fmt.Sprintf("offset=%d,command=%s,error=%s", last.offset, last.command, last.why)))
	}
}

// transfer writes how far a full synchronisation has come.
func (i *info) transfer(l *link) {
	total, got := l.expected.Load(), l.received.Load()
	left := total - got
	if total < 0 {
		total, left = 0, 0
	}
	i.put("master_sync_total_bytes", total)
	i.put("master_sync_read_bytes", got)
	i.put("master_sync_left_bytes", left)
	i.put("master_sync_perc", 100*ratio(got, total))
	i.put("master_sync_last_io_seconds_ago", max(i.now-l.heard.Load(), 0)/1e6)
}
