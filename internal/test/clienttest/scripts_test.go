package clienttest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ebbdb/ebb/internal/testing/realserver"
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
	playOnBoth(t, "bullmq", bullmq("node/bullmq.js"), bullmqExpected)
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

// bullmq returns a play by a program of node/ that needs bullmq.
func bullmq(program string) play {
	return func(t *testing.T, addr string) string {
		if _, err := os.Stat("node/node_modules/bullmq"); err != nil {
			realserver.Require(t, "bullmq is not installed: run npm ci in internal/test/clienttest/node")
		}
		return node(program)(t, addr)
	}
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
	extendSource  = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], " +
		"redis.call('PTTL', KEYS[1]) + ARGV[2])"
	lockFor = time.Minute
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

// lock acquires a lock as lock libraries do: the holder has its token.
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
