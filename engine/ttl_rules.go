package engine

import (
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/glob"
)

// Rules on what expires.
//
//	Tx.expire, Tx.lapse ─▶ lapsed ─▶ fire: copies, for each rule that matches
//	                                   │
//	the transaction ends ─▶ Tx.Tell ◀──┘ an XADD to the rule's stream for each,
//	                                     before those who wait are served
//
// So the transaction that removes an expired item also writes its entry, and there is
// exactly one entry for each rule and expiration, whether a command or the reclaimer
// removes the item. For that the transaction must hold the streams' shards. The reclaimer
// locks them from the start; a command that finds a due item under its own locks begins
// again with the streams' shards (lock_escalation.go). The rules of all databases are one
// immutable book, which the engine exchanges with all shards locked: without rules they
// cost one atomic read for each dead item, and one at the start of a transaction.

// LevelSet is a set of levels.
type LevelSet uint8

// AllLevels are all of them.
const AllLevels LevelSet = 1<<Levels - 1

// Has reports whether a level is in the set.
func (s LevelSet) Has(l Level) bool { return s&(1<<l) != 0 }

// LevelNamed returns the level of a name.
func LevelNamed(name string) (Level, bool) {
	for l := range Levels {
		if l.String() == name {
			return l, true
		}
	}
	return 0, false
}

// Rule says what is told of what expires, and to which stream.
type Rule struct {
	Name     string
	Match    string // a pattern of keys
	Levels   LevelSet
	Stream   string // the key; it is in the rule's database
	MaxLen   int64  // the stream's entries, at most
	Exact    bool   // at most so many, not a few more
	MaxValue int    // the longest value in bytes that goes along, of a string, a field or a job; -1: none does
}

// RuleState is a rule and what has become of it since it was set.
type RuleState struct {
	Rule
	Fired     int64  // entries written
	Missed    int64  // entries that a transaction of their own wrote, or could not write, right after the expiry's
	Suspended int64  // entries not written, because the stream's key could not take them
	Since     int64  // ms since 1970 from which on that is so; 0: it is not
	Why       string // of Since
}

// RuleWatcher is implemented by Hooks that want to know when a rule is suspended,
// with the reason, and when it resumes (why is ""). The shards are locked.
type RuleWatcher interface {
	RuleSuspended(db int, rule, why string)
}

// MaxRules is how many rules a database has at most: every expiry is matched with
// all of them.
const MaxRules = 128

// ErrRules: the database has MaxRules rules.
var ErrRules = errors.New("a database has 128 expiry rules at most")

// rule is a Rule at work. Since and Why are guarded by the stream's shard. Its
// counters are read without any, by monitoring; what RuleState has for them is not
// used.
type rule struct {
	RuleState
	match glob.Pattern // Match
	key   []byte       // Stream
	shard int

	fired, missed, suspended atomic.Int64
}

// ruleSet is the rules of one database. It is never changed.
type ruleSet struct {
	rules   []*rule
	streams map[string]bool // their streams, of which none matches
	shards  uint64          // of the streams
}

// ruleBook is the rules of all databases. It is never changed.
type ruleBook struct {
	sets   []*ruleSet // by database, nil where there are none
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
	if rs == nil || tx.replay || rs.streams[string(key)] {
		return false
	}
	return slices.ContainsFunc(rs.rules, func(r *rule) bool { return r.matches(key, l) })
}

func (r *rule) matches(key []byte, l Level) bool {
	return r.Levels.Has(l) && r.match.Match(key)
}

// firing is an entry that is to be written when the transaction ends.
type firing struct {
	r                          *rule
	db                         int
	level                      Level
	item                       bool // there is one; the bytes follow the key's
	klen, ilen, vlen, at, dlen int  // vlen is -1 for no value; at is the place in Tx.fbuf
}

// fire notes entries for the rules that match. It copies: nothing in the engine's
// memory moves here.
func (tx *Tx) fire(rs *ruleSet, l Level, key, item, value []byte, deadline int64) {
	if tx.replay || rs.streams[string(key)] {
		return
	}
	for _, r := range rs.rules {
		if !r.matches(key, l) {
			continue
		}
		f := firing{r: r, db: tx.dbi, level: l, item: l != LevelKey, klen: len(key), ilen: len(item), vlen: -1, at: len(tx.fbuf)}
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

// The fields of an entry.
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

// maxFired is how many bytes of copies a transaction keeps for the next one.
const maxFired = 1 << 20

// Tell writes the entries of the expirations in the transaction so far, in their order.
// The end of the transaction calls it. A caller that runs several commands in one
// transaction calls it between them, so that each command finds what those before it
// would have left. No bytes of the engine's memory may be in use.
func (tx *Tx) Tell() {
	if len(tx.fired) == 0 {
		return
	}
	dbi := tx.dbi
	var room [14][]byte
	for i := 0; i < len(tx.fired); i++ {
		f := &tx.fired[i]
		tx.dbi = f.db
		if tx.holds(f.r.shard) {
			tx.write(f.r, tx.pairs(room[:0], f))
		} else {
			f.r.missed.Add(1)
			tx.late = append(tx.late, lateEntry{f.r, ownPairs(tx.pairs(room[:0], f))})
		}
	}
	tx.dbi = dbi
	clear(tx.fired)
	tx.fired, tx.fbuf = tx.fired[:0], tx.fbuf[:0]
	if cap(tx.fbuf) > maxFired {
		tx.fired, tx.fbuf = nil, nil
	}
}

// write appends an entry to a rule's stream, in the selected database. Where the
// key cannot take it the rule is suspended: it tries again with the next one.
func (tx *Tx) write(r *rule, pairs [][]byte) {
	tx.reads = false
	_, _, err := tx.XAdd(r.key, &XAdd{Auto: true, Pairs: pairs, Trim: true, Bounds: StreamTrim{Len: uint64(r.MaxLen), Approx: !r.Exact}})
	was, stats := r.Since, &tx.db.shards[r.shard].stats
	switch {
	case err == nil:
		r.fired.Add(1)
		stats.RuleFired++
		r.Since, r.Why = 0, ""
	default:
		r.suspended.Add(1)
		stats.RuleSuspended++
		if r.Why = suspension(err); was == 0 {
			r.Since = tx.ms
		}
	}
	if w, ok := tx.db.hooks.(RuleWatcher); ok && (was == 0) != (r.Since == 0) {
		w.RuleSuspended(tx.dbi, r.Name, r.Why)
	}
}

// suspension says why an entry cannot be written.
func suspension(err error) string {
	if err == ErrWrongType {
		return "the stream's key holds another type"
	}
	return err.Error()
}

// lateEntry is an entry whose stream was not held when it was due: a transaction of
// its own writes it. Nothing but a transaction that restores what is dead, and then
// looks at it, leaves one.
type lateEntry struct {
	r     *rule
	pairs [][]byte
}

func ownPairs(pairs [][]byte) [][]byte {
	own := make([][]byte, len(pairs))
	for i, p := range pairs {
		own[i] = append([]byte(nil), p...)
	}
	return own
}

// writeLate writes entries that their transaction could not write. A rule that is
// gone meanwhile has no use for them.
func (tx *Tx) writeLate(e lateEntry) {
	tx.begin(0, 1<<e.r.shard, true)
	if b := tx.db.book.Load(); b != nil {
		for i, rs := range b.sets {
			if rs != nil && slices.Contains(rs.rules, e.r) {
				tx.dbi = i
				tx.write(e.r, e.pairs)
			}
		}
	}
	tx.finish()
}

// SetRule sets a rule of the selected database, in place of one of the same name,
// whose counters are forgotten. The transaction holds all shards. Errors: ErrRules.
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
	n := &rule{RuleState: RuleState{Rule: r}, match: glob.New(r.Match), key: []byte(r.Stream)}
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

// Rules returns the rules of the selected database in the order in which they were
// set. It takes the shards of their streams in turn, but for those that the
// transaction holds.
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

// index returns where a rule is, -1 if it is not there.
func (rs *ruleSet) index(name string) int {
	if rs == nil {
		return -1
	}
	return slices.IndexFunc(rs.rules, func(r *rule) bool { return r.Name == name })
}

// setRules makes these the rules of the selected database.
func (tx *Tx) setRules(rules []*rule) {
	var rs *ruleSet
	if len(rules) > 0 {
		rs = &ruleSet{rules: rules, streams: map[string]bool{}}
		for _, r := range rules {
			rs.streams[r.Stream] = true
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

// setBook makes these the rules of all databases.
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

// effect is the command, behind its first word, that sets the rule.
func (r *Rule) effect() [][]byte {
	words := []string{"RULE", "SET", r.Name, "MATCH", r.Match}
	if r.Levels != AllLevels {
		words = append(words, "LEVEL")
		for m := r.Levels; m != 0; m &= m - 1 {
			words = append(words, Level(bits.TrailingZeros8(uint8(m))).String())
		}
	}
	words = append(words, "TO", r.Stream, "MAXLEN")
	if !r.Exact {
		words = append(words, "~")
	}
	words = append(words, strconv.FormatInt(r.MaxLen, 10))
	if r.MaxValue >= 0 {
		words = append(words, "WITHVALUE", strconv.Itoa(r.MaxValue))
	}
	args := make([][]byte, len(words))
	for i, w := range words {
		args[i] = []byte(w)
	}
	return args
}
