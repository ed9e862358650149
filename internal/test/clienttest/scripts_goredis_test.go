package clienttest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// goRedisScripts plays scripts with go-redis.
type goRedisScripts struct {
	*scriptPlayer
	c *redis.Client
}

func scriptsByGoRedis(t *testing.T, addr string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patience}) // or what never ends would be sent again
	defer c.Close()
	p := goRedisScripts{&scriptPlayer{transcriber{t: t}, ctx}, c}
	p.scripts()
	p.digests()
	p.functions()
	p.endless()
	p.lock(func(token string) bool { return c.SetNX(ctx, "lock", token, lockFor).Val() },
		p.does(extendSource), p.does(releaseSource), func() time.Duration { return c.PTTL(ctx, "lock").Val() })
	return p.out.String()
}

// ask prints a reply.
func (p goRedisScripts) ask(name string, cmd *redis.Cmd) {
	v, err := cmd.Result()
	if errors.Is(err, redis.Nil) {
		v, err = nil, nil
	}
	p.reply(name, v, err)
}

// word prints a reply that is a text.
func (p goRedisScripts) word(name string) func(string, error) {
	return func(v string, err error) { p.reply(name, v, err) }
}

// batch prints the replies of scripts and of commands that say OK.
func (p goRedisScripts) batch(name string, cmds []redis.Cmder, err error) {
	var values []any
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

func (p goRedisScripts) scripts() {
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
		p.ask(s.name, run(p.ctx, p.c, s.keys, args...))
	}
}

func (p goRedisScripts) digests() {
	ctx, c, bump, n := p.ctx, p.c, redis.NewScript(bumpSource), []string{"n"}
	p.ask("loaded", bump.Run(ctx, c, n))
	p.word("flushed")(c.ScriptFlush(ctx).Result())
	p.ask("loaded again", bump.Run(ctx, c, n))
	sha, err := bump.Load(ctx, c).Result()
	p.reply("sha", sha, err)
	exists, err := c.ScriptExists(ctx, sha, otherSHA(sha)).Result()
	p.reply("exists", bits(exists), err)
	p.ask("noscript", c.EvalSha(ctx, otherSHA(sha), nil))
	cmds, err := c.Pipelined(ctx, func(b redis.Pipeliner) error {
		for range 3 {
			bump.EvalSha(ctx, b, n)
		}
		return nil
	})
	p.batch("pipeline", cmds, err)
	cmds, err = c.TxPipelined(ctx, func(b redis.Pipeliner) error {
		b.Set(ctx, "n", 10, 0)
		bump.EvalSha(ctx, b, n)
		return nil
	})
	p.batch("multi", cmds, err)
}

func (p goRedisScripts) functions() {
	ctx, c, shelf := p.ctx, p.c, []string{"shelf"}
	p.word("load")(c.FunctionLoad(ctx, functionsLua).Result())
	p.word("load again")(c.FunctionLoad(ctx, functionsLua).Result())
	p.ask("fcall", c.FCall(ctx, "put", shelf, "a", "b"))
	p.ask("fcall_ro", c.FCallRO(ctx, "peek", shelf))
	p.ask("fcall_ro writes", c.FCallRO(ctx, "put", shelf, "c"))
	dump, err := c.FunctionDump(ctx).Result()
	if err != nil {
		p.t.Error(err)
	}
	p.word("flush")(c.FunctionFlush(ctx).Result())
	p.ask("gone", c.FCall(ctx, "peek", shelf))
	p.word("restore")(c.FunctionRestore(ctx, dump).Result())
	p.ask("back", c.FCall(ctx, "peek", shelf))
	list, err := c.FunctionList(ctx, redis.FunctionListQuery{}).Result()
	for _, library := range list {
		p.reply("list", library.Name, err)
	}
}

func (p goRedisScripts) endless() {
	ctx, c := p.ctx, p.c
	if err := c.ConfigSet(ctx, "busy-reply-threshold", "1").Err(); err != nil {
		p.t.Error(err)
	}
	ping := func() (any, error) { return c.Ping(ctx).Result() }
	p.busy("script", func() (any, error) { return c.Eval(ctx, endlessSource, nil).Result() }, ping,
		func() (any, error) { return c.ScriptKill(ctx).Result() })
	p.busy("function", func() (any, error) { return c.FCall(ctx, "endless", nil).Result() }, ping,
		func() (any, error) { return c.FunctionKill(ctx).Result() })
}

// does runs a script of locks.
func (p goRedisScripts) does(source string) func(token string) bool {
	s := redis.NewScript(source)
	return func(token string) bool {
		done, err := s.Run(p.ctx, p.c, []string{"lock"}, token, lockFor.Milliseconds()).Bool()
		if err != nil {
			p.t.Error(err)
		}
		return done
	}
}
