package commands_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

// The tests of this file are generated from the Specs: each command must behave as its Spec describes. The
// exemptions below give their reasons.

// vectors returns the number of random requests that each test sends of each command. It is large enough that
// each option of SET occurs some ten times.
func vectors() int {
	if tier.Short() {
		return 15
	}
	return 60
}

// notGenerated lists the commands that get no random arguments.
var notGenerated = map[string]string{
	"shutdown":       "ends the service",
	"debug|sleep":    "takes real time",
	"debug|populate": "fills the memory that was asked for",
	"client|pause":   "stops the connection",
	"client|reply":   "takes the replies away",
	"client|kill":    "may kill the connection that asks",
	"quit":           "closes the connection",
	"monitor":        "never ends",
	"config|set":     "may switch off what the other requests need",
	"config|rewrite": "writes a file",
	"migrate":        "connects to other servers",
}

// acceptsMore lists the commands that accept more than their grammars describe.
var acceptsMore = map[string]string{
	"pfmerge": "sources may be left out", "geopos": "members may be left out", "geohash": "members may be left out",
	"zincrby":       "the increment is a number with a fraction; the grammar is Redis's, and says integer",
	"zrangebyscore": "an empty bound is 0", "zrevrangebyscore": "an empty bound is 0", "zcount": "an empty bound is 0",
	"zremrangebyscore":  "an empty bound is 0",
	"georadiusbymember": "without the key the rest is not looked at", "georadiusbymember_ro": "without the key the rest is not looked at",
	"geosearch": "ANY may stand apart from COUNT, as in Redis", "geosearchstore": "as geosearch", "georadius": "as geosearch",
	"getex":  "without the key the expire time is not read",
	"hello":  "an option's values may look like options",
	"lindex": "where there is no list, the index is not read",
	"scan":   "cursors are unsigned, and the grammar knows integers only",
	"hscan":  "as scan; and where there is no key, options are not read",
	"zscan":  "as hscan",
	"sscan":  "as hscan",
	"lolwut": "what follows is for the artist",
}

// refusesMore lists the commands that reply with a syntax error to requests that their grammars match.
var refusesMore = map[string]string{
	"bitop":        "an operation that is none",
	"scan":         "a COUNT below 1",
	"hscan":        "a COUNT below 1",
	"zscan":        "a COUNT below 1",
	"sscan":        "a COUNT below 1",
	"memory|usage": "SAMPLES below 0",
	"client|list":  "TYPE and ID exclude each other",

	"zunion": "as many weights as keys", "zinter": "as zunion", "zunionstore": "as zunion", "zinterstore": "as zunion",

	"restore":        "IDLETIME and FREQ exclude each other",
	"restore-asking": "as restore",
}

// arityAliases lists the commands with a different error text for a wrong number of arguments.
var arityAliases = map[string]string{"exec": "ends the transaction, and says so"}

// writesWhenReading are the read commands that leave effects.
var writesWhenReading = map[string]string{"getfresh": "with LEASE it elects a client"}

// takesAnyType lists the commands of a type that overwrite keys of other types.
var takesAnyType = map[string]string{
	"stale": "a key of another type does not count", "unlease": "a key of another type has no lease",
	"ebb.fresh": "a client may not call it", "ebb.lease": "a client may not call it",
	"set": "overwrites", "mset": "overwrites", "msetnx": "only looks whether keys are there", "msetex": "overwrites",
	"setex": "overwrites", "psetex": "overwrites", "setnx": "only looks whether the key is there", "mget": "other types read as nil",
	"bitop": "overwrites its destination", "delex": "without a condition it deletes keys of every type", "lcs": "has another text for it",
}

// bench is an engine with a few keys; each of its connections serves one request.
type bench struct {
	*transcript.Engine
	t    *testing.T
	spec *command.Spec
	rng  *rand.Rand
	conn int
}

func newBench(t *testing.T, s *command.Spec) *bench {
	t.Helper()
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return &bench{Engine: e, t: t, spec: s, rng: s.Source(1)}
}

// seed sets the keys that Generate draws from.
func (b *bench) seed() {
	b.t.Helper()
	for i, args := range [][]string{{"REPLICAOF", "NO", "ONE"}, {"SET", "k1", "10"}, {"SET", "k2", "a longer value, with blanks"},
		{"SET", "{t}1", "3.5", "PX", "100000"}} {
		if v := b.do(args...); v.Kind == resp.KindError {
			b.t.Fatal(i, v)
		}
	}
	b.DB.Drain()
}

// do sends a request on a new connection and returns the first reply.
func (b *bench) do(args ...string) resp.Value {
	b.t.Helper()
	v, err := b.try(args)
	if err != nil {
		b.t.Fatalf("%s: %v", transcript.Line(args), err)
	}
	return v
}

// try sends a request on a new connection. It returns a panic as an error.
func (b *bench) try(args []string) (resp.Value, error) {
	b.conn++
	if err := b.Hangup(b.conn - 1); err != nil {
		return resp.Value{}, err
	}
	return b.Do(b.conn, args...)
}

func words(args [][]byte) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = string(a)
	}
	return out
}

// eachCommand runs a test of every command that may get random requests.
func eachCommand(t *testing.T, f func(b *bench)) {
	table := services.Table(t)
	for id := range table.Len() {
		s := table.Spec(id)
		if s.Run == nil || notGenerated[s.Name] != "" || !tier.Share(id) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) { f(newBench(t, s)) })
	}
}

func TestAWrongNumberOfArgumentsIsRefused(t *testing.T) {
	eachCommand(t, func(b *bench) {
		name := strings.Split(b.spec.Name, "|")
		for n := len(name); n < len(name)+8; n++ {
			args := append([]string(nil), name...)
			for len(args) < n {
				args = append(args, "1")
			}
			if b.spec.ArityOK(services.Bytes(args)) {
				continue
			}
			v := b.do(args...)
			want := command.WrongArity(b.spec).Error()
			if v.Kind != resp.KindError || v.Str != want && arityAliases[b.spec.Name] == "" {
				b.t.Errorf("%s\n got  %v\n want %s", transcript.Line(args), v, want)
			}
		}
	})
}

// A request with one key, as dispatch finds it, has that key and no others.
func TestTheOnlyKeyOfARequestIsWhereItsKeysAre(t *testing.T) {
	eachCommand(t, func(b *bench) {
		for range vectors() {
			args := command.Generate(b.rng, b.spec, nil)
			keys, err := b.spec.AppendKeys(nil, args)
			if at := b.spec.OneKey(args); at > 0 && b.spec.HasKeys() && (err != nil || len(keys) != 1 || keys[0].Pos != at) {
				b.t.Errorf("%s: the only key is argument %d, and the keys are %v, %v", transcript.Line(words(args)), at, keys, err)
			}
		}
	})
	table := services.Table(t)
	for _, x := range []struct {
		request string
		at      int
	}{{"GET k", 1}, {"DEL k", 1}, {"DEL k l", 0}, {"XGROUP DESTROY k g", 2}, {"BLPOP k 1", 1}, {"BLPOP k l 1", 0}, {"EVAL s 1 k", 0},
		{"SPUBLISH c m", 1}, {"SSUBSCRIBE c", 0}, {"PING", 0}} {
		args := services.Bytes(strings.Fields(x.request))
		if at := mustFind(t, table, args).OneKey(args); at != x.at {
			t.Errorf("%s: the only key is argument %d, want %d", x.request, at, x.at)
		}
	}
}

func TestWhatTheGrammarMatchesIsNoSyntaxError(t *testing.T) {
	eachCommand(t, func(b *bench) {
		for range vectors() {
			b.seed()
			args := words(command.Generate(b.rng, b.spec, nil))
			v, err := b.trySafely(args)
			switch {
			case err != nil:
				b.t.Fatalf("%s: %v", transcript.Line(args), err)
			case v.Kind == resp.KindError && (v.Str == command.ErrSyntax.Error() || strings.HasPrefix(v.Str, "ERR wrong number")) &&
				refusesMore[b.spec.Name] == "":
				b.t.Fatalf("%s\n got %v", transcript.Line(args), v)
			}
		}
	})
}

// trySafely is like try, but accepts that the command does not reply.
func (b *bench) trySafely(args []string) (resp.Value, error) {
	v, err := b.try(args)
	if err != nil && !strings.HasPrefix(err.Error(), "panic") {
		err = nil // some commands about messages send no reply
	}
	return v, err
}

func TestWhatTheGrammarRefusesChangesNothing(t *testing.T) {
	eachCommand(t, func(b *bench) {
		b.seed()
		for range vectors() {
			raw, ok := command.GenerateInvalid(b.rng, b.spec, nil)
			if !ok || b.spec.Match(onlyOnce(raw)) == nil {
				continue
			}
			args := words(raw)
			v, err := b.trySafely(args)
			switch {
			case err != nil:
				b.t.Fatalf("%s: %v", transcript.Line(args), err)
			case v.Kind != resp.KindError && acceptsMore[b.spec.Name] == "":
				b.t.Fatalf("%s\n the grammar says %v, but it replies %v", transcript.Line(args), b.spec.Match(raw), v)
			}
			if fx := b.DB.Drain(); len(fx) > 0 && v.Kind == resp.KindError {
				b.t.Fatalf("%s\n replies %v, but has effects: %q", transcript.Line(args), v, fx[0].Args)
			}
		}
	})
}

// onlyOnce drops each argument that repeats the one before it, because commands accept an option twice.
func onlyOnce(args [][]byte) [][]byte {
	return slices.CompactFunc(slices.Clone(args), func(a, b []byte) bool { return string(a) == string(b) })
}

// The engine panics when a transaction accesses a key whose shard it did not lock. So each request that
// succeeds proves that the server found all its keys.
func TestEffectsTouchTheKeysThatGetKeysFinds(t *testing.T) {
	tier.Sequential(t)
	table := services.Table(t)
	eachCommand(t, func(b *bench) {
		if b.spec.Has(command.AllKeys) {
			return
		}
		for range vectors() {
			b.seed()
			raw := command.Generate(b.rng, b.spec, nil)
			args := words(raw)
			keys := keysOf(b.t, b.spec, raw)
			if _, err := b.trySafely(args); err != nil {
				b.t.Fatalf("%s, keys %q: %v", transcript.Line(args), keys, err)
			}
			for _, e := range b.DB.Drain() {
				if table.Lookup(e.Args[0]) == nil {
					e.Args[0] = bytes.TrimPrefix(e.Args[0], []byte(engine.OwnPrefix))
				}
				for _, k := range keysOf(b.t, mustFind(b.t, table, e.Args), e.Args) {
					if !slices.Contains(keys, k) {
						b.t.Fatalf("%s has keys %q and the effect %q", transcript.Line(args), keys, e.Args)
					}
				}
			}
			b.compareGetKeys(args, keys)
		}
	})
}

// compareGetKeys compares COMMAND GETKEYS with the keys that dispatch locks.
func (b *bench) compareGetKeys(args, keys []string) {
	v := b.do(append([]string{"COMMAND", "GETKEYS"}, args...)...)
	if len(keys) == 0 && v.Kind == resp.KindError {
		return
	}
	got, err := v.AsStrings()
	if err != nil || !slices.Equal(got, keys) {
		b.t.Fatalf("COMMAND GETKEYS %s\n got  %v\n want %q", transcript.Line(args), v, keys)
	}
}

func mustFind(t *testing.T, table *command.Table, args [][]byte) *command.Spec {
	t.Helper()
	s, err := table.Find(args)
	if err != nil {
		t.Fatalf("the effect %q is not a command: %v", args, err)
	}
	return s
}

func keysOf(t *testing.T, s *command.Spec, args [][]byte) (keys []string) {
	t.Helper()
	refs, err := s.AppendKeys(nil, args)
	if err != nil && s.HasKeys() {
		t.Errorf("%q: no keys are found: %v", args, err)
	}
	for _, r := range refs {
		keys = append(keys, string(args[r.Pos]))
	}
	return keys
}

func TestReadingHasNoEffects(t *testing.T) {
	eachCommand(t, func(b *bench) {
		if b.spec.Has(command.Write) || writesWhenReading[b.spec.Name] != "" || b.spec.Group == command.GroupTransactions {
			return
		}
		b.seed()
		for range vectors() {
			args := words(command.Generate(b.rng, b.spec, nil))
			if _, err := b.trySafely(args); err != nil {
				b.t.Fatalf("%s: %v", transcript.Line(args), err)
			}
			if fx := b.DB.Drain(); len(fx) > 0 {
				b.t.Fatalf("%s has the effect %q", transcript.Line(args), fx[0].Args)
			}
		}
	})
}

// memoryMatters lists the commands that need memory only in some of their requests.
var memoryMatters = map[string]string{"dq.config": "it needs memory where there is no queue"}

func TestCommandsThatNeedMemoryAreRefusedWithoutIt(t *testing.T) {
	eachCommand(t, func(b *bench) {
		if memoryMatters[b.spec.Name] != "" {
			return
		}
		b.seed()
		b.DB.LimitMemory(1)
		for range 10 {
			args := words(command.Generate(b.rng, b.spec, nil))
			v, err := b.trySafely(args)
			if err != nil {
				b.t.Fatalf("%s: %v", transcript.Line(args), err)
			}
			refused := v.Kind == resp.KindError && v.Str == command.ErrOOM.Error()
			if refused != b.spec.Has(command.DenyOOM) {
				b.t.Fatalf("%s\n got %v, and the flag is %v", transcript.Line(args), v, b.spec.Has(command.DenyOOM))
			}
			b.DB.LimitMemory(1) // publishes the used memory
		}
		for _, e := range b.DB.Drain() {
			if b.spec.Has(command.DenyOOM) {
				b.t.Fatalf("was refused, but has the effect %q", e.Args)
			}
		}
	})
}

// makers create a key of each type, for the group of commands that accept it.
var makers = []struct {
	groups []command.Group
	args   []string
}{
	{[]command.Group{command.GroupString, command.GroupBitmap, command.GroupHyperLogLog}, []string{"SET", "KEY", "v"}},
	{[]command.Group{command.GroupList}, []string{"RPUSH", "KEY", "v"}},
	{[]command.Group{command.GroupHash}, []string{"HSET", "KEY", "f", "v"}},
	{[]command.Group{command.GroupSet}, []string{"SADD", "KEY", "m"}},
	{[]command.Group{command.GroupSortedSet, command.GroupGeo}, []string{"ZADD", "KEY", "1", "m"}},
	{[]command.Group{command.GroupStream}, []string{"XADD", "KEY", "*", "f", "v"}},
}

// takesSets lists the commands on sorted sets that accept sets as well.
var takesSets = map[string]bool{"zunion": true, "zinter": true, "zdiff": true, "zintercard": true, "zunionstore": true,
	"zinterstore": true, "zdiffstore": true}

func TestAKeyOfAnotherTypeIsRefused(t *testing.T) {
	tier.Sequential(t)
	table := services.Table(t)
	var there []int
	var absent []string
	for i, m := range makers {
		if table.Lookup([]byte(m.args[0])) != nil {
			there = append(there, i)
		} else {
			absent = append(absent, m.args[0])
		}
	}
	checked := 0
	eachCommand(t, func(b *bench) {
		if !b.spec.HasKeys() || takesAnyType[b.spec.Name] != "" {
			return
		}
		typed := slices.ContainsFunc(makers, func(m struct {
			groups []command.Group
			args   []string
		}) bool {
			return slices.Contains(m.groups, b.spec.Group)
		})
		if !typed {
			return
		}
		for _, i := range there {
			if !slices.Contains(makers[i].groups, b.spec.Group) && !(takesSets[b.spec.Name] && makers[i].args[0] == "SADD") {
				b.wrongType(makers[i].args)
				checked++
			}
		}
	})
	t.Logf("%d pairs of command and type were checked; types that are not there yet: %v", checked, absent)
}

// wrongType sends requests whose keys all have the type that a maker creates.
func (b *bench) wrongType(maker []string) {
	pools := command.Pools{Keys: []string{"KEY"}}
	if b.spec.Group == command.GroupStream { // the grammar has ids as strings, and the command parses them before it looks up the key
		pools.Named = map[string][]string{"id": {"1-1"}, "start": {"-"}, "end": {"+"}, "last-id": {"9-9"}, "min-idle-time": {"0"}}
	}
	if b.spec.Group == command.GroupSortedSet { // the same is true of the bounds
		pools.Named = map[string][]string{"start": {"0"}, "stop": {"1"}, "min": {"0"}, "max": {"1"}}
		if strings.Contains(b.spec.Name, "lex") {
			pools.Named = map[string][]string{"min": {"-"}, "max": {"+"}}
		}
	}
	refused := false
	for i := 0; i < 20 || !refused && i < 200; i++ {
		b.do("FLUSHALL")
		b.do(maker...)
		b.DB.Drain()
		args := words(command.Generate(b.rng, b.spec, &pools))
		v, err := b.trySafely(args)
		if err != nil {
			b.t.Fatalf("%s: %v", transcript.Line(args), err)
		}
		if v.Kind != resp.KindError {
			b.t.Errorf("after %s, %s replies %v", transcript.Line(maker), transcript.Line(args), v)
		}
		refused = refused || v.Str == command.ErrWrongType.Error()
		if fx := b.DB.Drain(); len(fx) > 0 {
			b.t.Errorf("%s has the effect %q", transcript.Line(args), fx[0].Args)
		}
	}
	if !refused {
		b.t.Errorf("never replied %v to %s", command.ErrWrongType, transcript.Line(maker))
	}
}
