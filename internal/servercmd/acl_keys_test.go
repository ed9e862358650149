package servercmd_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

// secretWorld is a server on which the user ann may use the keys ok*, and may not use the keys no*. The
// values of the latter are the world's secret.
type secretWorld struct {
	svc   *session.Service
	admin *session.Session
}

func newSecretWorld(t *testing.T, rules ...string) *secretWorld {
	t.Helper()
	var hooks session.Hooks
	db := engine.Open(engine.Options{Clock: clock.NewManual(transcript.Start), Shards: 2, Hooks: &hooks})
	t.Cleanup(db.Close)
	cfg, err := config.Load([]string{"--enable-debug-command", "yes"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &secretWorld{}
	if w.svc, err = session.NewService(session.Options{DB: db, Table: servercmd.Table, Config: cfg}, &hooks); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.svc.Close)
	w.admin = newSession(t, w.svc)
	if got := do(w.admin, append([]string{"ACL", "SETUSER", "ann", "on", "nopass", "+@all", "&*"}, rules...)...); got != "OK" {
		t.Fatal(got)
	}
	return w
}

// ann may use okKeys, but not noKeys.
var okKeys, noKeys = []string{"ok1", "ok2", "ok3"}, []string{"no1", "no2", "no3"}

// fillings make a key of a kind, by the group whose commands use it. K stands for the key, TEXT for its
// content, and NUM for a number that follows from the content.
var fillings = []struct {
	group    command.Group
	requests [][]string
}{
	{command.GroupString, [][]string{{"SET", "K", "TEXT"}}},
	{command.GroupString, [][]string{{"SET", "K", "NUM"}}},
	{command.GroupList, [][]string{{"RPUSH", "K", "1", "TEXT"}}},
	{command.GroupSet, [][]string{{"SADD", "K", "1", "TEXT"}}},
	{command.GroupSortedSet, [][]string{{"ZADD", "K", "NUM", "m", "2", "TEXT"}}},
	{command.GroupHash, [][]string{{"HSET", "K", "a", "NUM", "b", "TEXT"}}},
	{command.GroupStream, [][]string{{"XADD", "K", "1-1", "a", "TEXT"}, {"XGROUP", "CREATE", "K", "a", "0"},
		{"XREADGROUP", "GROUP", "a", "b", "STREAMS", "K", ">"}}},
	{command.GroupQueue, [][]string{{"DQ.ADD", "K", "a", "TEXT"}}},
	{command.GroupLock, [][]string{{"LOCK.ACQUIRE", "K", "TEXT", "100000"}}},
	{command.GroupSemaphore, [][]string{{"SEM.ACQUIRE", "K", "TEXT", "3", "100000"}}},
	{command.GroupBloom, [][]string{{"BF.ADD", "K", "TEXT"}}},
	{command.GroupHyperLogLog, [][]string{{"PFADD", "K", "TEXT"}}},
	{command.GroupLimiter, [][]string{{"RL.TAKE", "K", "1000", "100000", "COST", "NUM"}}},
	{command.GroupGeo, [][]string{{"GEOADD", "K", "13.4", "52", "m", "14", "52", "TEXT"}}},
	{command.GroupBitmap, [][]string{{"SET", "K", "TEXT"}}},
}

// kinds draws the kind of each key: mostly the kind that the command uses.
func kinds(rng *rand.Rand, spec *command.Spec) (of []int) {
	fitting := rng.IntN(len(fillings))
	for i, f := range fillings {
		if f.group == spec.Group && rng.IntN(2) == 0 {
			fitting = i
		}
	}
	for n := range len(okKeys) + len(noKeys) {
		switch rng.IntN(4) {
		case 0:
			of = append(of, rng.IntN(len(fillings)))
		case 1:
			of = append(of, n/len(okKeys)) // a string if the user may not read it
		default:
			of = append(of, fitting)
		}
	}
	return of
}

// roundsOf returns the number of requests for a command: more if its keys, or its use of them, depend on
// further arguments.
func roundsOf(spec *command.Spec) int {
	if spec.Keys != nil || spec.KeyOptions != nil {
		return 200
	}
	return 16
}

// named are arguments without which few requests would find anything.
func named() map[string][]string {
	return map[string][]string{"group": {"a", "a", "x"}, "min-idle-time": {"0"}, "id": {"1-1", "a"}, "start": {"0", "-"}, "member": {"m", "a"},
		"ifeq-value": {"secret", "a"}, "ifne-value": {"secret", "a"}, "value": {"secret", "115", "v"}, "radius": {"100000"},
		"longitude": {"13"}, "latitude": {"52"}}
}

// refill makes all keys again, each of its kind. secret is the content of the keys that ann may not use; the
// others have "a".
func (w *secretWorld) refill(t *testing.T, kinds []int, secret string) {
	t.Helper()
	do(w.admin, "FLUSHALL")
	for n, key := range append(slices.Clone(okKeys), noKeys...) {
		text := "a"
		if strings.HasPrefix(key, "no") {
			text = secret
		}
		for _, request := range fillings[kinds[n]].requests {
			words := slices.Clone(request)
			for i, word := range words {
				switch word {
				case "K":
					words[i] = key
				case "TEXT":
					words[i] = text
				case "NUM":
					words[i] = fmt.Sprint(text[0])
				}
			}
			if v := w.admin.Do(services.Bytes(words)...); v.Kind == resp.KindError {
				t.Fatalf("%q: %s", words, v.Str)
			}
		}
	}
}

// dumps returns the values of some keys, and whether they exist.
func (w *secretWorld) dumps(keys []string) (all string) {
	for _, k := range keys {
		all += fmt.Sprintf("%q %q %q\n", k, do(w.admin, "DUMP", k), do(w.admin, "PEXPIRETIME", k))
	}
	return all
}

// asAnn runs a request as ann in a new session; a command that would wait does not.
func (w *secretWorld) asAnn(t *testing.T, args [][]byte) string {
	c := w.svc.NewSession(nil)
	defer c.Closed(nil)
	if got := do(c, "AUTH", "ann", "x"); got != "OK" {
		t.Fatal(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := c.DoContext(ctx, args...)
	if err != nil {
		return "waits"
	}
	return strings.Join(transcript.Lines(v), "\n")
}

// sayNothing are the commands whose replies the comparison leaves out, with the reason.
var sayNothing = map[string]string{
	"migrate":      "it speaks to other servers; its keys are compared with redis-server's",
	"debug|object": "the length in a dump is a size, and a dump is compressed",
}

// drawn reports whether a request asks for a random deadline.
func drawn(args [][]byte) bool {
	return slices.ContainsFunc(args, func(a []byte) bool { return command.EqualFold(a, "JITTER") })
}

// A user's commands read and change only the keys that the user may use. For every command with keys, with
// random requests that fit its grammar and damaged ones, the replies do not depend on the content of the
// other keys, and those keys do not change. So the checked keys are the used keys.
func TestNoCommandUsesAKeyThatWasNotChecked(t *testing.T) {
	tier.Sequential(t)
	one, two := newSecretWorld(t, "~ok*"), newSecretWorld(t, "~ok*")
	pools := command.Pools{
		Keys:     append(slices.Clone(okKeys), "no1", "no2", "no3", "ok1", "ok2"),
		Patterns: []string{"no*", "no1", "*", "ok*", "no*->a", "#"},
		Strings: []string{"a", "b", "m", "no1", "ok1", "1", "2", "-", "+", "0", "1-1", "$", ">", "STORE", "STOREDIST", "KEYS",
			"STREAMS", "BY", "GET", "TO",
			"DEADLETTER", "LEFT", "MIN"},
		Ints: []int64{0, 1, 2, 3, -1, 5, 1000}, Doubles: []float64{0.001, 1}, Times: []int64{1 << 42}, Most: 2, Named: named(),
	}
	table := one.svc.Table()
	ran, refused := 0, 0
	for id := range table.Len() {
		spec := table.Spec(id)
		if spec.Run == nil || !spec.HasKeys() || sayNothing[spec.Name] != "" {
			continue
		}
		rng := spec.Source(17)
		for round := range roundsOf(spec) {
			args := command.Generate(rng, spec, &pools)
			if round%3 == 2 {
				args = command.Damage(rng, args, 1+strings.Count(spec.Name, "|"))
			}
			of := kinds(rng, spec)
			one.refill(t, of, "secret")
			two.refill(t, of, "hidden, and longer")
			before := one.dumps(noKeys)
			mine, theirs := one.asAnn(t, slices.Clone(args)), two.asAnn(t, slices.Clone(args))
			ran++
			if strings.HasPrefix(mine, "(error) NOPERM") {
				refused++
			}
			if got := one.dumps(noKeys); got != before {
				t.Errorf("%q changed keys that the user may not use:\n%s\nwas\n%s", args, got, before)
			}
			if slices.Contains(spec.Tips, "nondeterministic_output") {
				continue
			}
			if mine != theirs {
				t.Errorf("the reply to %q depends on keys that the user may not use:\n%s\n%s", args, mine, theirs)
			}
			if a, b := one.dumps(okKeys), two.dumps(okKeys); a != b && !spec.Has(command.Timed) && !drawn(args) {
				t.Errorf("what %q stores depends on keys that the user may not use:\n%s\n%s", args, a, b)
			}
		}
	}
	if refused < ran/5 || refused > ran*9/10 {
		t.Errorf("%d of %d requests were refused: the test has little to say", refused, ran)
	}
}

// A user that may write to keys but not read them learns nothing about their content, except their type,
// their sizes, and whether an item that the user names exists, which counts as metadata, as in Redis.
func TestNoReplyTellsAWriterOfValues(t *testing.T) {
	tier.Sequential(t)
	one, two := newSecretWorld(t, "~ok*", "%W~no*"), newSecretWorld(t, "~ok*", "%W~no*")
	pools := command.Pools{
		Keys: noKeys, Patterns: []string{"no*"}, Strings: []string{"a", "b", "m", "x", "0", "-", "+", "1-1", "1-1", "0", "$", ">"},
		Ints: []int64{0, 1, 2, 3, -1, 5, 1000}, Doubles: []float64{1.5}, Times: []int64{1 << 42}, Most: 2, Named: named(),
	}
	table := one.svc.Table()
	allowed := 0
	for id := range table.Len() {
		spec := table.Spec(id)
		if spec.Run == nil || !spec.HasKeys() || sayNothing[spec.Name] != "" || slices.Contains(spec.Tips, "nondeterministic_output") &&
			!strings.HasPrefix(spec.Name, "x") {
			continue
		}
		rng := spec.Source(18)
		for range roundsOf(spec) {
			args := command.Generate(rng, spec, &pools)
			of := kinds(rng, spec)
			one.refill(t, of, "secret")
			two.refill(t, of, "hidden") // of the same length
			mine, theirs := one.asAnn(t, slices.Clone(args)), two.asAnn(t, slices.Clone(args))
			if !strings.HasPrefix(mine, "(error)") {
				allowed++
			}
			if mine != theirs {
				t.Errorf("the reply to %q tells what the key holds:\n%s\n%s", args, mine, theirs)
			}
		}
	}
	if allowed < 300 {
		t.Errorf("%d requests were allowed: the test has little to say", allowed)
	}
}
