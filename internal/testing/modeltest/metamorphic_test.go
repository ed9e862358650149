package modeltest

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"github.com/ebbdb/ebb/resp"
)

var (
	metaTime = flag.Duration("meta.time", 0, "how long metamorphic runs go on; 0: a fixed number of rounds")
	metaSeed = flag.Uint64("meta.seed", 0, "the seed of the first sequence; 0: see package draw")
	metaLen  = flag.Int("meta.len", 200, "operations in a sequence")
	metaMany = flag.Int("meta.variants", 6, "variants that are run of each sequence; 0 for all")
)

// What a sequence does beside requests, in the place of a request.
const (
	markJob   = "#job"   // a rewrite or a save begins
	markAgain = "#again" // the data goes through its files
)

// metaRounds is the number of sequences without a flag.
const metaRounds = 6

// The same requests give the same keys, values, deadlines of all levels, rules,
// functions and tokens, with however many shards, in this process or over the wire,
// while files are rewritten and saved, and through whatever files the data goes.
func TestTheSameRequestsGiveTheSameData(t *testing.T) {
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	from := draw.Seed(t, *metaSeed)
	sequences, runs, faults := 0, 0, 0
	for round := range draw.Rounds(*metaTime, metaRounds) {
		if faults >= mostFaults {
			break
		}
		seed := from + uint64(round)
		ops := metaSequence(seed, table)
		first := variant{shards: 16, again: stays, job: "none", small: seed%3 == 0}
		sequences++
		for _, v := range drawVariants(seed, first.small) {
			if slides(seed) && !v.again.exact() {
				continue
			}
			runs++
			err := compareRuns(t, ops, first, v)
			if err == nil {
				continue
			}
			faults++
			why := err
			ops := Shrink(ops, 300, func(ops []Op) bool {
				err := compareRuns(t, ops, first, v)
				return err != nil && sameFault(err, why)
			})
			if again := compareRuns(t, ops, first, v); again != nil {
				err = again
			}
			t.Errorf("-meta.seed %d, %v: %v\n%s", seed, v, err, showOps(ops))
			break
		}
	}
	t.Logf("%d sequences, %d runs beside the first", sequences, runs)
}

// drawVariants returns the variants for a sequence. A variant over the wire has no
// blocking commands: there the test cannot know when a client waits.
func drawVariants(seed uint64, small bool) (all []variant) {
	for _, shards := range []int{16, 64} {
		for _, wire := range []bool{false, true} {
			for _, how := range []again{stays, restarts, dies, saves, reloads, replays} {
				for _, job := range []string{"none", "save", "rewrite", "both"} {
					if wire && !spares(seed) || how == saves && (job == "rewrite" || job == "both") {
						continue
					}
					all = append(all, variant{shards: shards, wire: wire, again: how, job: job, always: wire && seed%4 == 0, small: small})
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(seed, 5))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if *metaMany > 0 {
		all = all[:*metaMany]
	}
	return all
}

// spares reports whether the sequence of a seed has nothing that waits.
func spares(seed uint64) bool { return seed%2 == 0 }

// slides reports whether the sequence of a seed has sliding deadlines. Append-only
// the files do not record each move: after them a key may go earlier by a tenth of its
// span, and so all that comes after may be different.
func slides(seed uint64) bool { return seed%5 == 0 }

// exact reports whether the way keeps sliding deadlines to the millisecond.
func (a again) exact() bool { return a == stays || a == saves || a == reloads }

// metaSequence makes a sequence whose outcome is certain.
func metaSequence(seed uint64, table *command.Table) []Op {
	g := NewOwnGenerator(seed, table)
	g.Told = true
	rng := rand.New(rand.NewPCG(seed, 3))
	var ops []Op
	for _, o := range g.Sequence(*metaLen) {
		if o.Args != nil && (!certain(table, o.Args, !spares(seed)) || !slides(seed) && slices.Contains(o.Args, "SLIDE")) {
			continue
		}
		ops = append(ops, o)
		if rng.IntN(30) == 0 {
			ops = append(ops, Op{Conn: g.conn(), Args: functionRequest(rng)})
		}
	}
	third := len(ops) / 3
	mark := func(name string) []Op { return []Op{{Args: []string{name}}, {}} }
	return slices.Concat(ops[:third], mark(markJob), ops[third:third+third/2], mark(markAgain), ops[third+third/2:2*third], mark(markJob),
		ops[2*third:], mark(markAgain))
}

// functionRequest makes a request about functions.
func functionRequest(rng *rand.Rand) []string {
	lib := []string{"one", "two"}[rng.IntN(2)]
	code := fmt.Sprintf("#!lua name=%s\nredis.register_function('f%s', function(keys, args) return redis.call('HINCRBY', keys[1], "+
		"args[1], %d) end)", lib, lib, rng.IntN(9))
	switch rng.IntN(8) {
	case 0:
		return []string{"FUNCTION", "DELETE", lib}
	case 1:
		return []string{"FUNCTION", "FLUSH"}
	case 2, 3, 4:
		return []string{"FCALL", "f" + lib, "1", "h1", letters[rng.IntN(len(letters))]}
	}
	return []string{"FUNCTION", "LOAD", "REPLACE", code}
}

// uncertain are words of requests whose effects chance, or the state of a connection
// or of the process, decides.
var uncertain = []string{"SPOP", "ANY", "JITTER", "CLIENT", "DEBUG", "CONFIG", "BY", "~", "BZTSPOP", "BZTSMOVE"}

func certain(table *command.Table, args []string, mayWait bool) bool {
	args = request(args)
	if len(args[0]) > 3 && strings.EqualFold(args[0][len(args[0])-3:], "due") && slices.Contains(args, "BLOCK") {
		return false // which of two shards wakes first in a millisecond is not certain
	}
	for _, a := range args {
		if slices.Contains(uncertain, strings.ToUpper(a)) {
			return false
		}
	}
	s := table.LookupFull(strings.ToLower(args[0]))
	if len(args) > 1 && s == nil {
		s = table.LookupFull(strings.ToLower(args[0] + "|" + args[1]))
	}
	return mayWait || s == nil || !s.Has(command.Blocking)
}

// metaPlay is a sequence being played in a world.
type metaPlay struct {
	w      *metaWorld
	memory Memory
	asked  map[int][][]string // requests without a reply, by connection
	words  map[string]bool    // of all requests, keys among them
	token  int64              // the newest
	looks  []look
}

// look is the state of a world at one moment.
type look struct {
	at    int // the operation
	now   int64
	data  map[place]item
	rules [][]engine.Rule
	other []string // functions
}

// compareRuns plays a sequence in two ways, and returns what differs.
func compareRuns(t *testing.T, ops []Op, first, second variant) error {
	want, err := playMeta(t, ops, first)
	if err != nil {
		return fmt.Errorf("first: %w", err)
	}
	got, err := playMeta(t, ops, second)
	if err != nil {
		return fmt.Errorf("second: %w", err)
	}
	for i, w := range want {
		if diff := w.differ(got[i]); len(diff) > 0 {
			return fmt.Errorf("differ: after operation %d:\n  %s", w.at, strings.Join(diff, "\n  "))
		}
	}
	return nil
}

func (l look) differ(got look) []string {
	diff := differ(l.data, got.data, l.now)
	if l.now != got.now {
		diff = append(diff, fmt.Sprintf("the time is %d, want %d", got.now, l.now))
	}
	for i, rules := range l.rules {
		if !slices.Equal(got.rules[i], rules) {
			diff = append(diff, fmt.Sprintf("db%d: rules %+v, want %+v", i, got.rules[i], rules))
		}
	}
	if !slices.Equal(l.other, got.other) {
		diff = append(diff, fmt.Sprintf("functions %q, want %q", got.other, l.other))
	}
	return diff
}

// playMeta plays a sequence, and returns what there was whenever it was looked.
func playMeta(t *testing.T, ops []Op, v variant) (looks []look, err error) {
	temp, err := os.MkdirTemp("", "ebb-meta-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	w, err := openWorld(temp, v)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	p := &metaPlay{w: w, memory: Memory{}, asked: map[int][][]string{}, words: map[string]bool{}}
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("panic: %v\n%s", x, debug.Stack()) // locks may be held
			return
		}
		if e := w.close(); err == nil && e != nil {
			err = fmt.Errorf("close: %w", e)
		}
	}()
	for i := range databases {
		if err := w.do("SELECT", strconv.Itoa(i)); err != nil {
			return nil, err
		}
		if err := w.do(toldRule...); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(ops); {
		n, err := p.step(i, ops[i:])
		if err != nil {
			return nil, fmt.Errorf("%w\nat operation %d, %s", err, i, strings.TrimSpace(showOps(ops[i:i+1])))
		}
		i += n
	}
	return p.looks, nil
}

// step does the first of the operations, or some of them at once.
func (p *metaPlay) step(i int, ops []Op) (n int, err error) {
	switch o := ops[0]; {
	case o.Wait > 0:
		if err := p.w.e.Advance(o.Wait); err != nil {
			return 1, err
		}
		return 1, p.drain()
	case o.Hangup:
		delete(p.asked, o.Conn)
		return 1, p.w.hangup(o.Conn)
	case o.Args == nil:
		return 1, p.look(i)
	case o.Args[0] == markJob:
		return 1, p.w.begin()
	case o.Args[0] == markAgain:
		clear(p.asked)
		return 1, p.w.goThrough()
	case p.w.variant.wire:
		return p.send(ops)
	default:
		return 1, p.request(o)
	}
}

// send sends requests of one connection that know nothing of one another.
func (p *metaPlay) send(ops []Op) (int, error) {
	var requests [][]string
	for _, o := range ops {
		if o.Args == nil || o.Conn != ops[0].Conn || strings.HasPrefix(o.Args[0], "#") {
			break
		}
		asksBack := slices.ContainsFunc(o.Args, func(a string) bool {
			return strings.HasPrefix(a, "$") && !strings.HasPrefix(a, "$ms") && !strings.HasPrefix(a, "$s")
		})
		if asksBack && len(requests) > 0 {
			break
		}
		requests = append(requests, p.resolve(o.Args))
	}
	replies, err := p.w.overWire(ops[0].Conn, requests)
	for i, v := range replies {
		if err == nil {
			err = p.learn(requests[i], v)
		}
	}
	return len(requests), err
}

func (p *metaPlay) resolve(args []string) []string {
	args = p.memory.Resolve(args, p.w.clock.Micros()/1000)
	for _, a := range args {
		p.words[a] = true
	}
	return args
}

// learn takes from a reply what later requests need, and looks whether tokens grow.
func (p *metaPlay) learn(args []string, v resp.Value) error {
	p.memory.Learn(args, v)
	if strings.EqualFold(request(args)[0], "LOCK.ACQUIRE") && v.Int > 0 {
		if v.Int < p.token {
			return fmt.Errorf("token: %d after %d", v.Int, p.token)
		}
		p.token = v.Int
	}
	return nil
}

func (p *metaPlay) request(o Op) error {
	if len(p.asked[o.Conn]) > 0 {
		return nil // it waits
	}
	args := p.resolve(o.Args)
	p.asked[o.Conn] = [][]string{args}
	if err := p.w.e.Send(o.Conn, args); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return p.drain()
}

// drain reads the replies that are there.
func (p *metaPlay) drain() error {
	for conn, asked := range p.asked {
		for len(asked) > 0 {
			v, ok := p.w.e.Next(conn)
			if !ok {
				break
			}
			if v.Kind == resp.KindPush {
				continue
			}
			if err := p.learn(asked[0], v); err != nil {
				return err
			}
			asked = asked[1:]
		}
		p.asked[conn] = asked
	}
	return nil
}

// look notes what there is. Everything that is dead is looked up first, and so gone.
func (p *metaPlay) look(at int) error {
	for i := range databases {
		if err := p.w.do("SELECT", strconv.Itoa(i)); err != nil {
			return err
		}
		if err := p.w.do(append([]string{"EXISTS", "told"}, slices.Sorted(maps.Keys(p.words))...)...); err != nil {
			return err
		}
	}
	if err := p.w.check(); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	tx := p.w.db.BeginAll(0)
	l := look{at: at, rules: rulesOf(tx)}
	tx.Commit()
	l.data, l.now = dump(p.w.db, false, 0)
	for where, it := range l.data {
		if where.key == "told" && it.kind == engine.Stream {
			it.value = unordered(it.value)
			l.data[where] = it
		}
	}
	v, err := p.w.ask("FUNCTION", "LIST", "WITHCODE")
	if err != nil {
		return err
	}
	for _, e := range v.Elems {
		l.other = append(l.other, fmt.Sprint(e))
	}
	sort.Strings(l.other)
	p.looks = append(p.looks, l)
	return nil
}

// unordered is the contents of a rule's stream, in which what expires in one
// millisecond is in no order.
func unordered(stream string) string {
	entries := strings.Split(stream, "; {")
	for i, e := range entries {
		if i == 0 {
			continue
		}
		ms, rest, _ := strings.Cut(e, " ")
		_, fields, _ := strings.Cut(rest, "}")
		entries[i] = ms + fields
	}
	sort.Strings(entries[1:])
	return strings.Join(entries, "; ")
}

// TestTokensGrowThroughFiles has tokens far ahead of the clock, and the lock that had
// the newest one gone, so that only the files can restore it.
func TestTokensGrowThroughFiles(t *testing.T) {
	for _, v := range []variant{
		{again: restarts, job: "none"}, {again: restarts, job: "rewrite"}, {again: dies, job: "none"}, {again: dies, job: "both"},
		{again: saves, job: "none"}, {again: reloads, job: "none"}, {again: replays, job: "rewrite"},
	} {
		v.shards = 16
		t.Run(v.String(), func(t *testing.T) {
			w, err := openWorld(t.TempDir(), v)
			if err != nil {
				t.Fatal(err)
			}
			defer w.close()
			tx := w.db.BeginAll(0)
			tx.SawToken(tx.Now() + 1000*3600e6)
			tx.Commit()
			newest := int64(0)
			for range 4 {
				held, err := w.ask("LOCK.ACQUIRE", "k", "me", "60000")
				if err != nil || held.Int <= newest {
					t.Fatalf("the token %d after %d, %v", held.Int, newest, err)
				}
				newest = held.Int
				if err := errors.Join(w.do("LOCK.RELEASE", "k", "me", strconv.FormatInt(newest, 10)), w.begin(), w.awaitJobs(),
					w.goThrough()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
