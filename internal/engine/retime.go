package engine

import "github.com/ebbdb/ebb/internal/wheel"

// A shard's time never runs backwards: it is the later of the clock's time and the last instant of a
// transaction there. If the machine's clock of a group member is ahead, the member adopts the earlier time of
// its master, and its shards would stand still until the master's time has caught up. If the member were
// promoted meanwhile, deadlines would pass early.

// Retime makes the engine adopt the time of its clock, which was just set forward or back. The engine must be
// a replica, and the transaction must hold all shards. The transaction's instant becomes that of the clock.
// O(shards); O(deadlines) if the clock was set back.
func (tx *Tx) Retime() {
	tx.now = tx.db.clock.Micros()
	tx.ms = tx.now / 1000
	for _, sh := range tx.db.shards {
		sh.last = min(sh.last, tx.now)
		for _, spaces := range [...][]*space{sh.spaces, sh.staged} {
			for _, sp := range spaces {
				if sp != nil {
					rewind(tx.ms, sp.due, sp.next, sp.fresh)
				}
			}
		}
		sh.lines.mu.Lock()
		rewind(tx.ms, sh.leases.wheel, sh.lines.wakes.wheel)
		sh.lines.mu.Unlock()
		sh.workAt(0)
	}
}

func rewind(ms int64, all ...*wheel.Wheel) {
	for _, w := range all {
		if w != nil {
			w.Rewind(ms)
		}
	}
}
