package modeltest

import (
	"flag"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

var (
	ownTime = flag.Duration("own.time", 0, "how long random sequences over all commands are played; 0: a fixed number of rounds")
	ownSeed = flag.Uint64("own.seed", 0, "the seed of the first sequence; 0: see package draw")
	ownLen  = flag.Int("own.len", 200, "operations in a sequence")
)

// ownRounds is the number of sequences without a flag.
const ownRounds = 40

// Whatever is asked for in whatever order, with time standing still or jumping: the
// engine is sound, its effects give the same keys, items and rules, nothing that has
// expired is to be seen, nothing else has gone, and rules are told of each expiry.
func TestRandomSequencesOverAllCommandsLeaveASoundEngine(t *testing.T) {
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	from := draw.Seed(t, *ownSeed)
	sequences, requests, faults := 0, 0, 0
	for round := range draw.Rounds(*ownTime, ownRounds) {
		if faults >= mostFaults {
			break
		}
		seed := from + uint64(round)
		g := NewOwnGenerator(seed, table)
		g.Told, g.NoLimiters = seed%3 == 0, seed%3 == 0
		mode := ownMode{told: g.Told, small: seed%2 == 0, evicts: seed%5 == 0}
		ops := g.Sequence(*ownLen)
		n, err := playOwn(ops, mode)
		sequences, requests = sequences+1, requests+n
		if err == nil {
			continue
		}
		faults++
		first := err
		ops = Shrink(ops, 400, func(ops []Op) bool {
			_, err := playOwn(ops, mode)
			return err != nil && sameFault(err, first)
		})
		if _, again := playOwn(ops, mode); again != nil {
			err = again
		}
		t.Errorf("-own.seed %d: %v\n%s", seed, err, showOps(ops))
	}
	t.Logf("%d sequences, %d requests", sequences, requests)
}

// sameFault reports whether two errors are of one kind: a sequence must not be
// shortened to something else.
func sameFault(a, b error) bool {
	kind := func(err error) string {
		k, _, _ := strings.Cut(err.Error(), ":")
		return k
	}
	return kind(a) == kind(b)
}

func showOps(ops []Op) string {
	var b strings.Builder
	for _, o := range ops {
		switch {
		case o.Wait > 0:
			fmt.Fprintf(&b, "  ~ %v\n", o.Wait)
		case o.Hangup:
			fmt.Fprintf(&b, "  %d> hangs up\n", o.Conn)
		case o.Args == nil:
			fmt.Fprintf(&b, "  look\n")
		default:
			fmt.Fprintf(&b, "  %d> %s\n", o.Conn, transcript.Line(o.Args))
		}
	}
	return b.String()
}

// ownPlay is a sequence being played on an engine whose clock stands still.
type ownPlay struct {
	e       *transcript.Engine
	replica *Replica
	memory  Memory
	asked   map[int][][]string // requests without a reply, by connection
	words   map[string]bool    // of all requests, keys among them
	told    bool
	evicts  bool // memory runs out
	sent    int
}

// looker is the connection that looks at the state.
const looker = 99

// ownMode is the configuration of an engine for a sequence.
type ownMode struct {
	told   bool // there are the rules of toldRule
	small  bool // containers become large with a few items
	evicts bool // memory runs out
}

// playOwn plays a sequence. It returns how many requests were sent, and what was
// wrong first.
func playOwn(ops []Op, mode ownMode) (n int, err error) {
	var options []string
	if mode.small {
		options = []string{"--hash-max-listpack-entries", "4", "--set-max-intset-entries", "5", "--set-max-listpack-entries", "4",
			"--zset-max-listpack-entries", "4", "--list-max-listpack-size", "3", "--stream-node-max-entries", "3"}
	}
	p := &ownPlay{memory: Memory{}, asked: map[int][][]string{}, words: map[string]bool{}, told: mode.told, evicts: mode.evicts}
	if p.e, err = transcript.NewEngine(options...); err != nil {
		return 0, err
	}
	if p.replica, err = NewReplica(); err != nil {
		return 0, err
	}
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v\n%s", x, debug.Stack())
		} else if err == nil || !strings.Contains(err.Error(), "panic") {
			p.e.Close()
			p.replica.Close()
		}
	}()
	if _, err := p.ask("CLIENT", "NO-TOUCH", "ON"); err != nil {
		return 0, err
	}
	for i := range databases {
		if !mode.told {
			break
		}
		if _, err := p.ask("SELECT", strconv.Itoa(i)); err != nil {
			return 0, err
		}
		if _, err := p.ask(toldRule...); err != nil {
			return 0, err
		}
	}
	if err := p.limit(true); err != nil {
		return 0, err
	}
	for i, o := range ops {
		if err := p.step(o); err != nil {
			return p.sent, fmt.Errorf("%w\nafter operation %d, %s", err, i, strings.TrimSpace(showOps(ops[i:i+1])))
		}
	}
	return p.sent, nil
}

func (p *ownPlay) now() int64 { return p.e.Clock.Micros() / 1000 }

func (p *ownPlay) step(o Op) error {
	switch {
	case o.Wait > 0:
		return p.pass(o.Wait)
	case o.Hangup:
		delete(p.asked, o.Conn)
		return p.e.Hangup(o.Conn)
	case o.Args == nil:
		return p.look()
	}
	p.drain()
	if len(p.asked[o.Conn]) > 0 {
		return nil // it waits
	}
	args := p.memory.Resolve(o.Args, p.now())
	if len(args) == 0 {
		return nil
	}
	p.sent++
	for _, a := range args {
		p.words[a] = true
	}
	p.asked[o.Conn] = append(p.asked[o.Conn], args)
	if err := p.e.Send(o.Conn, args); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	p.drain()
	return nil
}

// drain reads the replies that are there.
func (p *ownPlay) drain() {
	for conn, asked := range p.asked {
		for len(asked) > 0 {
			v, ok := p.e.Next(conn)
			if !ok {
				break
			}
			if v.Kind == resp.KindPush {
				continue
			}
			p.memory.Learn(asked[0], v)
			asked = asked[1:]
		}
		p.asked[conn] = asked
	}
}

// moving returns the words of waiting requests among which are the keys that time alone may change: those of
// requests that wait for due members, and of those that wait for what these move.
func (p *ownPlay) moving() map[string]bool {
	words := map[string]bool{}
	for n := -1; n != len(words); {
		n = len(words)
		for _, asked := range p.asked {
			for _, args := range asked {
				due := slices.Contains([]string{"ZPOPDUE", "ZMOVEDUE", "BZTSPOP", "BZTSMOVE"}, strings.ToUpper(args[0]))
				if due || slices.ContainsFunc(args, func(a string) bool { return words[a] }) {
					for _, a := range args {
						words[a] = true
					}
				}
			}
		}
	}
	return words
}

// pass lets time pass, and looks whether that ended what was due, and nothing else.
func (p *ownPlay) pass(d time.Duration) error {
	before, _ := dump(p.e.DB, false, p.now()+d.Milliseconds())
	moves := p.moving()
	if err := p.e.Advance(d); err != nil {
		return err
	}
	p.drain()
	if p.evicts {
		return nil
	}
	after, now := dump(p.e.DB, false, 0)
	plain := func(i item) bool { return i.kind <= engine.ZSet && i.kind != engine.Stream && i.kind != engine.None }
	for at, b := range before {
		if a, ok := after[at]; plain(b) && !moves[at.key] && (b.deadline == 0 || b.deadline >= now) &&
			(!ok || a.value != b.value || a.deadline != b.deadline) {
			return fmt.Errorf("time changed what lives: db%d %q was %v, is %v after %v", at.db, at.key, b, a, d)
		}
	}
	for at, a := range after {
		if b, ok := before[at]; plain(a) && !moves[at.key] && (!ok || b.deadline != 0 && b.deadline < now) {
			return fmt.Errorf("time revived: db%d %q is %v, was %v, after %v", at.db, at.key, a, b, d)
		}
	}
	return nil
}

// limit has keys evicted, or not.
func (p *ownPlay) limit(on bool) error {
	if !p.evicts {
		return nil
	}
	limit := "0"
	if on {
		limit = "2500" // a dozen small keys
	}
	_, err := p.ask("CONFIG", "SET", "maxmemory", limit, "maxmemory-policy", "allkeys-random")
	return err
}

// look looks at everything, with as much memory as that takes.
func (p *ownPlay) look() error {
	err := p.limit(false)
	if err == nil {
		err = p.lookAround()
	}
	if err == nil {
		err = p.limit(true)
	}
	return err
}

func (p *ownPlay) lookAround() error {
	if err := p.e.DB.Check(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	for i := range databases {
		if _, err := p.ask("SELECT", strconv.Itoa(i)); err != nil {
			return err
		}
		if err := p.lookAtKeys(i); err != nil {
			return fmt.Errorf("%w in database %d", err, i)
		}
		if _, err := p.ask("SELECT", strconv.Itoa(i)); err != nil {
			return err
		}
		// Where nothing is reclaimed, what a lock or a queue holds goes when it is looked
		// up, and the replica receives it.
		if _, err := p.ask(append([]string{"EXISTS", "told"}, slices.Sorted(maps.Keys(p.words))...)...); err != nil {
			return err
		}
	}
	if err := p.e.DB.Check(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if err := p.replica.Follow(p.e.DB); err != nil {
		return fmt.Errorf("follow: %w", err)
	}
	if p.told {
		return p.lookAtRules()
	}
	return nil
}

func (p *ownPlay) ask(args ...string) (resp.Value, error) {
	v, err := p.e.Do(looker, args...)
	if err == nil && v.Kind == resp.KindError {
		err = fmt.Errorf("refused: %s to %q", v.Str, args)
	}
	return v, err
}

// lookAtKeys looks at the selected database as a client does.
func (p *ownPlay) lookAtKeys(db int) error {
	var names []string
	for cursor := "0"; ; {
		v, err := p.ask("SCAN", cursor, "COUNT", "1000")
		if err != nil {
			return err
		}
		more, err := v.Elems[1].AsStrings()
		if err != nil {
			return err
		}
		names = append(names, more...)
		if cursor = v.Elems[0].Str; cursor == "0" {
			break
		}
	}
	size, err := p.ask("DBSIZE")
	if err != nil {
		return err
	}
	if int(size.Int) != len(names) {
		return fmt.Errorf("size: DBSIZE is %d, SCAN shows %q", size.Int, names)
	}
	for _, k := range names {
		if v, err := p.ask("PTTL", k); err != nil || v.Int < -1 {
			return fmt.Errorf("ttl: PTTL of %q, which SCAN shows, is %v, %v", k, v.Int, err)
		}
		if err := p.lookAtItems(k); err != nil {
			return err
		}
	}
	if err := p.lookAhead(db); err != nil {
		return err
	}
	if len(names) > 0 {
		return p.lookAtCopies(db, names[p.sent%len(names)])
	}
	return nil
}

// lookAhead looks whether EXPIRY NEXT is not before now, nor after the next key that
// expires.
func (p *ownPlay) lookAhead(db int) error {
	v, err := p.ask("EXPIRY", "NEXT")
	if err != nil {
		return err
	}
	all, now := dump(p.e.DB, false, 0)
	for at, i := range all {
		if at.db == db && i.deadline != 0 && (v.IsNull() || v.Elems[0].Int > i.deadline) {
			return fmt.Errorf("next: %q is at %d, EXPIRY NEXT says %v", at.key, i.deadline, v)
		}
	}
	if v.IsNull() {
		return nil
	}
	at, level, key := v.Elems[0].Int, v.Elems[1].Str, v.Elems[2].Str
	if at < now || level == "key" && all[place{db, key}].deadline != at {
		return fmt.Errorf("next: EXPIRY NEXT says %v at %d, the key's deadline is %d", v, now, all[place{db, key}].deadline)
	}
	return nil
}

// spare is a database that sequences do not use.
const spare = 9

// lookAtCopies looks whether COPY, and DUMP with RESTORE, make the same value.
func (p *ownPlay) lookAtCopies(db int, key string) error {
	same := func(how string) error {
		all, _ := dump(p.e.DB, false, 0)
		a, b := all[place{db, key}], all[place{spare, key}]
		if how == "dump" {
			a.span, a.fresh = 0, 0 // they are not told
		}
		if a != b {
			return fmt.Errorf("%s: %q is %v, its copy %v", how, key, a, b)
		}
		return nil
	}
	if _, err := p.ask("COPY", key, key, "DB", strconv.Itoa(spare), "REPLACE"); err != nil {
		return err
	}
	if err := same("copy"); err != nil {
		return err
	}
	v, err := p.ask("DUMP", key)
	if err != nil {
		return err
	}
	all, now := dump(p.e.DB, false, 0)
	until := all[place{db, key}].deadline
	if _, err := p.ask("SELECT", strconv.Itoa(spare)); err != nil {
		return err
	}
	if until == now { // RESTORE takes what is not in the future for the past
		_, err = p.ask("FLUSHDB")
		return err
	}
	if _, err := p.ask("RESTORE", key, strconv.FormatInt(until, 10), v.Str, "REPLACE", "ABSTTL"); err != nil {
		return err
	}
	if err := same("dump"); err != nil {
		return err
	}
	_, err = p.ask("FLUSHDB")
	return err
}

// ownItems are the commands that list the items of a type, count them and ask for their
// deadlines.
var ownItems = map[string]struct{ all, count, ttl, word string }{
	"hash": {"HKEYS", "HLEN", "HPTTL", "FIELDS"}, "set": {"SMEMBERS", "SCARD", "SPTTL", "MEMBERS"},
	"zset": {"ZRANGE", "ZCARD", "ZPTTL", "MEMBERS"}, "list": {"LRANGE", "LLEN", "LPTTL", "INDEXES"},
}

// lookAtItems looks whether what is listed is what is counted, and lives.
func (p *ownPlay) lookAtItems(key string) error {
	typ, err := p.ask("TYPE", key)
	if err != nil {
		return err
	}
	x, ok := ownItems[typ.Str]
	if !ok {
		return nil
	}
	list := []string{x.all, key}
	if typ.Str == "zset" || typ.Str == "list" {
		list = append(list, "0", "-1")
	}
	v, err := p.ask(list...)
	if err != nil {
		return err
	}
	count, err := p.ask(x.count, key)
	if err != nil {
		return err
	}
	if int(count.Int) != len(v.Elems) || count.Int == 0 {
		return fmt.Errorf("count: %s %s is %d, %s shows %d", x.count, key, count.Int, x.all, len(v.Elems))
	}
	ttls := []string{x.ttl, key, x.word, strconv.Itoa(len(v.Elems))}
	for i, e := range v.Elems {
		if typ.Str == "list" {
			e.Str = strconv.Itoa(i)
		}
		ttls = append(ttls, e.Str)
	}
	if v, err = p.ask(ttls...); err != nil {
		return err
	}
	for i, e := range v.Elems {
		if e.Int < -1 {
			return fmt.Errorf("item ttl: %s of %q in %q, which %s shows, is %d", x.ttl, ttls[4+i], key, x.all, e.Int)
		}
	}
	return nil
}

// lookAtRules verifies that the rules recorded all that is counted as expired.
func (p *ownPlay) lookAtRules() error {
	tx := p.e.DB.BeginAll(0)
	fired := int64(0)
	for i := range databases {
		tx.Select(i)
		for _, r := range tx.Rules() {
			if r.Name != "told" {
				continue
			}
			if r.Suspended != 0 {
				tx.Commit()
				return fmt.Errorf("rule: %d entries were not written (%s)", r.Suspended, r.Why)
			}
			fired += r.Fired
		}
	}
	tx.Commit()
	// A SET whose deadline has passed counts as an expiry too, but no rule records it.
	c := p.e.DB.Stats()
	if lags := c.LagOf(); fired != lags.Count || fired > c.Expired+c.ExpiredItems {
		return fmt.Errorf("told: the rules were told of %d, %d keys and %d items have expired, %d with a delay", fired, c.Expired,
			c.ExpiredItems, lags.Count)
	}
	return nil
}
