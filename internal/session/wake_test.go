package session_test

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/reactor"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// waking is one scenario: client 1 runs setup, client 2 begins to wait, client 1 runs acts. Then client 2
// must have received gets, and k and out must hold left. Arguments of a request are separated by spaces, or
// by bars if one of them contains a space.
type waking struct {
	name        string
	setup, acts []string
	wait        string
	gets, left  string
	ours        bool // redis-server lacks a command, or does not wake the client
}

// still is the result of a client whose command still waits.
const still = "(waits)"

// play runs a scenario and returns what client 2 received, and the data afterwards.
func (w *waking) play(s transcript.Target) (gets, left string, err error) {
	ask := func(args ...string) (v resp.Value) {
		if err != nil {
			return v
		}
		if err = s.Send(1, args); err != nil {
			return v
		}
		v, ok := s.Next(1)
		if !ok {
			err = fmt.Errorf("%q has no reply", args)
		} else if v.Err() != nil {
			err = fmt.Errorf("%q: %s", args, v.Str)
		}
		return v
	}
	waits := func() bool { return strings.Contains(ask("INFO", "clients").Str, "blocked_clients:1\r\n") }
	run := func(line string) {
		args := wordsOf(line)
		switch args[0] {
		case "@restore": // SOURCE OPTIONS: RESTORE of k
			payload := ask("DUMP", args[1]).Str
			ask(append([]string{"RESTORE", "k", "0", payload}, args[2:]...)...)
		case "@pass": // expired data is then removed by the commands that meet it
			if err == nil {
				err = s.Advance(20 * time.Millisecond)
			}
			ask("EXISTS", "k")
		default:
			ask(args...)
		}
	}

	ask("FLUSHALL")
	ask("FUNCTION", "FLUSH")
	for _, line := range w.setup {
		run(line)
	}
	ask("SELECT", "0")
	if err != nil {
		return "", "", err
	}
	if err := s.Send(2, strings.Fields(w.wait)); err != nil {
		return "", "", err
	}
	if a, ok := s.(transcript.Arriver); ok {
		if err := a.Arrive(); err != nil {
			return "", "", err
		}
	}
	if !waits() {
		v, _ := s.Next(2)
		return "", "", errors.Join(err, fmt.Errorf("the command does not wait: %s", inline(v)))
	}
	for _, line := range w.acts {
		run(line)
	}
	if gets = still; !waits() {
		v, ok := s.Next(2)
		if !ok {
			err = errors.Join(err, errors.New("the client neither waits nor has a reply"))
		}
		gets = inline(v)
	}
	for _, k := range []string{"k", "out"} {
		switch ask("TYPE", k).Str {
		case "list":
			left += inline(ask("LRANGE", k, "0", "-1"))
		case "zset":
			left += inline(ask("ZRANGE", k, "0", "-1"))
		}
	}
	return gets, left, err
}

func wordsOf(line string) []string {
	if strings.Contains(line, "|") {
		return strings.Split(line, "|")
	}
	return strings.Fields(line)
}

// inline writes a reply on a line.
func inline(v resp.Value) string {
	switch {
	case (v.Err() != nil):
		return "-" + v.Str
	case v.IsNull():
		return "nil"
	case v.Kind == resp.KindInt:
		return fmt.Sprint(v.Int)
	case v.Kind != resp.KindArray:
		return v.Str
	}
	all := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		all[i] = inline(e)
	}
	return "[" + strings.Join(all, " ") + "]"
}

// waiters are the commands that wait for a kind of value, the reply that each gets for the only element of
// the value, and the data afterwards.
var waiters = map[string][][3]string{
	"list": {{"BLPOP k 0", "[k a]"}, {"BRPOP other k 0", "[k a]"}, {"BLMPOP 0 2 k other LEFT COUNT 3", "[k [a]]"},
		{"BLMOVE k out LEFT LEFT 0", "a", "[a]"}, {"BRPOPLPUSH k out 0", "a", "[a]"},
		{"BLMOVEM k out LEFT LEFT 0 EXACTLY 1 OBO", "[a]", "[a]"}, {"BLMOVEM k out LEFT LEFT 0 COUNT 3 BULK", "[a]", "[a]"}},
	"zset": {{"BZPOPMIN k 0", "[k a 1]"}, {"BZPOPMAX other k 0", "[k a 1]"}, {"BZMPOP 0 2 k other MIN COUNT 3", "[k [[a 1]]]"},
		{"ZPOPDUE 2 other k BLOCK 0", "[k [[a 1]]]"},
		{"ZMOVEDUE k out LEFT COUNT 3 BLOCK 0", "[[a 1]]", "[a]"}, {"BZTSPOP k 1 0", "[k [[a 1]]]"}},
	"stream": {{"XREAD BLOCK 0 STREAMS k 0", "[[k [[5-1 [f v]]]]]"}, {"XREAD BLOCK 0 STREAMS k $", "[[k [[5-1 [f v]]]]]"},
		{"XREAD BLOCK 0 STREAMS other k $ 4-9", "[[k [[5-1 [f v]]]]]"}},
	"queue": {{"DQ.POP k BLOCK 0", "[[a p 1 "}},
}

// contents make a value with the one element at src; only these commands make it at k.
var contents = map[string]string{"list": "RPUSH src a", "zset": "ZADD src 1 a", "stream": "XADD src 5-1 f v", "queue": "DQ.ADD src a p"}

// ours reports whether no server of the tests has the command of a request.
func ours(request string) bool {
	name, _, _ := strings.Cut(request, " ")
	return slices.Contains([]string{"DQ.POP", "BLMOVEM", "ZPOPDUE", "ZMOVEDUE", "BZTSPOP"}, name)
}

const library = "FUNCTION|LOAD|#!lua name=l\nredis.register_function('mv', function(k) return redis.call('RENAME', k[1], k[2]) end)"

// arrivals are the ways in which k can get a value. A setup that begins with "SELECT 1" makes k there. Those
// with over replace a string, for which clients began to wait before.
func arrivals(kind string) (all []waking) {
	make := contents[kind]
	there := strings.Replace(make, "src", "k", 1)
	add := func(name string, setup []string, acts ...string) {
		all = append(all, waking{name: name, setup: setup, acts: acts})
	}
	src := []string{make}
	add("added", nil, there)
	add("COPY", src, "COPY src k")
	add("COPY over", src, "SET k x", "COPY src k REPLACE")
	add("COPY from a database", []string{"SELECT 1", make}, "SELECT 1", "COPY src k DB 0", "SELECT 0")
	add("RENAME", src, "RENAME src k")
	add("RENAME over", src, "SET k x", "RENAME src k")
	add("RENAMENX", src, "RENAMENX src k")
	add("MOVE", []string{"SELECT 1", there}, "SELECT 1", "MOVE k 0", "SELECT 0")
	add("SWAPDB", []string{"SELECT 1", there}, "SWAPDB 0 1")
	add("SWAPDB of the other", []string{"SELECT 1", there}, "SWAPDB 1 0")
	add("RESTORE", src, "@restore src")
	add("RESTORE over", src, "SET k x", "@restore src REPLACE")
	add("EVAL", src, "EVAL|return redis.call('RENAME', KEYS[1], KEYS[2])|2|src|k")
	add("FCALL", append(src, library), "FCALL mv 2 src k")
	add("EXEC", src, "MULTI", "PING", "RENAME src k", "PING", "EXEC")
	switch kind {
	case "list":
		add("SORT", src, "SORT src ALPHA STORE k")
		add("SORT of a set", []string{"SADD src a"}, "SORT src ALPHA STORE k")
		add("SORT over", src, "SET k x", "SORT src ALPHA STORE k")
		add("SORT in EVAL", src, "EVAL|return redis.call('SORT', KEYS[1], 'ALPHA', 'STORE', KEYS[2])|2|src|k")
		add("LPUSH", nil, "LPUSH k a")
		add("LMOVE", src, "LMOVE src k LEFT RIGHT")
		add("RPOPLPUSH", src, "RPOPLPUSH src k")
		add("BLMOVE", src, "BLMOVE src k LEFT RIGHT 0")
		add("BRPOPLPUSH", src, "BRPOPLPUSH src k 0")
		add("LMOVEM", src, "LMOVEM src k LEFT RIGHT")
		add("LMOVEM of many", src, "LMOVEM src k RIGHT RIGHT COUNT 5 OBO")
		add("BLMOVEM", src, "BLMOVEM src k LEFT RIGHT 0 COUNT 5 BULK")
		add("ZMOVEDUE", []string{"ZADD src 1 a"}, "ZMOVEDUE src k LEFT")
	case "zset":
		add("ZINCRBY", nil, "ZINCRBY k 1 a")
		geo := []string{"GEOADD src 13 38 b", "ZADD src 1 a"}
		at := []string{"ZADD src 1 a"} // a location like others
		add("GEORADIUS", at, "GEORADIUS src 0 0 30000 km STORE k")
		add("GEORADIUSBYMEMBER", geo, "GEORADIUSBYMEMBER src a 1 m STORE k")
		add("GEOSEARCHSTORE", geo, "GEOSEARCHSTORE k src FROMMEMBER a BYRADIUS 1 m")
		for _, c := range []string{"ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"} {
			add(c, src, c+" k 1 src")
			add(c+" over", src, "SET k x", c+" k 1 src")
		}
		add("ZRANGESTORE", src, "ZRANGESTORE k src 0 -1")
		add("ZRANGESTORE over", src, "SET k x", "ZRANGESTORE k src 0 -1")
	}
	return all
}

// wakings are all scenarios of clients that wait for a missing value.
func wakings() (all []waking) {
	// redis-server does not wake clients that wait for a key that these commands overwrite, or it lacks the
	// command.
	leaves := []string{"LMOVEM", "LMOVEM of many", "BLMOVEM", "ZMOVEDUE", "SORT over",
		"ZUNIONSTORE over", "ZINTERSTORE over", "ZDIFFSTORE over", "ZRANGESTORE over"}
	for _, kind := range []string{"list", "zset", "stream", "queue"} {
		for _, w := range waiters[kind] {
			for _, a := range arrivals(kind) {
				a.wait, a.gets, a.left = w[0], w[1], w[2]
				a.ours = ours(w[0]) || slices.Contains(leaves, a.name)
				all = append(all, a)
			}
			all = append(all, waking{name: "added and deleted in EXEC", setup: []string{contents[kind]}, wait: w[0],
				acts: []string{"MULTI", "RENAME src k", "DEL k", "EXEC"}, gets: still, ours: ours(w[0])})
		}
	}
	for _, act := range []string{"SADD k a", "SDIFFSTORE k s", "SUNIONSTORE k s", "SINTERSTORE k s", "SET k v", "HSET k f v",
		"BITOP NOT k x", "PFADD k a",
		"SORT none STORE k", "ZRANGESTORE k z 5 6", "LPUSHX k a", "XGROUP CREATE k g 0 MKSTREAM"} {
		for _, kind := range []string{"list", "zset", "stream", "queue"} {
			all = append(all, waking{name: "another kind", setup: []string{"SADD s a", "SET x v", "ZADD z 1 a"}, acts: []string{act},
				wait: waiters[kind][0][0], gets: still, ours: kind == "queue"})
		}
	}
	return append(all, leavings()...)
}

// leavings are the scenarios of readers whose stream or group is deleted, and of clients that wait for a
// deleted lock.
func leavings() (all []waking) {
	const (
		gone    = "-NOGROUP No such key 'k' or consumer group 'g' in XREADGROUP with GROUP option"
		noGroup = gone
		other   = "-WRONGTYPE Operation against a key holding the wrong kind of value"
		entry   = "[[k [[9-9 [f v]]]]]"
	)
	setup := []string{"XADD k 1-1 f v", "XGROUP CREATE k g $", "XGROUP CREATE k h $", "XADD k2 1-1 f v", "XGROUP CREATE k2 g $",
		"SADD s a", "RPUSH l a", "XADD x 9-9 f v", "XADD xg 9-9 f v", "XGROUP CREATE xg g 0"}
	for _, r := range []struct{ acts, group, read string }{
		{"DEL k", gone, still},
		{"UNLINK k", gone, still},
		{"PEXPIRE k 10;@pass", gone, still},
		{"PEXPIREAT k 1", gone, still},
		{"SET k v", other, still},
		{"FLUSHALL", gone, still},
		{"FLUSHDB ASYNC", gone, still},
		{"RENAME k z", gone, still},
		{"MOVE k 5", gone, still},
		{"SWAPDB 0 5", gone, still},
		{"EVAL|return redis.call('DEL', KEYS[1])|1|k", gone, still},
		{"RENAME s k", other, still},
		{"RENAME l k", other, still},
		{"COPY s k REPLACE", other, still},
		{"@restore s REPLACE", other, still},
		{"@restore l REPLACE", other, still},
		{"SUNIONSTORE k s", other, still},
		{"SORT l ALPHA STORE k", other, still},
		{"XGROUP DESTROY k g", noGroup, still},
		{"RENAME x k", noGroup, entry},
		{"COPY x k REPLACE", noGroup, entry},
		{"@restore x REPLACE", noGroup, entry},
		{"MULTI;DEL k;XADD k 9-9 f v;EXEC", noGroup, entry},
		{"RENAME xg k", entry, entry},
		{"COPY xg k REPLACE", entry, entry},
		{"@restore xg REPLACE", entry, entry},
		{"MULTI;DEL k;XADD k 9-9 f v;XGROUP CREATE k g 0;EXEC", entry, entry},
		{"MULTI;DEL k;XGROUP CREATE k g 0 MKSTREAM;EXEC", still, still},
		{"MULTI;XGROUP DESTROY k g;XGROUP CREATE k g $;EXEC", still, still},
		{"MULTI;XGROUP DESTROY k g;XGROUP CREATE k g 0;EXEC", "[[k [[1-1 [f v]]]]]", still},
		{"XGROUP DESTROY k h", still, still},
		{"XGROUP CREATECONSUMER k g c;XGROUP DELCONSUMER k g c", still, still},
		{"XDEL k 1-1", still, still},
		{"XTRIM k MAXLEN 0", still, still},
		{"XSETID k 99-9", still, still},
	} {
		acts := strings.Split(r.acts, ";")
		all = append(all,
			waking{name: "of a group", setup: setup, acts: acts, wait: "XREADGROUP GROUP g c BLOCK 0 STREAMS k >", gets: r.group},
			waking{name: "of a group, among others", setup: setup, acts: acts, wait: "XREADGROUP GROUP g c BLOCK 0 STREAMS k2 k > >", gets: r.group},
			waking{name: "of a stream", setup: setup, acts: acts, wait: "XREAD BLOCK 0 STREAMS k $", gets: r.read})
	}
	setup = []string{"LOCK.ACQUIRE k a 10", "RPUSH l a", "LOCK.ACQUIRE src z 60000"}
	for _, act := range []string{"DEL k", "PEXPIREAT k 1", "@pass", "RENAME k z", "MOVE k 5", "SWAPDB 0 5", "FLUSHALL",
		"EVAL|return redis.call('DEL', KEYS[1])|1|k"} {
		all = append(all, waking{name: "of a lock", setup: setup, acts: []string{act}, wait: "LOCK.ACQUIRE k b 60000 WAIT 0",
			gets: "a token", ours: true})
	}
	for _, act := range []string{"RENAME src k", "COPY src k REPLACE", "@restore src REPLACE"} {
		all = append(all, waking{name: "of a lock, taken by another", setup: setup, acts: []string{act},
			wait: "LOCK.ACQUIRE k b 60000 WAIT 0", gets: still,
			ours: true})
	}
	for _, act := range []string{"SET k v", "RENAME l k", "COPY l k REPLACE", "@restore l REPLACE", "SORT l ALPHA STORE k"} {
		all = append(all, waking{name: "of a lock, for another kind", setup: setup, acts: []string{act},
			wait: "LOCK.ACQUIRE k b 60000 WAIT 0", gets: still,
			ours: true})
	}
	return all
}

// check compares the result of a scenario.
func (w *waking) check(t *testing.T, gets, left string, err error) {
	t.Helper()
	// If two keys were deleted, one is named: here the one that was deleted first, on newer servers the first of
	// the command (blocked-order).
	gets = strings.Replace(gets, "such key 'k2'", "such key 'k'", 1)
	same := gets == w.gets
	switch {
	case w.name == "of a lock" && w.gets == "a token":
		same = gets != "nil" && gets != still && !strings.HasPrefix(gets, "-")
	case strings.HasPrefix(w.wait, "DQ."):
		same = strings.HasPrefix(gets, w.gets)
	}
	if err != nil || !same || w.gets != still && !strings.HasPrefix(gets, "-") && w.left != left && w.name != "of a stream" {
		t.Errorf("%s: %v; %s; %v: got %q, left %q, %v; want %q, %q", w.name, w.setup, w.wait, w.acts, gets, left, err, w.gets, w.left)
	}
}

func TestEveryWayToMakeOrReplaceAKeyServesItsWaiters(t *testing.T) {
	tier.Sequential(t)
	for _, w := range wakings() {
		e, err := transcript.NewEngine()
		if err != nil {
			t.Fatal(err)
		}
		gets, left, err := w.play(e)
		w.check(t, gets, left, err)
		e.Close()
	}
}

func TestAWaiterIsServedAsByARealServer(t *testing.T) {
	for _, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			other, err := compat.Covers("group-gone-texts", program)
			if err != nil {
				t.Fatal(err)
			}
			addr := realserver.Start(t, program)
			for _, w := range wakings() {
				if w.ours {
					continue
				}
				s := transcript.NewServer(addr)
				gets, left, err := w.play(s)
				if other && strings.HasPrefix(gets, "-") && strings.HasPrefix(w.gets, "-") {
					gets = w.gets
				}
				w.check(t, gets, left, err)
				s.Close()
			}
		})
	}
}

// givenUp are commands that wait with the id of their client, the command that makes the value, and the check
// that the value was not taken.
var givenUp = [][4]string{
	{"BLPOP k 1", "RPUSH k a", "LRANGE k 0 -1", "[a]"},
	{"BLMOVE k out LEFT LEFT 1", "RPUSH k a", "LRANGE k 0 -1", "[a]"},
	{"BZPOPMIN k 1", "ZADD k 1 a", "ZRANGE k 0 -1", "[a]"},
	{"BLMOVEM k out LEFT LEFT 1 EXACTLY 1 OBO", "RPUSH k a", "LRANGE k 0 -1", "[a]"},
	{"ZPOPDUE 1 k BLOCK 1000", "ZADD k 1 a", "ZRANGE k 0 -1", "[a]"},
	{"ZMOVEDUE k out LEFT BLOCK 1000", "ZADD k 1 a", "ZRANGE k 0 -1", "[a]"},
	{"XREADGROUP GROUP g c BLOCK 1000 STREAMS s >", "XADD s 5-1 f v", "XPENDING s g", "[0 nil nil nil]"},
}

func TestAnElementIsNotLostToAClientWhoseWaitEnds(t *testing.T) {
	ends := []string{
		"CLIENT KILL ID $id;$make",
		"MULTI;CLIENT KILL ID $id;$make;EXEC",
		"MULTI;$make;CLIENT KILL ID $id;EXEC",
		"MULTI;$make;CLIENT KILL USER default SKIPME yes;EXEC",
		"CLIENT UNBLOCK $id;$make",
		"CLIENT UNBLOCK $id ERROR;$make",
		"MULTI;CLIENT UNBLOCK $id;$make;EXEC",
		"MULTI;$make;CLIENT UNBLOCK $id ERROR;EXEC",
		"@time;$make",
		"@hangup;$make",
	}
	for _, end := range ends {
		for _, w := range givenUp {
			e, err := transcript.NewEngine()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Do(1, "XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"); err != nil {
				t.Fatal(err)
			}
			id, err := e.Do(2, "CLIENT", "ID")
			services.Must(t, err)
			services.Must(t, e.Send(2, strings.Fields(w[0])))
			for _, act := range strings.Split(strings.NewReplacer("$id", fmt.Sprint(id.Int), "$make", w[1]).Replace(end), ";") {
				switch act {
				case "@time":
					services.Must(t, e.Advance(1001*time.Millisecond))
				case "@hangup":
					services.Must(t, e.Hangup(2))
				default:
					v, err := e.Do(1, strings.Fields(act)...)
					if err != nil || v.Err() != nil {
						t.Fatalf("%s: %s: %v, %v", w[0], act, v, err)
					}
				}
			}
			v, err := e.Do(1, strings.Fields(w[2])...)
			if got := inline(v); err != nil || got != w[3] {
				t.Errorf("%s; %s: %s says %q, %v; want %q", w[0], end, w[2], got, err, w[3])
			}
			if n := e.DB.Waiters(); n != 0 {
				t.Errorf("%s; %s: %d places in lines are still taken", w[0], end, n)
			}
			e.Close()
		}
	}
}

// The client's loop closes the connection some time after the decision. A value that is made in between is
// not handed over.
func TestAnElementIsNotLostToAClientThatIsEvictedWhileItWaits(t *testing.T) {
	for _, w := range givenUp {
		s := services.Start(t)
		waiter, other := services.Dial(t, s, "tcp", "127.0.0.1:1"), services.Dial(t, s, "tcp", "127.0.0.1:2")
		other.Step(services.Request("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"))
		if out, v := waiter.Step(services.Request(strings.Fields(w[0])...)); v != reactor.Park {
			t.Fatalf("%s does not wait: %q", w[0], out)
		}
		other.Step(services.Request("CLIENT", "NO-EVICT", "ON"))
		other.Step(services.Request("CLIENT", "SETNAME", strings.Repeat("x", 128<<10)))
		if out, _ := other.Step(services.Request("CONFIG", "SET", "maxmemory-clients", "1")); out != "+OK\r\n" {
			t.Fatal(out)
		}
		other.Session.IdleCheck(0)
		if !waiter.Killed.Load() {
			t.Fatalf("%s: the client is not evicted", w[0])
		}
		other.Step(services.Request(strings.Fields(w[1])...))
		out, _ := other.Step(services.Request(strings.Fields(w[2])...))
		v, err := wire.ReadValue(bufio.NewReader(strings.NewReader(out)))
		if got := inline(v); err != nil || got != w[3] {
			t.Errorf("%s: %s says %q, %v; want %q", w[0], w[2], got, err, w[3])
		}
	}
}
