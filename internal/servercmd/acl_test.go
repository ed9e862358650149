package servercmd_test

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
)

// withConfig starts a service with a configuration.
func withConfig(t *testing.T, cfg *config.Set) (*session.Service, error) {
	t.Helper()
	var hooks session.Hooks
	db := engine.Open(engine.Options{Clock: clock.NewManual(transcript.Start), Hooks: &hooks})
	t.Cleanup(db.Close)
	s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Config: cfg}, &hooks)
	if err == nil {
		t.Cleanup(s.Close)
	}
	return s, err
}

// configured starts a service with a configuration file.
func configured(t *testing.T, text string) (*session.Service, string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "redis.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load([]string{path}, nil)
	if err != nil {
		return nil, path, err
	}
	s, err := withConfig(t, cfg)
	return s, path, err
}

// do runs a request and returns its reply on one line.
func do(c *session.Session, words ...string) string {
	return strings.Join(transcript.Lines(c.Do(services.Bytes(words)...)), " ")
}

func newSession(t *testing.T, s *session.Service) *session.Session {
	c := s.NewSession(nil)
	t.Cleanup(func() { c.Closed(nil) })
	return c
}

func TestUsersOfTheConfiguration(t *testing.T) {
	s, path, err := configured(t, "port 0\nrequirepass old\nuser ann on >p ~a (+get ~b)\nuser default on nopass +@all ~x\n")
	if err != nil {
		t.Fatal(err)
	}
	c := newSession(t, s)
	want := `1) "user ann on #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~a resetchannels -@all (~b resetchannels -@all +get)" ` +
		`2) "user default on nopass sanitize-payload ~x resetchannels +@all"`
	if got := do(c, "ACL", "LIST"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	do(c, "ACL", "SETUSER", "bob", "on")
	do(c, "ACL", "DELUSER", "ann")
	if got := do(c, "CONFIG", "REWRITE"); got != "OK" {
		t.Fatal(got)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "port 0\nrequirepass old\nuser bob on resetchannels -@all\nuser default on nopass sanitize-payload ~x " +
		"resetchannels +@all\n"; string(text) != want {
		t.Errorf("the file is\n%s\nwant\n%s", text, want)
	}
	for _, x := range []struct{ text, want string }{
		{"user ann on +nosuch", ":1: user 'ann': '+nosuch': Unknown command or category name in ACL"},
		{"user ann on #secret", ":1: user 'ann': The password hash must be exactly 64 characters and contain only " +
			"lowercase hexadecimal characters"},
		{"user ann (+get", ":1: user 'ann': unmatched parenthesis in the selector '(+get'"},
		{"user \"a b\" on", ":1: user 'a b': Spaces not allowed in ACL usernames"},
		{"aclfile /nosuch/file", "Error loading ACLs, opening file '/nosuch/file': No such file or directory"},
		{"user ann on\naclfile x", ":1: the configuration defines users and names an aclfile; define the users in one of the two"},
	} {
		if _, _, err := configured(t, x.text); err == nil || !strings.HasSuffix(err.Error(), x.want) {
			t.Errorf("%q\ngot  %v\nwant %s", x.text, err, x.want)
		}
	}
}

func TestUsersOfAnACLFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.acl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("user ann on nopass +@all ~* &*\nuser bob on nopass +@all ~* &*\n")
	s, path, err := configured(t, "aclfile "+file+"\n")
	if err != nil {
		t.Fatal(err)
	}
	c := newSession(t, s)
	steps := func(pairs ...string) {
		t.Helper()
		for i := 0; i < len(pairs); i += 2 {
			if got := do(c, strings.Split(pairs[i], " ")...); got != pairs[i+1] {
				t.Errorf("%s: got %s, want %s", pairs[i], got, pairs[i+1])
			}
		}
	}
	steps("ACL USERS", `1) "ann" 2) "bob" 3) "default"`, "AUTH ann x", "OK",
		"ACL SETUSER ann -get (+get ~x)", "OK", "ACL SAVE", "OK", "CONFIG REWRITE", "OK")
	text, err := os.ReadFile(file)
	if want := "user ann on nopass ~* &* +@all -get (~x resetchannels -@all +get)\nuser bob on nopass ~* &* +@all\n" +
		"user default on nopass ~* &* +@all\n"; err != nil || string(text) != want {
		t.Errorf("the file is\n%s\nwant\n%s", text, want)
	}
	if text, _ := os.ReadFile(path); strings.Contains(string(text), "user ") {
		t.Errorf("the configuration has users:\n%s", text)
	}

	write("user ann on nopass +@all\nuser ann off\nuser x +nosuch\n")
	steps("ACL LOAD", "(error) ERR WARNING: Duplicate user 'ann' found on line 2. "+file+
		":3: Error in applying operation '+nosuch': Unknown command or category name in ACL. "+
		"WARNING: ACL errors detected, no change to the previously active ACL rules was performed",
		"ACL USERS", `1) "ann" 2) "bob" 3) "default"`)
	write("user ann on nopass +ping +acl\nuser cem\n")
	steps("ACL LOAD", "OK", "ACL USERS", `1) "ann" 2) "cem" 3) "default"`, "PING", "PONG",
		"GET k", "(error) NOPERM User ann has no permissions to run the 'get' command")
	write("user cem\n")
	steps("ACL LOAD", "OK", "PING", "(error) NOPERM User ann has no permissions to run the 'ping' command",
		"AUTH default x", "OK", "PING", "PONG")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	steps("ACL LOAD", "(error) ERR Error loading ACLs, opening file '"+file+"': No such file or directory")
}

// A load keeps the clients whose users still allow their subscriptions.
func TestLoadClosesClientsWhoseUserIsGoneOrMayNotListen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(file, []byte("user a on nopass +@all &*\nuser b on nopass +@all &*\nuser c on nopass +@all &*\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	e := transcriptEngine(t, "--aclfile", file)
	ask := func(conn int, words ...string) string {
		t.Helper()
		v, err := e.Do(conn, words...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(transcript.Lines(v), " ")
	}
	for i, user := range []string{"a", "b", "b", "c"} {
		if got := ask(i+2, "AUTH", user, "x"); got != "OK" {
			t.Fatal(got)
		}
	}
	ask(2, "SUBSCRIBE", "news")
	ask(3, "SUBSCRIBE", "news")
	if err := os.WriteFile(file, []byte("user a on nopass +@all &*\nuser b on nopass +@all &other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask(1, "ACL", "LOAD"); got != "OK" {
		t.Fatal(got)
	}
	for i, want := range []string{`1) "pong" 2) ""`, "(closed)", "PONG", "(closed)"} {
		if got := ask(i+2, "PING"); got != want {
			t.Errorf("connection %d: %s, want %s", i+2, got, want)
		}
	}
}

// transcriptEngine is an engine with connections in memory.
func transcriptEngine(t *testing.T, options ...string) *transcript.Engine {
	t.Helper()
	e, err := transcript.NewEngine(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// A connection in each state of permission is refused or allowed, at once, in
// MULTI, at EXEC, and for channels.
func TestEveryStateOfPermission(t *testing.T) {
	const (
		noAuth   = "(error) NOAUTH Authentication required."
		noGet    = "(error) NOPERM User ann has no permissions to run the 'get' command"
		noMulti  = "(error) NOPERM User ann has no permissions to run the 'multi' command"
		noSub    = "(error) NOPERM User ann has no permissions to run the 'subscribe' command"
		noKey    = "(error) NOPERM No permissions to access a key"
		noChan   = "(error) NOPERM No permissions to access a channel"
		aborted  = "(error) EXECABORT Transaction discarded because of previous errors."
		notBegun = "(error) ERR EXEC without MULTI"
		heard    = `1) "subscribe" 2) "news" 3) (integer) 1`
	)
	for _, x := range []struct{ rules, get, multi, queued, exec, subscribe string }{
		// does not log in
		{"", noAuth, noAuth, noAuth, "(error) EXECABORT Transaction discarded because of: NOAUTH Authentication required.", noAuth},
		{"nocommands", noGet, noMulti, noGet, "(error) EXECABORT Transaction discarded because of: NOPERM User ann has no " +
			"permissions to run the 'exec' command",
			noSub},
		{"allcommands", noKey, "OK", noKey, aborted, noChan},
		{"allcommands ~other &other", noKey, "OK", noKey, aborted, noChan},
		{"allcommands %W~k", noKey, "OK", noKey, aborted, noChan},
		{"allcommands %R~k &news", "(nil)", "OK", "QUEUED", "1) (nil)", heard},
		{"allcommands ~* &n*", "(nil)", "OK", "QUEUED", "1) (nil)", heard},
		{"+get ~k", "(nil)", noMulti, "(nil)", "(error) EXECABORT Transaction discarded because of: NOPERM User ann has no " +
			"permissions to run the 'exec' command",
			noSub},
		{"+@transaction (+get ~k) (+subscribe &news)", "(nil)", "OK", "QUEUED", "1) (nil)", heard},
		{"+get +exec ~k +subscribe", "(nil)", noMulti, "(nil)", notBegun, noChan},
		{"allcommands allkeys allchannels", "(nil)", "OK", "QUEUED", "1) (nil)", heard},
		{"allcommands allkeys allchannels -get (+get ~z)", noKey, "OK", noKey, aborted, heard},
		{"allcommands allkeys allchannels -get", noGet, "OK", noGet, aborted, heard},
	} {
		t.Run(strings.ReplaceAll(x.rules, " ", ","), func(t *testing.T) {
			e := transcriptEngine(t)
			ask := func(conn int, line string) string {
				t.Helper()
				v, err := e.Do(conn, strings.Split(line, " ")...)
				if err != nil {
					t.Fatal(err)
				}
				return strings.Join(transcript.Lines(v), " ")
			}
			login := func(conn int) {
				t.Helper()
				if x.rules == "" {
					return
				}
				if got := ask(conn, "AUTH ann secret"); got != "OK" {
					t.Fatal(got)
				}
			}
			ask(1, "ACL SETUSER ann on >secret "+x.rules)
			ask(1, "ACL SETUSER default resetpass >other")
			login(2)
			for _, step := range [][2]string{{"GET k", x.get}, {"MULTI", x.multi}, {"GET k", x.queued}, {"EXEC", x.exec},
				{"SUBSCRIBE news", x.subscribe}} {
				if got := ask(2, step[0]); got != step[1] {
					t.Errorf("%s: %s, want %s", step[0], got, step[1])
				}
			}
			login(3)
			if x.exec != "1) (nil)" {
				return
			}
			ask(3, "MULTI")
			ask(3, "GET k")
			ask(1, "ACL SETUSER ann clearselectors -get")
			if got := ask(3, "EXEC"); !strings.HasPrefix(got, "1) (error) NOPERM ACLs rules changed between") {
				t.Errorf("EXEC after the right was lost: %s", got)
			}
		})
	}
}

// runs is the number of requests for each command and user.
const runs = 20

// The permissions of users for keys are the same as on redis-server: for every command that both have, with
// random arguments. In requests that do not fit the grammar, which the commands refuse, the two may find
// different keys.
func TestDryRunsAgreeWithARealServer(t *testing.T) {
	tier.Sequential(t)
	real := transcript.NewServer(realserver.Start(t, "redis-server"))
	defer real.Close()
	s, err := withConfig(t, config.New())
	if err != nil {
		t.Fatal(err)
	}
	c := newSession(t, s)
	users := [][]string{
		{"reader", "+@all", "%R~a*"}, {"writer", "+@all", "%W~a*"}, {"both", "+@all", "~a*", "&a*"},
		{"split", "+@all", "%R~r*", "%W~w*", "~a", "&r*"}, {"idle"}, {"safe", "+@all", "-@dangerous", "~*", "&w*"},
		{"some", "+@read", "~a*", "(+@write ~w*)", "(+@pubsub &a*)", "(+@stream ~r* ~a)"},
	}
	for _, u := range users {
		for _, target := range []string{services.AskServer(t, real, append([]string{"ACL", "SETUSER"}, u...)...).Str,
			do(c, append([]string{"ACL", "SETUSER"}, u...)...)} {
			if target != "OK" {
				t.Fatalf("%q: %s", u, target)
			}
		}
		reads := append([]string{"ACL", "SETUSER", u[0] + "+r"}, strings.Split(strings.ReplaceAll(strings.Join(u[1:], " "), "%W~", "~"), " ")...)
		if got := do(c, reads...); len(u) > 1 && got != "OK" {
			t.Fatalf("%q: %s", reads, got)
		}
	}
	names := []string{"a", "a1", "r", "r1", "w", "w1"}
	pools := command.Pools{Keys: names, Patterns: append(names, "a*", "r*"), Strings: append(names, "GET", "STORE", "5"),
		Ints:    []int64{0, 1, 2},
		Doubles: []float64{1}, Times: []int64{5}}
	asked, denied := 0, 0
	for id := range s.Table().Len() {
		spec := s.Table().Spec(id)
		info := services.AskServer(t, real, "COMMAND", "INFO", spec.Name)
		if spec.Run == nil || len(info.Elems) != 1 || info.Elems[0].IsNull() {
			continue
		}
		arity := info.Elems[0].Elems[1].Int
		rng := spec.Source(7)
		for range runs {
			request := command.Generate(rng, spec, &pools)
			if rng.IntN(4) == 0 {
				request = command.Damage(rng, request, 1+strings.Count(spec.Name, "|"))
			}
			words := make([]string, len(request))
			// A request that one of the two refuses has no keys there: for instance one without a required key, or
			// with newer options.
			n := int64(len(request))
			skip := n != arity && (arity > 0 || n < -arity) && arity != int64(spec.Arity())
			if spec.ArityOK(request) {
				_, err := spec.AppendKeys(nil, request)
				skip = skip || err != nil
			}
			for i, w := range request {
				words[i] = string(w)
				skip = skip || ownOption[strings.ToUpper(words[i])] || strings.Contains(words[i], "\x00") // which ends the reply there
			}
			if skip {
				continue
			}
			for _, u := range users {
				ask := append([]string{"ACL", "DRYRUN", u[0]}, words...)
				got, want := do(c, ask...), strings.Join(transcript.Lines(services.AskServer(t, real, ask...)), " ")
				got = strings.Replace(got, "User "+u[0]+" has", "This user has", 1) // noperm-texts
				fits := (got == "OK" || stricter[spec.Name] == "") && (spec.Match(request) == nil || !spec.ArityOK(request))
				if fits && want == "OK" && readsToo[spec.Name] != "" {
					// A user that may also read the keys may run it.
					fits = do(c, append([]string{"ACL", "DRYRUN", u[0] + "+r"}, words...)...) != "OK"
				}
				if got != want && fits {
					t.Errorf("%q\nours  %s\nredis %s", ask, got, want)
				}
				asked++
				if got != "OK" {
					denied++
				}
			}
		}
	}
	t.Logf("%d requests, %d of them refused", asked, denied)
}

// stricter are the commands that have more keys here than on redis-server, for some requests, with the
// reason.
var stricter = map[string]string{
	"migrate":           "KEYS beside a key is a syntax error, for which Redis looks at no keys",
	"pfmerge":           "without sources Redis looks at no keys",
	"georadius":         "of STORE and STOREDIST in one request Redis looks at the last one alone",
	"georadiusbymember": "of STORE and STOREDIST in one request Redis looks at the last one alone",
}

// readsToo are the commands that need the right to read their key here, although Redis requires only the
// right to write, with the reason.
var readsToo = map[string]string{
	"zadd":       "INCR returns a score, and CH tells whether it was another",
	"geoadd":     "CH tells whether a member was elsewhere",
	"xclaim":     "without JUSTID it returns entries",
	"xautoclaim": "without JUSTID it returns entries",
}

func TestCategoriesHaveTheMembersOfRedis(t *testing.T) {
	real := transcript.NewServer(realserver.Start(t, "redis-server"))
	defer real.Close()
	table := services.Table(t)
	members := func(list []string) (both []string) {
		for _, name := range list {
			if table.LookupFull(name) != nil {
				both = append(both, name)
			}
		}
		slices.Sort(both)
		return both
	}
	theirs := map[string]bool{}
	for _, v := range services.AskServer(t, real, "COMMAND", "LIST").Elems {
		theirs[v.Str] = true
	}
	for _, cat := range services.AskServer(t, real, "ACL", "CAT").Elems {
		var want, got []string
		for _, v := range services.AskServer(t, real, "ACL", "CAT", cat.Str).Elems {
			want = append(want, v.Str)
		}
		bit, ok := command.CategoryByName(cat.Str)
		if !ok {
			t.Errorf("there is no category %s", cat.Str)
		}
		for id := range table.Len() {
			s := table.Spec(id)
			head, _, _ := strings.Cut(s.Name, "|")
			if s.ACL()&bit == 0 || !theirs[head] {
				continue
			}
			if info := services.AskServer(t, real, "COMMAND", "INFO", s.Name); len(info.Elems) == 1 && !info.Elems[0].IsNull() {
				got = append(got, s.Name)
			}
		}
		if cat.Str == "blocking" {
			want = append(want, "wait") // since 7.2
		}
		slices.Sort(got)
		if want := members(want); !slices.Equal(got, want) {
			t.Errorf("%s\nours  %q\nredis %q", cat.Str, got, want)
		}
	}
}

// Users change while connections use them; run this with -race. Afterwards no client receives messages of a
// channel that its user has lost.
func TestUsersChangeWhileTheyWork(t *testing.T) {
	s, err := withConfig(t, config.New())
	if err != nil {
		t.Fatal(err)
	}
	admin := newSession(t, s)
	do(admin, "ACL", "SETUSER", "ann", "on", "nopass", "+@all", "~a*", "&a*")
	do(admin, "ACL", "SETUSER", "default", "resetchannels")
	var wg sync.WaitGroup
	for range 4 {
		c := newSession(t, s)
		wg.Go(func() {
			for i := range 500 {
				do(c, "HELLO", "3", "AUTH", "ann", "x")
				do(c, "SET", "a", "v")
				do(c, "MGET", "a", "b")
				do(c, "SUBSCRIBE", fmt.Sprint("a", i))
				if i%10 == 9 {
					do(c, "RESET")
				}
			}
			do(c, "SUBSCRIBE", "a")
		})
	}
	wg.Go(func() {
		c := newSession(t, s)
		for i := range 500 {
			do(c, "ACL", "SETUSER", "ann", "on", "nopass", "resetchannels", []string{"&a*", "&b"}[i%2], "+@all", "~a*")
			do(c, "ACL", "LOG")
			if i%50 == 49 {
				do(c, "ACL", "DELUSER", "ann")
			}
		}
	})
	wg.Wait()
	do(admin, "ACL", "SETUSER", "ann", "resetchannels", "&b")
	if got := do(admin, "PUBSUB", "CHANNELS"); got != "(empty array)" {
		t.Errorf("there are subscriptions: %s", got)
	}
}

func BenchmarkPermission(b *testing.B) {
	for _, rules := range []string{"+@all ~* &*", "+@all ~*", "+get ~key:*", "+@read ~x ~y ~%z ~k*"} {
		b.Run(strings.ReplaceAll(rules, " ", ","), func(b *testing.B) {
			var hooks session.Hooks
			db := engine.Open(engine.Options{Hooks: &hooks})
			defer db.Close()
			s, err := session.NewService(session.Options{DB: db, Table: servercmd.Table, Logger: slog.New(slog.DiscardHandler)}, &hooks)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			e := services.Connect(s, "tcp", "127.0.0.1:1")
			defer e.Session.Closed(io.EOF)
			e.Send(append([]string{"ACL", "SETUSER", "ann", "on", "nopass"}, strings.Split(rules, " ")...)...)
			e.Send("AUTH", "ann", "x")
			request, out := wire.AppendCommand(nil, "GET", "key:1"), make([]byte, 0, 64)
			b.ReportAllocs()
			for b.Loop() {
				_, out, _ = e.Session.Serve(request, out[:0])
			}
		})
	}
}

// ownOption are the options that redis-server 7.0.15 does not have.
var ownOption = map[string]bool{"JITTER": true, "SLIDE": true, "SPAN": true, "IFEQ": true, "IFNE": true, "IFDEQ": true, "IFDNE": true,
	"FRESH": true, "IFTOKEN": true, "WITHTTL": true, "NOVALUES": true, "WITHSCORE": true}
