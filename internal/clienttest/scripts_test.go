package clienttest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/internal/realserver"
)

// What clients run, and what they see.
var (
	//go:embed scripts.lua
	scriptsLua string
	//go:embed functions.lua
	functionsLua string
	//go:embed scripts_expected.txt
	scriptsExpected string
	//go:embed bullmq_expected.txt
	bullmqExpected string
	//go:embed rq_expected.txt
	rqExpected string
	//go:embed celery_expected.txt
	celeryExpected string
)

func TestClientsSeeTheSameScriptsOnRedisAndOnEbb(t *testing.T) {
	playOnBoth(t, "go-redis", scriptsByGoRedis, scriptsExpected)
	playOnBoth(t, "rueidis", scriptsByRueidis, scriptsExpected)
	playOnBoth(t, "ioredis", node("node/scripts.js"), scriptsExpected)
	playOnBoth(t, "python3-redis", func(t *testing.T, addr string) string { return python(t, "python/scripts.py", addr) }, scriptsExpected)
}

// Queues are made of scripts, locks and blocking reads, with workers in other
// processes: they run unchanged.
func TestQueuesRunOnRedisAndOnEbb(t *testing.T) {
	playOnBoth(t, "bullmq", bullmq, bullmqExpected)
	playOnBoth(t, "rq", func(t *testing.T, addr string) string { return pythonWith(t, "rq", "python/queue_rq.py", addr) }, rqExpected)
	playOnBoth(t, "celery", func(t *testing.T, addr string) string {
		return pythonWith(t, "celery", "python/queue_celery.py", addr)
	}, celeryExpected)
}

// playOnBoth compares what a client prints with what is expected, in a subtest
// for each server.
func playOnBoth(t *testing.T, client string, play play, expected string) {
	for _, s := range []struct {
		name  string
		start func(t *testing.T) (addr string)
	}{
		{"redis-server", func(t *testing.T) string { return realserver.Start(t, "redis-server") }},
		{"ebb", startEbb},
	} {
		t.Run(client+" on "+s.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(strings.Split(expected, "\n"), strings.Split(play(t, s.start(t)), "\n")); diff != "" {
				t.Errorf("(-expected +seen)\n%s", diff)
			}
		})
	}
}

func bullmq(t *testing.T, addr string) string {
	if _, err := os.Stat("node/node_modules/bullmq"); err != nil {
		realserver.Require(t, "bullmq is not installed: run npm ci in internal/clienttest/node")
	}
	return node("node/bullmq.js")(t, addr)
}

// script is a section of scripts.lua.
type script struct {
	name, source string
	keys, args   []string
}

func (s script) readOnly() bool { return strings.HasPrefix(s.name, "ro-") }

func sections() []script {
	var all []script
	for _, section := range strings.Split(scriptsLua, "\n--- ")[1:] {
		head, source, _ := strings.Cut(section, "\n")
		front, args, _ := strings.Cut(head, "/")
		words := strings.Fields(front)
		all = append(all, script{name: words[0], keys: words[1:], args: strings.Fields(args), source: strings.TrimSpace(source)})
	}
	return all
}

// show prints a reply as all programs do.
func show(value any) string {
	switch v := value.(type) {
	case nil:
		return "nil"
	case []any:
		words := make([]string, len(v))
		for i := range v {
			words[i] = show(v[i])
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	return fmt.Sprint(value)
}

// bits shows booleans as they were on the wire.
func bits(list []bool) string {
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = number(v, nil)
	}
	return "[" + strings.Join(words, " ") + "]"
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

const (
	bumpSource    = "return redis.call('INCR', KEYS[1])"
	endlessSource = "while true do end"
	releaseSource = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])"
	extendSource  = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], redis.call('PTTL', KEYS[1]) + ARGV[2])"
	lockFor       = time.Minute
)

// hasCode matches a wire error that begins with its code.
var hasCode = regexp.MustCompile("^[A-Z]{2,} ")

// otherSHA is the digest of no script.
func otherSHA(sha string) string { return strings.ReplaceAll(sha, "a", "b") }

// scriptPlayer prints what a client replies to each step. A reply is any value
// that show prints, or an error, which is printed.
type scriptPlayer struct {
	transcriber
	ctx context.Context
}

func (p *scriptPlayer) reply(name string, value any, err error) {
	if err != nil {
		value = err
	}
	p.say(name, show(value), nil)
}

// busy runs what never ends, in a goroutine that it waits for, until kill.
func (p *scriptPlayer) busy(name string, run, ping, kill func() (any, error)) {
	ended := make(chan error, 1)
	go func() {
		_, err := run()
		ended <- err
	}()
	_, busy := ping()
	for busy == nil {
		select {
		case err := <-ended:
			p.reply(name+" ended before it was killed", nil, err)
			return
		default:
			_, busy = ping()
		}
	}
	p.reply(name+" busy", nil, busy)
	v, err := kill()
	p.reply(name+" killed", v, err)
	p.reply(name+" ended", nil, <-ended)
	v, err = kill()
	p.reply(name+" none", v, err)
}

// lock takes a lock as lock libraries do: who has it holds its token.
func (p *scriptPlayer) lock(acquire func(token string) bool, extend, release func(token string) (done bool), left func() time.Duration) {
	p.say("acquire", yes(acquire("mine")), nil)
	p.say("acquire held", yes(acquire("theirs")), nil)
	p.say("extend", yes(extend("mine")), nil)
	ttl := left()
	p.say("extended", yes(ttl > lockFor && ttl <= 2*lockFor), nil)
	p.say("extend of others", yes(extend("theirs")), nil)
	p.say("release of others", yes(release("theirs")), nil)
	p.say("release", yes(release("mine")), nil)
	p.say("acquire free", yes(acquire("theirs")), nil)
}

func scriptsByGoRedis(t *testing.T, addr string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	p := &scriptPlayer{transcriber{t: t}, ctx}
	reply := func(name string, cmd *redis.Cmd) {
		v, err := cmd.Result()
		if errors.Is(err, redis.Nil) {
			v, err = nil, nil
		}
		p.reply(name, v, err)
	}
	word := func(name string) func(string, error) { return func(v string, err error) { p.reply(name, v, err) } }
	for _, s := range sections() {
		r := redis.NewScript(s.source)
		run := r.Run // EVALSHA, and EVAL if the server does not have it
		if s.readOnly() {
			run = r.RunRO
		}
		args := make([]any, len(s.args))
		for i := range args {
			args[i] = s.args[i]
		}
		reply(s.name, run(ctx, c, s.keys, args...))
	}

	bump := redis.NewScript(bumpSource)
	n := []string{"n"}
	reply("loaded", bump.Run(ctx, c, n))
	word("flushed")(c.ScriptFlush(ctx).Result())
	reply("loaded again", bump.Run(ctx, c, n))
	sha, err := bump.Load(ctx, c).Result()
	p.reply("sha", sha, err)
	exists, err := c.ScriptExists(ctx, sha, otherSHA(sha)).Result()
	p.reply("exists", bits(exists), err)
	reply("noscript", c.EvalSha(ctx, otherSHA(sha), nil))
	var values []any
	collect := func(name string, cmds []redis.Cmder, err error) {
		values = nil
		for _, cmd := range cmds {
			switch cmd := cmd.(type) {
			case *redis.Cmd:
				values = append(values, cmd.Val())
			case *redis.StatusCmd:
				values = append(values, cmd.Val())
			}
		}
		p.reply(name, values, err)
	}
	cmds, err := c.Pipelined(ctx, func(b redis.Pipeliner) error {
		for range 3 {
			bump.EvalSha(ctx, b, n)
		}
		return nil
	})
	collect("pipeline", cmds, err)
	cmds, err = c.TxPipelined(ctx, func(b redis.Pipeliner) error {
		b.Set(ctx, "n", 10, 0)
		bump.EvalSha(ctx, b, n)
		return nil
	})
	collect("multi", cmds, err)

	shelf := []string{"shelf"}
	word("load")(c.FunctionLoad(ctx, functionsLua).Result())
	word("load again")(c.FunctionLoad(ctx, functionsLua).Result())
	reply("fcall", c.FCall(ctx, "put", shelf, "a", "b"))
	reply("fcall_ro", c.FCallRO(ctx, "peek", shelf))
	reply("fcall_ro writes", c.FCallRO(ctx, "put", shelf, "c"))
	dump, err := c.FunctionDump(ctx).Result()
	if err != nil {
		t.Error(err)
	}
	word("flush")(c.FunctionFlush(ctx).Result())
	reply("gone", c.FCall(ctx, "peek", shelf))
	word("restore")(c.FunctionRestore(ctx, dump).Result())
	reply("back", c.FCall(ctx, "peek", shelf))
	list, err := c.FunctionList(ctx, redis.FunctionListQuery{}).Result()
	for _, library := range list {
		p.reply("list", library.Name, err)
	}

	if err := c.ConfigSet(ctx, "busy-reply-threshold", "1").Err(); err != nil {
		t.Error(err)
	}
	ping := func() (any, error) { return c.Ping(ctx).Result() }
	p.busy("script", func() (any, error) { return c.Eval(ctx, endlessSource, nil).Result() }, ping, func() (any, error) { return c.ScriptKill(ctx).Result() })
	p.busy("function", func() (any, error) { return c.FCall(ctx, "endless", nil).Result() }, ping, func() (any, error) { return c.FunctionKill(ctx).Result() })

	does := func(source string) func(string) bool {
		s := redis.NewScript(source)
		return func(token string) bool {
			done, err := s.Run(ctx, c, []string{"lock"}, token, lockFor.Milliseconds()).Bool()
			if err != nil {
				t.Error(err)
			}
			return done
		}
	}
	p.lock(func(token string) bool { return c.SetNX(ctx, "lock", token, lockFor).Val() },
		does(extendSource), does(releaseSource), func() time.Duration { return c.PTTL(ctx, "lock").Val() })
	return p.out.String()
}

func scriptsByRueidis(t *testing.T, addr string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := &scriptPlayer{transcriber{t: t}, ctx}
	value := func(r rueidis.RedisResult) (any, error) {
		v, err := r.ToAny()
		if rueidis.IsRedisNil(err) {
			return nil, nil
		}
		if e, ok := rueidis.IsRedisErr(err); ok && !hasCode.MatchString(e.Error()) {
			err = errors.New("ERR " + e.Error()) // the client takes it away
		}
		return v, err
	}
	reply := func(name string, r rueidis.RedisResult) {
		v, err := value(r)
		p.reply(name, v, err)
	}
	do := func(words ...string) rueidis.RedisResult {
		return c.Do(ctx, c.B().Arbitrary(words...).Build())
	}
	for _, s := range sections() {
		lua := rueidis.NewLuaScript(s.source)
		if s.readOnly() {
			lua = rueidis.NewLuaScriptReadOnly(s.source)
		}
		reply(s.name, lua.Exec(ctx, c, s.keys, s.args))
	}

	bump := rueidis.NewLuaScript(bumpSource)
	n := []string{"n"}
	reply("loaded", bump.Exec(ctx, c, n, nil))
	reply("flushed", c.Do(ctx, c.B().ScriptFlush().Build()))
	reply("loaded again", bump.Exec(ctx, c, n, nil))
	sha, err := c.Do(ctx, c.B().ScriptLoad().Script(bumpSource).Build()).ToString()
	p.reply("sha", sha, err)
	reply("exists", c.Do(ctx, c.B().ScriptExists().Sha1(sha, otherSHA(sha)).Build()))
	reply("noscript", c.Do(ctx, c.B().Evalsha().Sha1(otherSHA(sha)).Numkeys(0).Build()))
	var values []any
	for _, r := range bump.ExecMulti(ctx, c, rueidis.LuaExec{Keys: n}, rueidis.LuaExec{Keys: n}, rueidis.LuaExec{Keys: n}) {
		v, err := value(r)
		if err != nil {
			t.Error(err)
		}
		values = append(values, v)
	}
	p.reply("pipeline", values, nil)
	err = c.Dedicated(func(d rueidis.DedicatedClient) error {
		replies := d.DoMulti(ctx, d.B().Multi().Build(), d.B().Set().Key("n").Value("10").Build(),
			d.B().Evalsha().Sha1(sha).Numkeys(1).Key("n").Build(), d.B().Exec().Build())
		reply("multi", replies[3])
		return nil
	})
	if err != nil {
		t.Error(err)
	}

	reply("load", c.Do(ctx, c.B().FunctionLoad().FunctionCode(functionsLua).Build()))
	reply("load again", c.Do(ctx, c.B().FunctionLoad().FunctionCode(functionsLua).Build()))
	reply("fcall", c.Do(ctx, c.B().Fcall().Function("put").Numkeys(1).Key("shelf").Arg("a", "b").Build()))
	peek := func() rueidis.RedisResult {
		return c.Do(ctx, c.B().FcallRo().Function("peek").Numkeys(1).Key("shelf").Build())
	}
	reply("fcall_ro", peek())
	reply("fcall_ro writes", c.Do(ctx, c.B().FcallRo().Function("put").Numkeys(1).Key("shelf").Arg("c").Build()))
	dump, err := c.Do(ctx, c.B().FunctionDump().Build()).ToString()
	if err != nil {
		t.Error(err)
	}
	reply("flush", c.Do(ctx, c.B().FunctionFlush().Build()))
	reply("gone", peek())
	reply("restore", c.Do(ctx, c.B().FunctionRestore().SerializedValue(dump).Build()))
	reply("back", peek())
	libraries, err := c.Do(ctx, c.B().FunctionList().Build()).ToArray()
	for i := range libraries {
		library, err := libraries[i].AsMap()
		if err != nil {
			t.Error(err)
		}
		name := library["library_name"]
		s, err := name.ToString()
		p.reply("list", s, err)
	}
	if err != nil {
		t.Error(err)
	}

	if err := do("CONFIG", "SET", "busy-reply-threshold", "1").Error(); err != nil {
		t.Error(err)
	}
	// One connection carries all commands: what never ends has one of its own.
	own, release := c.Dedicate()
	defer release()
	ping := func() (any, error) { return value(do("PING")) }
	alone := func(words ...string) func() (any, error) {
		return func() (any, error) { return value(own.Do(ctx, own.B().Arbitrary(words...).Build())) }
	}
	p.busy("script", alone("EVAL", endlessSource, "0"), ping, func() (any, error) { return value(c.Do(ctx, c.B().ScriptKill().Build())) })
	p.busy("function", alone("FCALL", "endless", "0"), ping, func() (any, error) { return value(c.Do(ctx, c.B().FunctionKill().Build())) })

	does := func(source string) func(string) bool {
		lua := rueidis.NewLuaScript(source)
		return func(token string) bool {
			done, err := lua.Exec(ctx, c, []string{"lock"}, []string{token, fmt.Sprint(lockFor.Milliseconds())}).AsBool()
			if err != nil {
				t.Error(err)
			}
			return done
		}
	}
	p.lock(func(token string) bool {
		return c.Do(ctx, c.B().Set().Key("lock").Value(token).Nx().Px(lockFor).Build()).Error() == nil
	}, does(extendSource), does(releaseSource), func() time.Duration {
		ms, err := c.Do(ctx, c.B().Pttl().Key("lock").Build()).AsInt64()
		if err != nil {
			t.Error(err)
		}
		return time.Duration(ms) * time.Millisecond
	})
	return p.out.String()
}
