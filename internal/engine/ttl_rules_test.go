package engine

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// setRule sets a rule that records all levels in a stream.
func setRule(t testing.TB, db *DB, name, match, stream string) {
	t.Helper()
	do(db, func(tx *Tx) {
		if err := tx.SetRule(Rule{Name: name, Match: match, Levels: AllLevels, Stream: stream, MaxLen: 1 << 40, Exact: true, MaxValue: 10}); err != nil {
			t.Fatal(err)
		}
	})
}

// told returns the contents of a stream's entries: level, key and item.
func told(tx *Tx, stream string) (entries []string) {
	_, _ = tx.XRange([]byte(stream), XRange{Last: MaxStreamID}, func(e *StreamEntry) {
		x := map[string]string{}
		for range e.Fields() {
			name, value := e.Field()
			x[string(name)] = value.String()
		}
		entries = append(entries, strings.TrimSpace(x["level"]+" "+x["key"]+" "+x["item"]))
	})
	return entries
}

// putTimed puts a field with a deadline in ms into a hash, and logs only the field.
func putTimed(tx *Tx, key, field string, deadline int64) {
	h, err := tx.container([]byte(key), Hash)
	if err == nil {
		_, err = tx.putField(&h, []byte(key), []byte(field), []byte("v"), deadline, false)
	}
	if err != nil {
		panic(err)
	}
	tx.date(&h)
}

// missed returns the number of entries of the database's rules that were written late.
func missed(tx *Tx) (n int64) {
	for _, r := range tx.Rules() {
		n += r.Missed + r.Suspended
	}
	return n
}

// checkTold verifies that every expiration has exactly one entry, in the stream all.
func checkTold(t *testing.T, db *DB) {
	t.Helper()
	if err := db.Check(); err != nil {
		t.Error(err)
	}
	s := db.Stats()
	do(db, func(tx *Tx) {
		all := told(tx, "all")
		if n := int64(len(all)); n != s.Expired+s.ExpiredItems || n == 0 {
			t.Errorf("%d entries about %d keys and %d items", n, s.Expired, s.ExpiredItems)
		}
		if n := missed(tx); n != 0 {
			t.Errorf("%d entries came late, or not at all", n)
		}
		if n, err := tx.QueueLen([]byte("jobs")); n != len(all) || err != nil {
			t.Errorf("%d jobs for %d entries: %v", n, len(all), err)
		}
		slices.Sort(all)
		if n := len(slices.Compact(all)); n != len(all) {
			t.Errorf("of %d entries %d are different", len(all), n)
		}
	})
}

// storm is a set of goroutines that write, read, rename and copy keys that expire soon. No expiring key or
// item reuses a name.
type storm struct {
	db     *DB
	expiry func(tx *Tx, rng *rand.Rand) int64
	names  atomic.Int64
}

func (s *storm) name() string { return fmt.Sprint("k", s.names.Add(1)) }

// client returns a function that performs n operations, many of them on keys of its own.
func (s *storm) client(seed uint64) (run func(n int)) {
	rng := rand.New(rand.NewPCG(seed, 0))
	recent := make([][]byte, 32)
	for i := range recent {
		recent[i] = []byte(s.name())
	}
	return func(n int) { s.run(rng, recent, n) }
}

func (s *storm) run(rng *rand.Rand, recent [][]byte, n int) {
	pick := func() []byte { return recent[rng.IntN(len(recent))] }
	for range n {
		key := []byte(s.name())
		a, b := pick(), pick()
		tx := s.db.Begin(0, key, a, b)
		switch rng.IntN(8) {
		case 0, 1, 2:
			_, _, _ = tx.Set(key, []byte("value"), SetOptions{Deadline: s.expiry(tx, rng)}, nil)
		case 3, 4:
			for i := range rng.IntN(6) {
				putTimed(tx, string(key), fmt.Sprint("f", i), s.expiry(tx, rng))
			}
			if rng.IntN(2) == 0 {
				putTimed(tx, string(key), "stays", 0)
			}
			if rng.IntN(3) == 0 {
				tx.Expire(key, s.expiry(tx, rng), 0, 0)
			}
		case 5:
			_, _ = tx.Rename(a, key, false)
		case 6: // a copy would record the same name twice, so the key is moved
			if ok, _ := tx.Copy(a, key, 0, false); ok {
				tx.Del(a)
			}
		default:
			_ = tx.Exists(a)
			_ = tx.Type(b)
			key = a
		}
		tx.Commit()
		recent[rng.IntN(len(recent))] = key
	}
}

// open opens an engine with rules for a storm.
func (s *storm) open(t *testing.T, o Options) {
	s.db = Open(o)
	t.Cleanup(s.db.Close)
	setRule(t, s.db, "all", "*", "all")
	setRule(t, s.db, "odd", "*[13579]", "odd")
	setRule(t, s.db, "even", "*[02468]", "even")
	setQueueRule(t, s.db, Rule{Name: "job", Match: "*", Queue: "jobs", Priority: 3, Delay: 5})
}

// setQueueRule sets a rule of all levels that makes jobs.
func setQueueRule(t testing.TB, db *DB, r Rule) {
	t.Helper()
	r.ToQueue, r.Levels = true, AllLevels
	do(db, func(tx *Tx) {
		if err := tx.SetRule(r); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEveryExpiryHasOneEntryWhileReclaimersAndClientsRace(t *testing.T) {
	s := &storm{expiry: func(tx *Tx, rng *rand.Rand) int64 { return tx.Millis() + 1 + rng.Int64N(4) }}
	s.open(t, Options{Shards: 16, Reclaimers: 3, RecordEffects: true})
	var loops, clients sync.WaitGroup
	var over atomic.Bool
	for i := range 3 {
		r := s.db.Reclaimer(i, func() {})
		loops.Go(func() {
			for !over.Load() {
				r.Run()
				runtime.Gosched()
			}
		})
	}
	for i := range 4 {
		clients.Go(func() { s.client(uint64(i))(1000) })
	}
	clients.Wait()
	for left := int64(1); left > 0; runtime.Gosched() { // the engine uses the system's clock
		do(s.db, func(tx *Tx) { _, left = tx.Backlog() })
	}
	over.Store(true)
	loops.Wait()
	checkTold(t, s.db)
	checkUnits(t, s.db.Drain())
}

func TestEveryExpiryHasOneEntryUnderAManualClock(t *testing.T) {
	for seed := range uint64(4) {
		clock := clock.NewManual(epoch)
		s := &storm{expiry: func(tx *Tx, rng *rand.Rand) int64 { return tx.Millis() + 1 + rng.Int64N(300) }}
		s.open(t, Options{Shards: 8, Reclaimers: 2, Clock: clock, RecordEffects: true})
		s.db.SetActiveExpiry(seed%2 == 0)
		run := s.client(seed)
		for i := range 30 {
			run(50)
			clock.Advance(time.Duration(i%7) * 30 * time.Millisecond)
		}
		s.db.SetActiveExpiry(true)
		clock.Advance(time.Second)
		checkTold(t, s.db)
		checkUnits(t, s.db.Drain())
	}
}

// checkUnits verifies that an entry is logged with the removal that it records.
func checkUnits(t *testing.T, effects []Effect) {
	t.Helper()
	gone := map[string]uint64{}
	n := 0
	for _, e := range effects {
		args := make([]string, len(e.Args))
		for i, a := range e.Args {
			args[i] = string(a)
		}
		switch args[0] {
		case "DEL":
			for _, k := range args[1:] {
				gone["key "+k] = e.Seq
			}
		case "HDEL":
			for _, f := range args[2:] {
				gone["field "+args[1]+" "+f] = e.Seq
			}
		case "XADD", "DQ.ADD":
			x := map[string]string{}
			for i := 3; i < len(args) && args[0] == "XADD"; i += 2 {
				x[args[i]] = args[i+1]
			}
			if args[0] == "DQ.ADD" {
				if err := json.Unmarshal([]byte(args[3]), &x); err != nil && len(x) == 0 { // its instants are numbers
					t.Error(err)
				}
			}
			what := strings.TrimSpace(x["level"] + " " + x["key"] + " " + x["item"])
			if n++; gone[what] != e.Seq {
				t.Errorf("%s went in transaction %d, and was told in %d", what, gone[what], e.Seq)
			}
		}
	}
	if n == 0 {
		t.Error("no entry was logged")
	}
}

// apart returns a name whose key is in a shard other than those of others.
func apart(db *DB, prefix string, others ...string) string {
	for i := 0; ; i++ {
		name := fmt.Sprint(prefix, i)
		s, _ := db.shardOf([]byte(name))
		if !slices.ContainsFunc(others, func(o string) bool { x, _ := db.shardOf([]byte(o)); return x == s }) {
			return name
		}
	}
}

func TestAServedWaiterMayMeetADeadKey(t *testing.T) {
	l := newLines(t)
	l.db.SetActiveExpiry(false)
	clock := l.db.clock.(*clock.Manual)
	from := "from"
	to := apart(l.db, "to", from)
	stream := apart(l.db, "s", from, to)
	setRule(t, l.db, "r", "*", stream)
	l.wait("one", to, from)
	for _, key := range []string{from, to} {
		set(t, l.db, key, "x", 10*time.Millisecond)
	}
	clock.Advance(11 * time.Millisecond)
	l.held(t, func() { l.push(from, "a") }, to)
	l.runDelayed()
	do(l.db, func(tx *Tx) {
		if got := told(tx, stream); !slices.Equal(got, []string{"key " + from, "key " + to}) || missed(tx) != 0 || len(l.got) != 1 {
			t.Error(got, missed(tx), l.got)
		}
	})
}

func TestWhatIsDeadIsNotEvictedBeforeItIsTold(t *testing.T) {
	tier.Sequential(t)
	db, clock, _ := open(t, Options{Shards: 4})
	db.SetActiveExpiry(false)
	setRule(t, db, "r", "*", "s")
	for i := range 1000 {
		set(t, db, fmt.Sprint(i), strings.Repeat("x", 100), 10*time.Millisecond)
	}
	clock.Advance(11 * time.Millisecond)
	db.SetEviction(Eviction{Keys: EvictVolatile})
	db.LimitMemory(1)
	db.MakeRoom(time.Second)
	if s := db.Stats(); s.Evicted != 0 {
		t.Error(s.Evicted, "dead keys were evicted")
	}
	db.LimitMemory(0)
	db.SetActiveExpiry(true)
	clock.Advance(time.Millisecond)
	do(db, func(tx *Tx) {
		if n := len(told(tx, "s")); n != 1000 || missed(tx) != 0 {
			t.Error(n, "entries", missed(tx), "missed")
		}
	})
}

func TestEntryWhoseStreamIsNotHeldComesInATransactionOfItsOwn(t *testing.T) {
	l := newLines(t)
	db, clock := l.db, l.db.clock.(*clock.Manual)
	db.SetActiveExpiry(false)
	stream := apart(db, "s", "k", "l")
	setRule(t, db, "r", "*", stream)
	expired := func(key string) {
		set(t, db, key, "x", 10*time.Millisecond)
		clock.Advance(11 * time.Millisecond)
		tx := db.txs.Get().(*Tx)
		s, _ := db.shardOf([]byte(key))
		tx.begin(0, 1<<s, true) // no real caller does this
		tx.Exists([]byte(key))
		tx.Commit()
	}
	expired("k")
	l.held(t, func() { expired("l") }, stream)
	if len(l.runs) != 1 {
		t.Fatalf("%d transactions left their entries to another goroutine", len(l.runs))
	}
	l.runDelayed()
	do(db, func(tx *Tx) {
		if got := told(tx, stream); !slices.Equal(got, []string{"key k", "key l"}) || missed(tx) != 2 {
			t.Error(got, missed(tx))
		}
	})
}

func TestEntriesOfTheSameIDAreJobsOfTheirOwn(t *testing.T) {
	db, clock, _ := open(t, Options{Shards: 4})
	setQueueRule(t, db, Rule{Name: "r", Match: "*", Queue: "q", MaxValue: -1})
	const equal = 1000
	deadline := clock.Micros()/1000 + 10
	do(db, func(tx *Tx) {
		for range equal {
			if _, err := tx.LPushEx([]byte("l"), Tail, [][]byte{[]byte("e")}, deadline, 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	clock.Advance(20 * time.Millisecond)
	do(db, func(tx *Tx) {
		base := fmt.Sprint("r:l:e:", deadline)
		for _, id := range []string{base, base + ":2", fmt.Sprint(base, ":", equal)} {
			if _, ok, err := tx.QueueGet([]byte("q"), []byte(id)); !ok || err != nil {
				t.Error(id, "is missing", err)
			}
		}
		if n, _ := tx.QueueLen([]byte("q")); n != equal || missed(tx) != 0 {
			t.Errorf("%d jobs for %d elements, %d missed", n, equal, missed(tx))
		}
	})
}

func TestAnIDThatIsFreeIsFoundAmongManyThatAreTaken(t *testing.T) {
	for _, gaps := range []int{0, 3} {
		taken := map[string]bool{}
		looks := 0
		for i := range 3000 {
			id := string(freeID([]byte("a"), func(id []byte) bool { looks++; return taken[string(id)] }))
			if taken[id] {
				t.Fatal(id, "is taken")
			}
			if taken[id] = true; gaps > 0 && i%gaps == 0 {
				delete(taken, id)
			}
		}
		if looks > 3000*30 {
			t.Error(looks, "looks for 3000 ids")
		}
	}
}

func TestJobOfARuleWhoseQueueIsNotHeldComesInATransactionOfItsOwn(t *testing.T) {
	l := newLines(t)
	db, clock := l.db, l.db.clock.(*clock.Manual)
	db.SetActiveExpiry(false)
	queue := apart(db, "q", "k")
	setQueueRule(t, db, Rule{Name: "r", Match: "*", Queue: queue, MaxValue: -1})
	set(t, db, "k", "x", 10*time.Millisecond)
	clock.Advance(11 * time.Millisecond)
	tx := db.txs.Get().(*Tx)
	s, _ := db.shardOf([]byte("k"))
	tx.begin(0, 1<<s, true) // no real caller does this
	tx.Exists([]byte("k"))
	tx.Commit()
	do(db, func(tx *Tx) {
		if n, _ := tx.QueueLen([]byte(queue)); n != 1 || missed(tx) != 1 {
			t.Error(n, missed(tx))
		}
	})
}

func TestRulesCostNothingWhereThereAreNone(t *testing.T) {
	db, _, _ := open(t, Options{})
	set(t, db, "k", "v", time.Hour)
	key, tx := []byte("k"), db.NewTx()
	look := func() {
		tx.LockKey(0, key)
		_ = tx.Exists(key)
		tx.Unlock()
	}
	if n := testing.AllocsPerRun(100, look); n != 0 {
		t.Error(n, "allocations without rules")
	}
	setRule(t, db, "r", "*", "s")
	if n := testing.AllocsPerRun(100, look); n != 0 {
		t.Error(n, "allocations with a rule")
	}
	keys := [][]byte{key, []byte("other")}
	if n := testing.AllocsPerRun(100, func() { tx.Lock(0, keys); tx.Unlock() }); n != 0 {
		t.Error(n, "allocations with a rule and two keys")
	}
}

func TestForecastIsTheSumOfWhatIsThere(t *testing.T) {
	db, clock, _ := open(t, Options{Shards: 4})
	rng := rand.New(rand.NewPCG(1, 2))
	var deadlines []int64
	now := clock.Micros() / 1000
	add := func(tx *Tx) int64 {
		d := now + rng.Int64N(20_000)
		deadlines = append(deadlines, d)
		return d
	}
	do(db, func(tx *Tx) {
		for i := range 5000 {
			_, _, _ = tx.Set([]byte(fmt.Sprint("k", i)), nil, SetOptions{Deadline: add(tx)}, nil)
		}
		for i := range 3000 { // a large one and small ones
			putTimed(tx, "h", fmt.Sprint(i), add(tx))
			putTimed(tx, fmt.Sprint("h", i%100), fmt.Sprint(i), add(tx))
		}
	})
	want := make([]int, 10)
	for _, d := range deadlines {
		if i := (d - now) / 1000; i < 10 {
			want[i]++
		}
	}
	next, ok := db.NewTx().NextDue()
	if least := slices.Min(deadlines); !ok || next.Deadline != least {
		t.Error(next, ok, least)
	}
	for _, match := range []func([]byte) bool{nil, func([]byte) bool { return true }} {
		if f := db.NewTx().Forecast(10_000, 10, match); !slices.Equal(f.Counts, want) {
			t.Errorf("%v\nwant %v", f.Counts, want)
		}
	}
}
