package engine

import (
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/glob"
)

// This file implements expiry rules.
//
//	Tx.expire, Tx.lapse ─▶ lapsed ─▶ fire: copies, for each rule that matches
//	                                   │
//	the transaction ends ─▶ Tx.Tell ◀──┘ an XADD to the rule's stream for each, or a job for
//	                                     its delay queue, before waiting clients are served
//
// So the transaction that removes an expired item also writes its entry, and there is exactly one entry for
// each rule and expiration, whether a command or the reclaimer removes the item. For that, the transaction
// must hold the shards of the rules' targets, which are their streams and queues. The reclaimer locks them
// from the start. A command that finds a due item under its own locks begins again with these shards
// (lock_escalation.go). The rules of all databases are one immutable book, which the engine replaces with all
// shards locked. Without rules, the cost is one atomic read for each dead item, and one at the start of a
// transaction. ttl_rules_queue.go has the jobs.

// LevelSet is a set of levels.
type LevelSet uint8

// AllLevels is the set of all levels on which data expires. A rule has LevelFresh only by its name.
const AllLevels LevelSet = 1<<Levels - 1

// Has reports whether a level is in the set.
func (s LevelSet) Has(l Level) bool { return s&(1<<l) != 0 }

// LevelNamed returns the level with a name; ok is false if there is none.
func LevelNamed(name string) (Level, bool) {
	for l := range LevelFresh + 1 {
		if l.String() == name {
			return l, true
		}
	}
	return 0, false
}

// Rule selects expirations, and the stream or delay queue and the data with which the engine records them.
type Rule struct {
	Name     string
	Match    string // a pattern of keys
	Levels   LevelSet
	Stream   string // the stream's key, in the rule's database
	MaxLen   int64  // the greatest number of entries in the stream
	Exact    bool   // keep MaxLen exactly; otherwise the stream may have a few more
	MaxValue int    // the longest value of a string, a field or a job, in bytes, that an entry includes; -1: entries have no values

	// ToQueue makes each entry a job of the delay queue Queue, a key in the rule's database. Such a
	// rule has no Stream and no MaxLen: the queue has its own.
	ToQueue  bool
	Queue    string
	Delay    int64 // with ToQueue: the ms after the expiration at which the job is due
	Priority uint8 // of ToQueue: the job's priority, up to MaxPriority
}

// Target returns the key to which the rule writes.
func (r *Rule) Target() string {
	if r.ToQueue {
		return r.Queue
	}
	return r.Stream
}

// RuleState is a rule, and its counters since it was set.
type RuleState struct {
	Rule
	Fired     int64  // entries written
	Missed    int64  // entries that a separate transaction had to write, directly after that of the expiration
	Suspended int64  // entries not written, because the target's key could not take them
	Since     int64  // the start of the current suspension, ms since 1970; 0: the rule is not suspended
	Why       string // the reason of the suspension
}

// RuleWatcher is an optional interface of Hooks. The engine calls it when a rule is suspended, with the
// reason in why, and when the rule resumes, with an empty why. The shards are locked.
type RuleWatcher interface {
	RuleSuspended(db int, rule, why string)
}

// MaxRules is the greatest number of rules of a database. The engine matches every expiration with
// all of them.
const MaxRules = 128

// ErrRules: the database has MaxRules rules.
var ErrRules = errors.New("a database has 128 expiry rules at most")

// rule is an active Rule. The shard of its target guards Since and Why. Its counters are atomic,
// because monitoring reads them without a lock; the counters of the embedded RuleState are not
// used.
type rule struct {
	RuleState
	match glob.Pattern // Match, compiled
	key   []byte       // Target
	shard int

	fired, missed, suspended atomic.Int64
}

// ruleSet holds the rules of one database. It is immutable.
type ruleSet struct {
	rules   []*rule
	targets map[string]bool // the rules' streams and queues, whose own expirations no rule records
	shards  uint64          // the shards of the targets
}

// ruleBook holds the rules of all databases. It is immutable.
type ruleBook struct {
	sets   []*ruleSet // by database; nil without rules
	shards uint64
}

// rules returns the rules of the selected database, nil if there are none.
func (tx *Tx) rules() *ruleSet {
	if b := tx.db.book.Load(); b != nil {
		return b.sets[tx.dbi]
	}
	return nil
}

// ruled reports whether a rule of the selected database matches a key on a level.
func (tx *Tx) ruled(key []byte, l Level) bool {
	rs := tx.rules()
	if rs == nil || tx.replay || rs.targets[string(key)] {
		return false
	}
	return slices.ContainsFunc(rs.rules, func(r *rule) bool { return r.matches(key, l) })
}

func (r *rule) matches(key []byte, l Level) bool {
	return r.Levels.Has(l) && r.match.Match(key)
}

// firing is an entry to write when the transaction ends.
type firing struct {
	r                          *rule
	db                         int
	level                      Level
	item                       bool // the expiration is that of an item, whose bytes follow the key's
	klen, ilen, vlen, at, dlen int  // vlen is -1 for no value; at is the position in Tx.fbuf
}

// fire records entries for the matching rules. It copies the data and moves nothing in the engine's memory.
func (tx *Tx) fire(rs *ruleSet, l Level, key, item, value []byte, deadline int64) {
	if tx.replay || rs.targets[string(key)] {
		return
	}
	for _, r := range rs.rules {
		if !r.matches(key, l) {
			continue
		}
		f := firing{r: r, db: tx.dbi, level: l, item: l != LevelKey && l != LevelFresh, klen: len(key), ilen: len(item), vlen: -1, at: len(tx.fbuf)}
		tx.fbuf = append(append(tx.fbuf, key...), item...)
		if value != nil && len(value) <= r.MaxValue {
			f.vlen = len(value)
			tx.fbuf = append(tx.fbuf, value...)
		}
		before := len(tx.fbuf)
		tx.fbuf = strconv.AppendInt(tx.fbuf, deadline, 10)
		f.dlen = len(tx.fbuf) - before
		tx.fired = append(tx.fired, f)
	}
}

// These are the fields of an entry.
var (
	entryKey      = []byte("key")
	entryItem     = []byte("item")
	entryLevel    = []byte("level")
	entryValue    = []byte("value")
	entryDeadline = []byte("deadline")
	entryFiredAt  = []byte("fired-at")
	entryRule     = []byte("rule")
)

// pairs appends the fields and values of an entry.
func (tx *Tx) pairs(dst [][]byte, f *firing) [][]byte {
	b := tx.fbuf[f.at:]
	take := func(n int) (part []byte) {
		part, b = b[:n:n], b[n:]
		return part
	}
	dst = append(dst, entryKey, take(f.klen))
	item := take(f.ilen)
	if f.item {
		dst = append(dst, entryItem, item)
	}
	dst = append(dst, entryLevel, []byte(f.level.String()))
	if f.vlen >= 0 {
		dst = append(dst, entryValue, take(f.vlen))
	}
	return append(dst, entryDeadline, take(f.dlen), entryFiredAt, strconv.AppendInt(nil, tx.ms, 10), entryRule, []byte(f.r.Name))
}

// maxFired is the largest buffer for copies, in bytes, that a transaction keeps for the next one.
const maxFired = 1 << 20

// Tell writes the entries of the expirations in the transaction so far, in order. The end of the transaction
// calls it. A caller that runs several commands in one transaction calls it between them, so that each
// command finds the keyspace as if the earlier commands had run alone. The caller must not hold bytes in the
// engine's memory.
func (tx *Tx) Tell() {
	if len(tx.fired) == 0 {
		return
	}
	dbi := tx.dbi
	var room [14][]byte
	for i := 0; i < len(tx.fired); i++ {
		f := &tx.fired[i]
		tx.dbi = f.db
		pairs := tx.pairs(room[:0], f)
		if f.r.ToQueue {
			pairs = tx.job(pairs[:0], f)
		}
		if tx.holds(f.r.shard) {
			tx.write(f.r, pairs)
		} else {
			f.r.missed.Add(1)
			tx.late = append(tx.late, lateEntry{f.r, ownPairs(pairs)})
		}
	}
	tx.dbi = dbi
	clear(tx.fired)
	tx.fired, tx.fbuf = tx.fired[:0], tx.fbuf[:0]
	if cap(tx.fbuf) > maxFired {
		tx.fired, tx.fbuf = nil, nil
	}
}

// write appends an entry to a rule's stream, or adds a job, in the selected database. If the key
// cannot take the entry, write suspends the rule, which tries again with its next entry.
func (tx *Tx) write(r *rule, entry [][]byte) {
	tx.reads = false
	var err error
	if r.ToQueue {
		err = tx.writeJob(r, entry)
	} else {
		_, _, err = tx.XAdd(r.key, &XAdd{Auto: true, Pairs: entry, Trim: true, Bounds: StreamTrim{Len: uint64(r.MaxLen), Approx: !r.Exact}})
	}
	was, stats := r.Since, &tx.db.shards[r.shard].stats
	switch {
	case err == nil:
		r.fired.Add(1)
		stats.RuleFired++
		r.Since, r.Why = 0, ""
	default:
		r.suspended.Add(1)
		stats.RuleSuspended++
		if r.Why = r.suspension(err); was == 0 {
			r.Since = tx.ms
		}
	}
	if w, ok := tx.db.hooks.(RuleWatcher); ok && (was == 0) != (r.Since == 0) {
		w.RuleSuspended(tx.dbi, r.Name, r.Why)
	}
}

// suspension returns the reason why an entry cannot be written.
func (r *Rule) suspension(err error) string {
	switch {
	case err == ErrWrongType && r.ToQueue:
		return "the queue's key holds another type"
	case err == ErrWrongType:
		return "the stream's key holds another type"
	}
	return err.Error()
}

// lateEntry is an entry for a target whose shard the transaction did not hold. A separate
// transaction writes it. Only a transaction that restores a dead item and then reads it leaves such
// an entry.
type lateEntry struct {
	r     *rule
	entry [][]byte
}

func ownPairs(pairs [][]byte) [][]byte {
	own := make([][]byte, len(pairs))
	for i, p := range pairs {
		own[i] = append([]byte(nil), p...)
	}
	return own
}

// writeLate writes an entry that its transaction could not write, unless the rule was deleted in
// the meantime. The transaction holds the shard of the rule's target.
func (tx *Tx) writeLate(e lateEntry) {
	if b := tx.db.book.Load(); b != nil {
		for i, rs := range b.sets {
			if rs != nil && slices.Contains(rs.rules, e.r) {
				tx.dbi = i
				tx.write(e.r, e.entry)
			}
		}
	}
}

// SetRule sets a rule of the selected database. It replaces a rule with the same name and resets
// its counters. The transaction holds all shards. Errors: ErrRules.
func (tx *Tx) SetRule(r Rule) error {
	tx.Tell()
	old := tx.rules()
	if old == nil {
		old = &ruleSet{}
	}
	n := newRule(tx.db, r)
	rules := slices.Clone(old.rules)
	if i := old.index(r.Name); i >= 0 {
		rules[i] = n
	} else if rules = append(rules, n); len(rules) > MaxRules {
		return ErrRules
	}
	tx.setRules(rules)
	tx.Effect("EXPIRY", r.effect()...)
	return nil
}

func newRule(db *DB, r Rule) *rule {
	n := &rule{RuleState: RuleState{Rule: r}, match: glob.New(r.Match), key: []byte(r.Target())}
	n.shard, _ = db.shardOf(n.key)
	return n
}

// DelRule removes a rule of the selected database, and reports whether there was
// one. The transaction holds all shards.
func (tx *Tx) DelRule(name string) bool {
	tx.Tell()
	rs := tx.rules()
	i := rs.index(name)
	if i < 0 {
		return false
	}
	tx.setRules(slices.Delete(slices.Clone(rs.rules), i, i+1))
	tx.Effect("EXPIRY", []byte("RULE"), []byte("DEL"), []byte(name))
	return true
}

// Rules returns the rules of the selected database in the order in which they were set. It locks
// the shards of their targets one after the other, except for those that the transaction holds.
func (tx *Tx) Rules() (all []RuleState) {
	rs := tx.rules()
	if rs == nil {
		return nil
	}
	for _, r := range rs.rules {
		sh := tx.db.shards[r.shard]
		if !tx.holds(r.shard) {
			sh.lock.Lock()
		}
		s := r.RuleState
		if !tx.holds(r.shard) {
			sh.lock.Unlock()
		}
		s.Fired, s.Missed, s.Suspended = r.fired.Load(), r.missed.Load(), r.suspended.Load()
		all = append(all, s)
	}
	return all
}

// index returns the index of a rule, -1 if there is no such rule.
func (rs *ruleSet) index(name string) int {
	if rs == nil {
		return -1
	}
	return slices.IndexFunc(rs.rules, func(r *rule) bool { return r.Name == name })
}

// setRules replaces the rules of the selected database.
func (tx *Tx) setRules(rules []*rule) {
	var rs *ruleSet
	if len(rules) > 0 {
		rs = &ruleSet{rules: rules, targets: map[string]bool{}}
		for _, r := range rules {
			rs.targets[r.Target()] = true
			rs.shards |= 1 << r.shard
		}
	}
	sets := make([]*ruleSet, tx.db.ndb)
	if b := tx.db.book.Load(); b != nil {
		copy(sets, b.sets)
	}
	sets[tx.dbi] = rs
	tx.setBook(sets)
}

// swapRules exchanges the rules of two databases.
func (tx *Tx) swapRules(a, b int) {
	if book := tx.db.book.Load(); book != nil {
		sets := slices.Clone(book.sets)
		sets[a], sets[b] = sets[b], sets[a]
		tx.setBook(sets)
	}
}

// setBook replaces the rules of all databases.
func (tx *Tx) setBook(sets []*ruleSet) {
	b := &ruleBook{sets: sets}
	for _, rs := range sets {
		if rs != nil {
			b.shards |= rs.shards
		}
	}
	if b.shards == 0 {
		b = nil
	}
	tx.db.book.Store(b)
}

// effect returns the arguments of the EXPIRY command that sets the rule.
func (r *Rule) effect() [][]byte {
	words := []string{"RULE", "SET", r.Name, "MATCH", r.Match}
	if r.Levels != AllLevels {
		words = append(words, "LEVEL")
		for m := r.Levels; m != 0; m &= m - 1 {
			words = append(words, Level(bits.TrailingZeros8(uint8(m))).String())
		}
	}
	if r.ToQueue {
		words = append(words, "TO", "QUEUE", r.Queue, "DELAY", strconv.FormatInt(r.Delay, 10), "PRIORITY", strconv.Itoa(int(r.Priority)))
	} else {
		words = append(words, "TO", r.Stream, "MAXLEN")
		if !r.Exact {
			words = append(words, "~")
		}
		words = append(words, strconv.FormatInt(r.MaxLen, 10))
	}
	if r.MaxValue >= 0 {
		words = append(words, "WITHVALUE", strconv.Itoa(r.MaxValue))
	}
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	return args
}
