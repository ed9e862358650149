package engine

import (
	"context"
	"strconv"

	"github.com/ebbdb/ebb/internal/rdb"
)

// Staging holds the data of a file, separate from the engine's own data. A full synchronisation uses it,
// because it must replace all data only if the whole file is valid.
//
//	Check ─▶ reads and decodes every value, and keeps none of them
//	Load  ─▶ loads into spaces of its own ─┬─▶ Tx.Install: they replace the engine's spaces
//	                                       └─▶ Discard: their memory is freed
//
// Meanwhile, clients use the engine's own data. An engine has one Staging at a time. One goroutine
// calls its methods.
type Staging struct {
	db     *DB
	rules  []stagedRules
	leases []savedLease
	token  int64
	holds  bool // the shards have spaces of the Staging
}

type stagedRules struct {
	db    int
	rules []*rule
}

// Stage returns an empty Staging.
func (db *DB) Stage() *Staging { return &Staging{db: db} }

// LoadAux is DB.LoadAux for the file of Check or Load: the text takes effect with Install.
func (s *Staging) LoadAux(name, text []byte) (ours bool, err error) {
	switch string(name) {
	case auxToken:
		s.token, err = s.db.parseToken(string(text))
	case auxRules:
		var r stagedRules
		if r.db, r.rules, err = s.db.parseRules(text); err == nil {
			s.rules = append(s.rules, r)
		}
	case auxLeases:
		s.leases, err = s.db.parseLeases(text)
	default:
		return s.db.LoadAux(name, text) // it belongs to the next key only
	}
	return true, auxError(name, err)
}

// Check reads the whole file as Load does, and builds every value, on all cores, without keeping
// any. Load accepts a file that Check has accepted, unless the file has a key twice or memory runs
// out. Check takes O(file) of time, and a few MiB of memory beside the largest values. Errors: the
// errors of DB.Load.
func (s *Staging) Check(ctx context.Context, r *rdb.Reader, o LoadOptions) error {
	o.into = loadNowhere
	return s.db.Load(ctx, r, o)
}

// Load is DB.Load into the Staging. After an error, the caller calls Discard. UsedMemory counts the
// memory of the Staging.
func (s *Staging) Load(ctx context.Context, r *rdb.Reader, o LoadOptions) error {
	o.into = loadBeside
	s.holds = true
	return s.db.Load(ctx, r, o)
}

// Discard frees the keys that Load has loaded, unless Install has taken them. It locks the shards
// one after the other. O(slabs); the reclaimers free large containers later.
func (s *Staging) Discard() {
	if !s.holds {
		return
	}
	s.holds = false
	for _, sh := range s.db.shards {
		sh.lock.Lock()
		for _, sp := range sh.staged {
			if sp != nil {
				sp.release()
			}
		}
		sh.staged = nil
		sh.publish()
		sh.giveBackSoon(0)
		sh.lock.Unlock()
	}
}

// Install replaces all data, all rules and the fencing token with those of the Staging. The
// transaction holds all shards, so clients see all of the old data or all of the new. Install logs
// nothing. O(shards x databases), and O(1) for each watched key.
func (tx *Tx) Install(s *Staging) {
	tx.Tell()
	tx.release()
	for _, sh := range tx.db.shards {
		staged := sh.staged
		if staged == nil {
			staged = make([]*space, tx.db.ndb)
		}
		for k := range sh.watched {
			if sh.spaces[k.db].holds(k.key) || staged[k.db].holds(k.key) {
				sh.touched(k.db, []byte(k.key))
			}
		}
		for i, sp := range sh.spaces {
			if sp != nil {
				tx.dirty += sp.tab.Len()
				sp.flushed()
			}
			sh.spaces[i] = staged[i]
		}
		sh.staged, sh.own = nil, nil
		sh.publish()
		sh.giveBackSoon(tx.ms)
	}
	s.holds = false
	dbi := tx.dbi
	for i := range tx.db.ndb {
		tx.dbi = i
		tx.setRules(nil)
	}
	for _, r := range s.rules {
		tx.dbi = r.db
		tx.setRules(r.rules)
	}
	tx.dbi = dbi
	tx.voidLeases(-1)
	tx.setLeases(s.leases)
	tx.SawToken(s.token)
	tx.signalAll(-1)
	tx.db.hooks.Flushed(tx, -1)
}

// giveBackSoon schedules the reclaimer, which returns the memory that the shard has freed to the
// system.
func (sh *shard) giveBackSoon(ms int64) {
	sh.freed += considerAfter + 1
	sh.workAt(ms)
}

// parseToken parses the text of a file's last fencing token, which must not be beyond the
// clock.
func (db *DB) parseToken(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > maxToken {
		return 0, errAux
	}
	if n > 0 {
		err = (&Tx{db: db}).CheckToken(n)
	}
	return n, err
}
