package engine

import "github.com/ebbdb/ebb/internal/wheel"

// A shard's time never runs backwards: it is the later of the clock and of the latest instant of a transaction there. A member of a
// group whose machine's clock is ahead takes over the earlier time of its master, and would stand at its own until the master has come
// that far. If it were promoted meanwhile, deadlines would pass early.

// Retime makes the engine take over the time of a clock that was just set, forward or back. The engine is a replica, and the
// transaction, whose instant is the clock's from here on, holds all shards. O(shards); O(deadlines) if the clock was set back.
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
