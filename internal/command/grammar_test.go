package command_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
)

func TestUsage(t *testing.T) {
	table := command.FixtureTable(t)
	for _, x := range []struct{ name, want string }{
		{"get", "GET key"},
		{"set", "SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]"},
		{"mset", "MSET key value [key value ...]"},
		{"blmpop", "BLMPOP timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]"},
		{"zunion", "ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]"},
		{"xreadgroup", "XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]"},
		{"sort", "SORT key [BY pattern] [LIMIT offset count] [GET pattern [GET pattern ...]] [ASC | DESC] [ALPHA] [STORE destination]"},
		{"command|list", "COMMAND LIST [FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]"},
	} {
		if got := table.LookupFull(x.name).Usage(); got != x.want {
			t.Errorf("%s\nwant %s", got, x.want)
		}
	}
}

func TestMatchFollowsTheGrammar(t *testing.T) {
	fields := command.Fixture(command.Spec{Name: "hpexpire", Flags: command.Write, Args: []command.Arg{command.Key("key", command.Update),
		command.Int("milliseconds"),
		command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"))),
		command.Block("FIELDS", command.Count("numfields"), command.Many("field"))}})
	table, err := command.NewTable(append(command.Fixtures(), fields)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct{ line, err string }{
		{"set k v", ""}, {"set k v NX", ""}, {"set k v ex 10 get nx", ""}, {"set k v KEEPTTL XX", ""},
		{"set k v NX XX", "ERR syntax error"}, {"set k v GET GET", "ERR syntax error"}, {"set k v EX", "ERR syntax error"},
		{"set k v EX ten", "ERR value is not an integer or out of range"},
		{"set k", "ERR wrong number of arguments for 'set' command"},
		{"hpexpire k 10 FIELDS 2 a b", ""}, {"hpexpire k 10 XX fields 1 FIELDS", ""},
		{"hpexpire k 10 FIELDS 2 a", "ERR syntax error"}, {"hpexpire k 10 FIELDS 1 a b", "ERR syntax error"},
		{"hpexpire k 10 FIELDS 0 a", "ERR syntax error"}, {"hpexpire k 10 FIELDS -1 a", "ERR syntax error"},
		{"hpexpire k x FIELDS 1 a", "ERR value is not an integer or out of range"},
		{"eval s 0", ""}, {"eval s 0 a b", ""}, {"eval s 2 a b", ""}, {"eval s 2 a b c", ""}, {"eval s 2 a", "ERR syntax error"},
		{"zadd k 1 a 2 b", ""}, {"zadd k CH GT 1 a", ""}, {"zadd k 1 a 2", "ERR syntax error"},
		{"zadd k one a", "ERR value is not a valid float"},
		{"xread COUNT 1 STREAMS a b 1 2", ""}, {"xread STREAMS a b 1", ""},
		{"sort k GET a LIMIT 0 1 GET b DESC", ""}, {"sort k LIMIT 0", "ERR syntax error"},
		{"mset a 1 b 2", ""}, {"mset a 1 b", "ERR syntax error"},
		{"blmpop 0 1 k LEFT COUNT 2", ""}, {"blmpop 0 1 k UP", "ERR syntax error"},
		{"zunion 2 a b WEIGHTS 1 2 AGGREGATE MAX", ""}, {"zunion 2 a b AGGREGATE AVG", "ERR syntax error"},
		{"object encoding k", ""},
	} {
		args := bytes.Split([]byte(x.line), []byte(" "))
		s, err := table.Find(args)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := s.Match(args); err != nil {
			got = err.Error()
		}
		if got != x.err {
			t.Errorf("%s: %q, want %q", x.line, got, x.err)
		}
	}
}

func TestPoolsDecideWhatIsGenerated(t *testing.T) {
	table, rng := command.FixtureTable(t), rand.New(rand.NewPCG(7, 8))
	pools := &command.Pools{Keys: []string{"K"}, Named: map[string][]string{"value": {"V"}}}
	for range 50 {
		args := command.Generate(rng, table.Lookup([]byte("set")), pools)
		if !strings.HasPrefix(string(bytes.Join(args, []byte(" "))), "set K V") {
			t.Fatalf("%q", args)
		}
	}
}
