package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// secretBench returns a console with hidden values, and keys whose values contain a secret.
func secretBench(t *testing.T, secret string) *bench {
	b := newBench(t, Options{HideValues: true})
	b.hide(secret)
	return b
}

// hide gives the server new data: keys whose values contain a secret.
func (b *bench) hide(secret string) {
	b.admin("FLUSHALL")
	for _, line := range []string{"SET s", "HSET h f", "RPUSH l a b", "RPUSH l", "XADD x 1-1 f", "DQ.ADD q j", "PFADD p", "RPUSH el"} {
		if err := b.admin(append(strings.Fields(line), secret)...).Err(); err != nil {
			b.t.Fatal(line, err)
		}
	}
	b.admin("XGROUP", "CREATE", "x", "g", "0")
	b.admin("LPEXPIRE", "el", "900000", "INDEXES", "1", "0")
}

// secrets are pairs of values of the same length and the same encoding.
var secrets = [...][2]string{{"sesame", "\xd1.!wyz"}, {"123456", "234567"}}

// guesser has two servers whose values differ, and sends both the same random requests.
type guesser struct {
	servers [2]*bench
	seed    uint64
	rounds  int // for each pair of secrets
	ask     func(b *bench, argv [][]byte) string
	skips   func(spec *command.Spec, argv [][]byte) bool // requests that it must not send
	payload string                                       // a value for RESTORE
	sent    bool                                         // whether it has sent requests of the last command
	worked  bool                                         // whether one of them had a reply without an error
}

func newGuesser(t *testing.T, rounds int) *guesser {
	g := &guesser{servers: [2]*bench{secretBench(t, "x"), secretBench(t, "y")}, seed: draw.Seed(t, 0), rounds: rounds, ask: askPastTheGate}
	g.payload = g.servers[0].admin("DUMP", "s").Str
	return g
}

// pools returns the arguments of random requests: mostly keys of the command's type, and the secrets.
func (g *guesser) pools(spec *command.Spec, round int, pair [2]string) *command.Pools {
	key := map[command.Group]string{command.GroupString: "s", command.GroupBitmap: "s", command.GroupHash: "h", command.GroupList: "l",
		command.GroupStream: "x", command.GroupQueue: "q", command.GroupHyperLogLog: "p"}[spec.Group]
	if all := []string{"s", "h", "l", "x", "q", "p"}; key == "" {
		key = all[round%len(all)]
	}
	return &command.Pools{Keys: []string{key, key, "d"}, Strings: []string{"f", "a", "v", pair[0], pair[1]},
		Patterns: []string{"*", "nosort", pair[0]}, Ints: []int64{0, 1, -1, 900}, Doubles: []float64{1}, Times: []int64{4_000_000_000},
		Named: map[string][]string{"timeout": {"1"}, "timeout-ms": {"1"}, "milliseconds": {"900"}, "group": {"g"}, "groupname": {"g"},
			"consumer": {"c"}, "consumername": {"c"},
			"id": {"1-1", "j", "0"}, "start": {"-", "0"}, "end": {"+", "-1"}, "lastid": {"9-9"}, "min": {"-", "0"}, "max": {"+", "1"},
			"serialized-value": {g.payload}}}
}

// telling returns a request of a command whose reply or effect reveals which server has which value, or nil
// if the guesser finds none.
func (g *guesser) telling(spec *command.Spec) [][]byte {
	g.sent, g.worked = false, false
	for _, pair := range secrets {
		rng, stale := spec.Source(g.seed), true
		for round := range g.rounds {
			argv := command.Generate(rng, spec, g.pools(spec, round, pair))
			if g.skips != nil && g.skips(spec, argv) {
				continue
			}
			g.sent = true
			var answers [2]string
			for i, b := range g.servers {
				if stale {
					b.hide(pair[i])
				}
				if answers[i] = g.ask(b, argv); spec.Has(command.Write) {
					answers[i] += b.lengths()
				}
			}
			stale = spec.Has(command.Write)
			if answers[0] != answers[1] {
				return argv
			}
			g.worked = g.worked || !strings.Contains(answers[0], `[{"e":"`)
		}
	}
	return nil
}

// lengths returns all data with lengths in place of values.
func (b *bench) lengths() (all string) {
	for _, line := range []string{"GET s", "HGETALL h", "LRANGE l 0 -1", "XRANGE x - +", "DQ.PEEK q COUNT 9", "GET d", "LRANGE d 0 -1"} {
		all += string(mustJSON(b.t, replyJSON(b.admin(strings.Fields(line)...), true)))
	}
	return all
}

// askPastTheGate runs a request in a transaction, where no command waits, without the gate, and hides the
// values of the reply.
func askPastTheGate(b *bench, argv [][]byte) string {
	line := make([]string, len(argv))
	for i, a := range argv {
		line[i] = string(a)
	}
	b.admin("MULTI")
	b.admin(line...)
	return string(mustJSON(b.t, replyJSON(b.admin("EXEC"), true)))
}

// askByTheConsole runs a request in the same way, by the API.
func askByTheConsole(b *bench, argv [][]byte) string {
	words := make([]blob, len(argv))
	for i, a := range argv {
		words[i] = bytesOf(string(a))
	}
	confirm := b.mustType(b.specOf(argv), argv)
	status, answer := b.ask("POST", "api/batch", fmt.Sprintf(`{"db":0,"cmds":[%s],"atomic":true,"confirm":%q}`, mustJSON(b.t, words), confirm))
	if status == http.StatusForbidden {
		b.t.Errorf("%q: %d %s", argv, status, answer)
	}
	return answer
}

// TestNoAnswerDependsOnAHiddenValue sends random requests of each command that a console with hidden values
// allows to two servers whose values differ. A command that fails here needs the flag Reveals.
func TestNoAnswerDependsOnAHiddenValue(t *testing.T) {
	one, other := secretBench(t, secrets[0][0]), secretBench(t, secrets[0][1])
	for _, path := range []string{"api/soon", "api/queue?state=all&k=" + url("q"), "api/stream?k=" + url("x")} {
		_, body := one.ask("GET", path, "")
		if _, got := other.ask("GET", path, ""); got != body {
			t.Errorf("%s: %s, and for another value: %s", path, body, got)
		}
	}
	g := newGuesser(t, 0)
	g.skips = tells
	var idle []string
	for id := range one.svc.Table().Len() {
		spec := one.svc.Table().Spec(id)
		if spec.Run == nil || !spec.HasKeys() || spec.Client&command.Stateful != 0 {
			continue
		}
		g.rounds, g.ask = 20, askPastTheGate
		argv := g.telling(spec)
		if g.sent && !g.worked {
			idle = append(idle, spec.Name)
		}
		if argv == nil {
			g.rounds, g.ask = 2, askByTheConsole
			argv = g.telling(spec)
		}
		if argv != nil {
			t.Errorf("%q tells which value the server has: does %s need the flag Reveals?", argv, spec.Name)
		}
	}
	if len(idle) > 30 {
		t.Errorf("all requests of %q had errors: the pools have no arguments for them", idle)
	}
}

// TestACommandThatRevealsValuesIsFound shows that such requests find commands with the flag Reveals. They do
// not find commands that put their result into a reply or a key whose value is hidden, such as DUMP.
func TestACommandThatRevealsValuesIsFound(t *testing.T) {
	g := newGuesser(t, 60)
	found, hidden := 0, []string{}
	for id := range g.servers[0].svc.Table().Len() {
		spec := g.servers[0].svc.Table().Spec(id)
		if !spec.Has(command.Reveals) || spec.Has(command.Slow) { // MIGRATE contacts another server
			continue
		}
		if g.telling(spec) != nil {
			found++
		} else {
			hidden = append(hidden, spec.Name)
		}
	}
	if found < 12 {
		t.Errorf("of the commands that reveal values %d are found, and not %q", found, hidden)
	}
}

func TestWhatDependsOnAHiddenValueIsRefused(t *testing.T) {
	b := secretBench(t, "sesame")
	refused := func(line string) {
		t.Helper()
		if status, body := b.do(line); status != http.StatusForbidden || !strings.Contains(body, "HIDDEN") {
			t.Errorf("%s: %d %s", line, status, body)
		}
	}
	for _, line := range []string{
		"SET s x IFEQ sesame", "SET s x KEEPTTL ifne sesame", "SET s x IFDEQ 0", "SET s x IFDNE 0", "DELEX s IFEQ sesame",
		"BITOP AND d s m", "INCRBY s 1", "LPOS l sesame", "LREM l 0 sesame", "LINSERT l BEFORE sesame x",
		"SORT k BY nosort GET * STORE d", "SORT_RO l ALPHA", "DUMP s", "MIGRATE 127.0.0.1 1 s 0 10", "DIGEST s",
		"DEBUG DIGEST-VALUE s", "DQ.ADD q * sesame UNIQUE 9000", "EXPIRY RULE SET r MATCH * LEVEL ELEMENT TO QUEUE q",
		"EVAL return{ok=redis.call('get','s')} 0", "EVAL_RO return(1) 0", "FCALL f 0", "PFCOUNT s",
	} {
		refused(line)
	}
	known := 0
	for id := range b.svc.Table().Len() {
		s := b.svc.Table().Spec(id)
		if !s.Has(command.Reveals) || s.Lacks != nil {
			continue
		}
		for line := range strings.Lines(s.Examples) {
			line, ok := strings.CutPrefix(strings.TrimSpace(line), "> ")
			if spec := b.specOf(argv(line)); ok && spec == s && s.Client == 0 {
				known++
				refused(line)
			}
		}
	}
	if known < 20 {
		t.Errorf("%d examples of commands that are refused", known)
	}
}

// A mark depends on the state of its key: a guess that replaces a value gets another mark, even if it is
// right.
func TestAMarkTellsNothingOfAHiddenValue(t *testing.T) {
	b := newBench(t, Options{HideValues: true})
	b.admin("HSET", "h", "f", "same", "g", "same")
	b.admin("RPUSH", "l", "same", "same")
	if b.seen("h", "t:f") == b.seen("h", "t:g") || b.seen("l", "i:0") == b.seen("l", "i:1") {
		t.Error("equal values have equal marks")
	}
	before := b.seen("l", "i:0")
	if before == "" || b.seen("l", "i:0") != before {
		t.Error("the mark of a value that stays has changed")
	}
	b.admin("LSET", "l", "0", "same")
	if b.seen("l", "i:0") == before {
		t.Error("a guess has the mark of the value")
	}
	status, body := b.ifSeen("LINDEX l 0", b.seen("l", "i:0"), "LPEXPIRE l 5000 INDEXES 1 0")
	if status != 200 || b.admin("LPTTL", "l", "INDEXES", "1", "0").Elems[0].Int != 5000 {
		t.Errorf("%d %s", status, body)
	}
}

func TestHiddenValuesAreHidden(t *testing.T) {
	b := newBench(t, Options{HideValues: true})
	b.admin("CONFIG", "SET", "slowlog-log-slower-than", "0")
	b.admin("FUNCTION", "LOAD", "#!lua name=l\nlocal word = 'sesame' redis.register_function('f', function() return word end)")
	for _, line := range []string{
		"SET k sesame", "GET k", "HSET h f sesame", "HGETALL h", "LPUSH l sesame", "LRANGE l 0 -1", "SLOWLOG GET 100", "CONFIG GET maxmemory",
		"XADD s 1-1 f sesame", "XRANGE s - +", "GETRANGE k 0 -1", "FUNCTION LIST WITHCODE", "FUNCTION DUMP",
	} {
		status, body := b.do(line)
		if status != 200 || strings.Contains(body, "sesame") || strings.HasPrefix(line, "CONFIG") != strings.Contains(body, "maxmemory") {
			t.Errorf("%s: %d %s", line, status, body)
		}
		if line == "FUNCTION DUMP" && strings.Contains(body, `"b":`) {
			t.Errorf("%s: %s", line, body)
		}
	}
	if status, body := b.do("STRLEN k"); status != 200 || !strings.Contains(body, `"i":"6"`) {
		t.Errorf("a length: %d %s", status, body)
	}
	if status, body := b.ask("GET", "api/audit", ""); status != 200 || strings.Contains(body, "sesame") || !strings.Contains(body, `"t":"k"`) {
		t.Errorf("%d %s", status, body)
	}
	if _, body := b.ask("GET", "api/key?k="+url("k"), ""); strings.Contains(body, "digest") {
		t.Errorf("the digest of a hidden value: %s", body)
	}
	var me struct{ Need map[string]string }
	if b.get("api/me", &me); fmt.Sprint(me.Need) != "map[key.dump:http-console-values yes]" {
		t.Errorf("what the console refuses: %v", me.Need)
	}
}
