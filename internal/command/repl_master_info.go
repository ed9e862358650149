package command

import (
	"fmt"
	"strconv"
)

// connectedReplicas writes the replicas, for INFO.
func (i *info) connectedReplicas() {
	m, c := &i.svc.master, i.svc.Config
	all := m.everybody()
	i.put("connected_slaves", len(all))
	if lag := c.Int("min-replicas-max-lag"); lag > 0 && c.Int("min-replicas-to-write") > 0 {
		i.put("min_slaves_good_slaves", m.good(lag))
	}
	for n, f := range all {
		host, port := f.place()
		lag := int64(0)
		if f.at() == followOnline {
			lag = max(i.now-f.ackAt.Load(), 0) / 1e6
		}
		i.put("slave"+strconv.Itoa(n), fmt.Sprintf("ip=%s,port=%d,state=%s,offset=%d,lag=%d", host, port, stateNames[f.at()], f.acked.Load(), lag))
	}
}

// backlogLines writes what is kept of the stream.
func (i *info) backlogLines() {
	m, log := &i.svc.master, i.svc.DB.Log()
	m.mu.Lock()
	on := m.backlog
	m.mu.Unlock()
	size := i.svc.Config.Int("repl-backlog-size")
	i.put("repl_backlog_active", on)
	i.put("repl_backlog_size", size)
	if !on {
		i.zeros("repl_backlog_first_byte_offset", "repl_backlog_histlen")
		return
	}
	first := max(log.Oldest(), log.End()-size)
	i.put("repl_backlog_first_byte_offset", first+1)
	i.put("repl_backlog_histlen", log.End()-first)
}

// syncs writes the statistics of synchronisations.
func (i *info) syncs() {
	m := &i.svc.master
	i.put("sync_full", m.full.Load())
	i.put("sync_partial_ok", m.partial.Load())
	i.put("sync_partial_err", m.refused.Load())
}

// masterRole writes ROLE's reply.
func (c *Ctx) masterRole() error {
	all := c.Service.master.everybody()
	online := all[:0]
	for _, f := range all {
		if f.at() == followOnline {
			online = append(online, f)
		}
	}

	c.Out.Array(3)
	c.Out.BulkString("master")
	c.Out.Int(c.Service.DB.Log().End())
	c.Out.Array(len(online))
	for _, f := range online {
		host, port := f.place()
		c.Out.Array(3)
		c.Out.BulkString(host)
		c.Out.BulkString(strconv.Itoa(port))
		c.Out.BulkString(strconv.FormatInt(f.acked.Load(), 10))
	}
	return nil
}
