package clienttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// rueidisScripts plays scripts with rueidis.
type rueidisScripts struct {
	*scriptPlayer
	c rueidis.Client
}

func scriptsByRueidis(t *testing.T, addr string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := rueidisScripts{&scriptPlayer{transcriber{t: t}, ctx}, c}
	p.scripts()
	p.digests()
	p.functions()
	p.endless()
	p.lock(func(token string) bool {
		return c.Do(ctx, c.B().Set().Key("lock").Value(token).Nx().Px(lockFor).Build()).Error() == nil
	}, p.does(extendSource), p.does(releaseSource), p.left)
	return p.out.String()
}

// value is a reply as all programs know it.
func (rueidisScripts) value(r rueidis.RedisResult) (any, error) {
	v, err := r.ToAny()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if e, ok := rueidis.IsRedisErr(err); ok && !hasCode.MatchString(e.Error()) {
		err = errors.New("ERR " + e.Error()) // the client takes it away
	}
	return v, err
}

// ask prints a reply.
func (p rueidisScripts) ask(name string, r rueidis.RedisResult) {
	v, err := p.value(r)
	p.reply(name, v, err)
}

func (p rueidisScripts) do(cmd rueidis.Completed) rueidis.RedisResult { return p.c.Do(p.ctx, cmd) }

func (p rueidisScripts) scripts() {
	for _, s := range sections() {
		lua := rueidis.NewLuaScript(s.source)
		if s.readOnly() {
			lua = rueidis.NewLuaScriptReadOnly(s.source)
		}
		p.ask(s.name, lua.Exec(p.ctx, p.c, s.keys, s.args))
	}
}

func (p rueidisScripts) digests() {
	ctx, c, bump, n := p.ctx, p.c, rueidis.NewLuaScript(bumpSource), []string{"n"}
	p.ask("loaded", bump.Exec(ctx, c, n, nil))
	p.ask("flushed", p.do(c.B().ScriptFlush().Build()))
	p.ask("loaded again", bump.Exec(ctx, c, n, nil))
	sha, err := p.do(c.B().ScriptLoad().Script(bumpSource).Build()).ToString()
	p.reply("sha", sha, err)
	p.ask("exists", p.do(c.B().ScriptExists().Sha1(sha, otherSHA(sha)).Build()))
	p.ask("noscript", p.do(c.B().Evalsha().Sha1(otherSHA(sha)).Numkeys(0).Build()))
	var values []any
	for _, r := range bump.ExecMulti(ctx, c, rueidis.LuaExec{Keys: n}, rueidis.LuaExec{Keys: n}, rueidis.LuaExec{Keys: n}) {
		v, err := p.value(r)
		if err != nil {
			p.t.Error(err)
		}
		values = append(values, v)
	}
	p.reply("pipeline", values, nil)
	err = c.Dedicated(func(d rueidis.DedicatedClient) error {
		replies := d.DoMulti(ctx, d.B().Multi().Build(), d.B().Set().Key("n").Value("10").Build(),
			d.B().Evalsha().Sha1(sha).Numkeys(1).Key("n").Build(), d.B().Exec().Build())
		p.ask("multi", replies[3])
		return nil
	})
	if err != nil {
		p.t.Error(err)
	}
}

func (p rueidisScripts) functions() {
	c := p.c
	peek := func() rueidis.RedisResult {
		return p.do(c.B().FcallRo().Function("peek").Numkeys(1).Key("shelf").Build())
	}
	p.ask("load", p.do(c.B().FunctionLoad().FunctionCode(functionsLua).Build()))
	p.ask("load again", p.do(c.B().FunctionLoad().FunctionCode(functionsLua).Build()))
	p.ask("fcall", p.do(c.B().Fcall().Function("put").Numkeys(1).Key("shelf").Arg("a", "b").Build()))
	p.ask("fcall_ro", peek())
	p.ask("fcall_ro writes", p.do(c.B().FcallRo().Function("put").Numkeys(1).Key("shelf").Arg("c").Build()))
	dump, err := p.do(c.B().FunctionDump().Build()).ToString()
	if err != nil {
		p.t.Error(err)
	}
	p.ask("flush", p.do(c.B().FunctionFlush().Build()))
	p.ask("gone", peek())
	p.ask("restore", p.do(c.B().FunctionRestore().SerializedValue(dump).Build()))
	p.ask("back", peek())
	libraries, err := p.do(c.B().FunctionList().Build()).ToArray()
	if err != nil {
		p.t.Error(err)
	}
	for i := range libraries {
		library, err := libraries[i].AsMap()
		if err != nil {
			p.t.Error(err)
		}
		name := library["library_name"]
		s, err := name.ToString()
		p.reply("list", s, err)
	}
}

func (p rueidisScripts) endless() {
	c := p.c
	if err := p.do(c.B().Arbitrary("CONFIG", "SET", "busy-reply-threshold", "1").Build()).Error(); err != nil {
		p.t.Error(err)
	}
	// One connection carries all commands: what never ends has one of its own.
	own, release := c.Dedicate()
	defer release()
	alone := func(words ...string) func() (any, error) {
		return func() (any, error) { return p.value(own.Do(p.ctx, own.B().Arbitrary(words...).Build())) }
	}
	ping := func() (any, error) { return p.value(p.do(c.B().Ping().Build())) }
	p.busy("script", alone("EVAL", endlessSource, "0"), ping, func() (any, error) { return p.value(p.do(c.B().ScriptKill().Build())) })
	p.busy("function", alone("FCALL", "endless", "0"), ping, func() (any, error) { return p.value(p.do(c.B().FunctionKill().Build())) })
}

// does runs a script of locks.
func (p rueidisScripts) does(source string) func(token string) bool {
	lua := rueidis.NewLuaScript(source)
	return func(token string) bool {
		done, err := lua.Exec(p.ctx, p.c, []string{"lock"}, []string{token, fmt.Sprint(lockFor.Milliseconds())}).AsBool()
		if err != nil {
			p.t.Error(err)
		}
		return done
	}
}

// left returns the time for which the lock is still held.
func (p rueidisScripts) left() time.Duration {
	ms, err := p.do(p.c.B().Pttl().Key("lock").Build()).AsInt64()
	if err != nil {
		p.t.Error(err)
	}
	return time.Duration(ms) * time.Millisecond
}
