package commands_test

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/gen"
	"github.com/ebbdb/ebb/internal/testing/modeltest"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/resp"
)

// root is the path of the repository's root from this package.
const root = "../.."

var update = flag.Bool("update", false, "rewrite the replies in testdata/transcripts to what they are")

// files returns the paths of the repository's transcripts.
func files(t testing.TB) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.txt", "*/*.txt", "*/*/*.txt"} {
		found, err := filepath.Glob(filepath.Join(root, gen.Transcripts, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	slices.Sort(all)
	return all
}

// play plays a case on a fresh engine. It then checks that the effects lead to the same keyspace.
func play(t *testing.T, c *transcript.Case, r transcript.Rules) {
	t.Helper()
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := transcript.Play(c, e, r); err != nil {
		t.Error(err)
		if !errors.As(err, new(*transcript.Mismatch)) {
			return
		}
	}
	if err := modeltest.CheckEffects(e.DB); err != nil {
		t.Errorf("%s:%d: %s: %v", c.File, c.Line, c.Title, err)
	}
}

func TestTranscripts(t *testing.T) {
	tier.Sequential(t)
	for _, path := range files(t) {
		name, _ := filepath.Rel(filepath.Join(root, gen.Transcripts), path)
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".txt"), func(t *testing.T) {
			cases, err := transcript.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range cases {
				if tier.Share(i) {
					play(t, &cases[i], transcript.Rules{Record: *update})
				}
			}
			if *update && tier.Short() {
				t.Fatal("-update writes nothing in the short tier, which plays a part of the cases: set EBB_FULL=1")
			}
			if *update && !t.Failed() {
				if err := transcript.Update(path, cases); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// example returns the examples on a command's page as transcripts.
func example(t *testing.T, s *command.Spec) []transcript.Case {
	t.Helper()
	cases, err := transcript.Parse(s.Name, s.Examples)
	if err != nil {
		t.Error(err)
	}
	return cases
}

func TestExamplesOfEveryCommandAreTrue(t *testing.T) {
	tier.Sequential(t)
	table := services.Table(t)
	for id := range table.Len() {
		if s := table.Spec(id); s.Run != nil && tier.Share(id) {
			t.Run(s.Name, func(t *testing.T) {
				for _, c := range example(t, s) {
					play(t, &c, transcript.Rules{})
				}
			})
		}
	}
}

func TestEveryCommandHasATranscript(t *testing.T) {
	if missing := gen.MissingTranscripts(root, services.Table(t)); len(missing) > 0 {
		t.Errorf("%d commands have no transcript:\n  %s", len(missing), strings.Join(missing, "\n  "))
	}
}

// notPlayed lists the commands whose cases are not played on a real server, because the test cannot.
var notPlayed = map[string]string{
	"shutdown":         "ends the server",
	"client|pause":     "takes real time",
	"config|rewrite":   "needs a configuration file",
	"bgsave":           "writes files",
	"save":             "writes files",
	"bgrewriteaof":     "writes files",
	"object|freq":      "needs another eviction policy",
	"module":           "there are none",
	"monitor":          "shows addresses",
	"config|resetstat": "statistics are compared nowhere",
	"client|kill":      "needs addresses",
	"client|unblock":   "needs ids",
}

// apart lists the commands whose cases are not played on a real server, because the replies differ. The
// values are IDs of differences in internal/compat.
var apart = map[string]string{
	"debug":               "debug-tools",
	"memory|malloc-stats": "memory-sizes",
	"memory|doctor":       "memory-sizes",
	"memory|stats":        "memory-sizes",
	"command|docs":        "command-list",
	"command|list":        "command-list",
	"command|count":       "command-list",
	"latency":             "measured-times",
	"slowlog":             "measured-times",
	"acl|log":             "acl-log-fields",
	"acl|help":            "help-texts",
	"script|help":         "help-texts",
	"function|help":       "help-texts",
	"object|help":         "help-texts",
	"command|help":        "help-texts",
	"cluster|help":        "help-texts",
	"config|help":         "help-texts",
	"client|help":         "help-texts",
	"pubsub|help":         "help-texts",
	"xgroup|help":         "help-texts",
	"xinfo|help":          "help-texts",
	"memory|help":         "help-texts",
}

// notCompared lists the commands whose replies differ in every server. The values are IDs of differences in
// internal/compat.
var notCompared = map[string]string{
	"hello":         "server-identity",
	"info":          "server-identity",
	"client|id":     "server-identity",
	"client|list":   "server-identity",
	"client|info":   "server-identity",
	"lolwut":        "server-identity",
	"time":          "wall-clock",
	"dump":          "dump-version",
	"function|dump": "dump-version",
}

// described lists the commands whose replies TestEveryCommandIsDescribedAsByRedis compares.
var described = map[string]bool{"command": true, "command|info": true}

// rewordings lists the texts that differ between the servers in many replies. If a line differs, the test
// replaces the text that the pattern matches in both lines, and compares them again.
var rewordings = []struct {
	id      string
	pattern *regexp.Regexp
	by      string
}{
	{"noperm-texts", regexp.MustCompile(`this user has no permissions to access one of the keys used as arguments`),
		"No permissions to access a key"},
	{"noperm-texts", regexp.MustCompile(`this user has no permissions to access one of the channels used as arguments`),
		"No permissions to access a channel"},
	{"noperm-texts", regexp.MustCompile(`(This|this|User [a-z]+|user [a-z]+)( user)? has no permissions to`), "User may not"},
	{"noperm-texts",
		regexp.MustCompile(`The user executing the script can't access at least one of the keys mentioned in the command arguments`),
		"ACL failure in script: No permissions to access a key"},
	{"noperm-texts",
		regexp.MustCompile(`ERR (The user executing the script can't run this command or subcommand|ACL failure in script: User may not ` +
			`run the '.*' command)`), "ERR ACL"},
	{"scripts-words-of-valkey", regexp.MustCompile(` Please use EVAL\.`), ""},
	{"valkey-texts", regexp.MustCompile(`This Redis instance`), "This instance"},
	{"scripts-words-of-valkey", regexp.MustCompile(`(Lua redis lib command|Command) arguments must`), "Command arguments must"},
	{"scripts-words-of-valkey", regexp.MustCompile(`for this redis lib call`), "for this call"},
	{"valkey-texts", regexp.MustCompile(`(a|the) Redis configuration`), "$1 configuration"},
	{"valkey-texts", regexp.MustCompile(`BYRADIUS and BYBOX`), "BYRADIUS, BYBOX and BYPOLYGON"},
	{"scripts-words-of-valkey", regexp.MustCompile(`redis\.register_function`), "server.register_function"},
	{"scripts-words-of-valkey", regexp.MustCompile(`(Unknown|calling) Redis command`), "$1 command"},
	{"scripts-words-of-valkey", regexp.MustCompile(`This (Redis|Valkey) command`), "This command"},
	{"valkey-texts",
		regexp.MustCompile(`ERR (MULTI calls can not be nested|WATCH inside MULTI is not allowed|Command not allowed|Command '.*' not ` +
			`allowed)( inside a transaction)?`), "ERR no"},
	{"valkey-texts", regexp.MustCompile(`ERR (could not decode requested zset member|member .* does not exist)`), "ERR member"},
	{"scripts-words-of-valkey",
		regexp.MustCompile(`ERR (Unexpected engine in script shebang: #!python|Could not find scripting engine 'python')`), "ERR engine"},
	{"scripts-words-of-valkey", regexp.MustCompile(`ERR (Error registering functions: ERR Library|Function) names`), "ERR names"},
	{"scripts-error-without-sha", regexp.MustCompile(` script: [0-9a-z_]+, on @`), " script: on @"},
}

func TestWhatMayDifferIsOnTheListOfDifferences(t *testing.T) {
	for _, r := range rewordings {
		if _, ok := compat.Find(r.id); !ok {
			t.Errorf("%s: internal/compat has no such difference", r.id)
		}
	}
	for _, allowed := range []map[string]string{apart, notCompared, {"commands": ownCommands, "options": ownOptions}} {
		for what, id := range allowed {
			if _, ok := compat.Find(id); !ok {
				t.Errorf("%s: internal/compat has no difference %q", what, id)
			}
		}
	}
}

// These differences prevent a case from being played if the server does not have one of its commands or
// options.
const (
	ownCommands = "own-commands"
	ownOptions  = "own-options"
)

// oracle also plays cases on a real server.
type oracle struct {
	program string
	addr    string
	table   *command.Table
	words   map[string]map[string]bool // the options of each command that the server has
	skipped map[string]int             // the number of cases by reason
	differs map[string]int             // the number of differing replies by ID
	same    map[string]int             // the number of replies by ID that may differ and do not
	played  int
	replies int

	speaking int // 3 if connections begin with HELLO 3
}

func newOracle(t *testing.T, program string) *oracle {
	o := &oracle{program: program, addr: realserver.Start(t, program, "--enable-debug-command", "yes"), table: services.Table(t),
		words: map[string]map[string]bool{}, skipped: map[string]int{}, differs: map[string]int{}, same: map[string]int{}}
	o.learn(t)
	return o
}

func TestTranscriptsAgreeWithARealServer(t *testing.T) {
	tier.Sequential(t)
	for _, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		t.Run(program, func(t *testing.T) {
			o := newOracle(t, program)
			o.eachCase(t, func(c *transcript.Case) { o.play(t, c) })
			o.report(t)
		})
	}
}

// eachCase calls do with the examples and the transcripts.
func (o *oracle) eachCase(t *testing.T, do func(c *transcript.Case)) {
	for id := range o.table.Len() {
		if s := o.table.Spec(id); s.Run != nil {
			for _, c := range example(t, s) {
				do(&c)
			}
		}
	}
	for _, path := range files(t) {
		cases, err := transcript.Load(path)
		if err != nil {
			continue // another test reports it
		}
		for i := range cases {
			do(&cases[i])
		}
	}
}

// report logs the totals, and fails the test if a difference never showed.
func (o *oracle) report(t *testing.T) {
	t.Helper()
	t.Logf("%s: %d cases were played, %d replies compared; differing replies: %v; not played: %v", o.program, o.played,
		o.replies, o.differs, o.skipped)
	if o.played == 0 {
		t.Error("nothing was played")
	}
	for id, n := range o.same {
		if o.differs[id] == 0 && n > 0 && !randomly[id] {
			t.Errorf("%s: the difference %s did not show in any of %d replies: take %s off its servers in internal/compat",
				o.program, id, n, o.program)
		}
	}
}

// randomly lists the differences that show only sometimes.
var randomly = map[string]bool{"config-get-order": true}

// learn asks the server which of our commands it has, and with which options.
func (o *oracle) learn(t *testing.T) {
	s := transcript.NewServer(o.addr)
	defer s.Close()
	services.AskServer(t, s, "HELLO", "3")
	for id := range o.table.Len() {
		name := o.table.Spec(id).Name
		if v := services.AskServer(t, s, "COMMAND", "INFO", name); len(v.Elems) != 1 || v.Elems[0].IsNull() {
			continue
		}
		words := map[string]bool{}
		if docs := services.AskServer(t, s, "COMMAND", "DOCS", name); len(docs.Elems) == 2 {
			arguments, _ := docs.Elems[1].Get("arguments")
			collect(words, arguments)
		}
		o.words[name] = words
	}
}

// collect adds the tokens of a grammar to a set.
func collect(words map[string]bool, arguments resp.Value) {
	for _, a := range arguments.Elems {
		if token, ok := a.Get("token"); ok {
			words[strings.ToUpper(token.Str)] = true
		}
		if parts, ok := a.Get("arguments"); ok {
			collect(words, parts)
		}
	}
}

// options returns the tokens of one of our grammars.
func options(words map[string]bool, args []command.Arg) map[string]bool {
	for i := range args {
		if args[i].Token != "" {
			words[strings.ToUpper(args[i].Token)] = true
		}
		options(words, args[i].Args)
	}
	return words
}

// knows asks the server whether it has a command that we do not have.
func (o *oracle) knows(name string) bool {
	s := transcript.NewServer(o.addr)
	defer s.Close()
	if err := s.Send(1, []string{"COMMAND", "INFO", name}); err != nil {
		return false
	}
	v, _ := s.Next(1)
	return len(v.Elems) == 1 && !v.Elems[0].IsNull()
}

// spec finds the command that a request runs, nil if there is none.
func (o *oracle) spec(args []string) *command.Spec {
	s, err := o.table.Find(services.Bytes(args))
	if err != nil {
		return nil
	}
	return s
}

// covers reports whether a difference exists on the server.
func (o *oracle) covers(t *testing.T, id string) bool {
	t.Helper()
	ok, err := compat.Covers(id, o.program)
	if err != nil {
		t.Error(err)
	}
	return ok
}

// unfit returns the reason for which a case cannot be played, "" if it can be.
func (o *oracle) unfit(t *testing.T, c *transcript.Case) string {
	if strings.HasPrefix(c.Oracle, "none") {
		return "says so itself"
	}
	for _, s := range c.Steps {
		if s.Kind == transcript.Wait {
			return "time passes"
		}
		if nearStart(s.Text) || slices.ContainsFunc(s.Reply, nearStart) {
			return "shows the clock"
		}
		if s.Kind != transcript.Request {
			continue
		}
		spec := o.spec(s.Args)
		if spec == nil {
			if o.knows(s.Args[0]) {
				return "commands that are not there yet"
			}
			continue
		}
		words, has := o.words[spec.Name]
		if !has {
			return ownCommands
		}
		ours := options(map[string]bool{}, spec.Args)
		for _, a := range s.Args[1:] {
			if a = strings.ToUpper(a); ours[a] && !words[a] {
				return ownOptions
			}
		}
		for _, name := range []string{spec.Name, strings.ToLower(s.Args[0])} {
			if why := notPlayed[name]; why != "" {
				return name + ": " + why
			}
			if id := apart[name]; id != "" && o.covers(t, id) {
				return id
			}
		}
	}
	return ""
}

var digits = regexp.MustCompile(`\d{10,16}`)

// nearStart reports whether a line contains a time between the start of a case's clock and the real time.
func nearStart(line string) bool {
	for _, d := range digits.FindAllString(line, -1) {
		n, _ := strconv.ParseInt(d, 10, 64)
		for _, unit := range []int64{1, 1e3, 1e6} {
			if at := time.Unix(n/unit, 0); at.After(transcript.Start.Add(-time.Hour)) && at.Before(time.Now().Add(24*time.Hour)) {
				return true
			}
		}
	}
	return false
}

// forgetUsers removes a case's changes of the users.
func forgetUsers(t *testing.T, s *transcript.Server, c *transcript.Case) {
	if !slices.ContainsFunc(c.Steps, func(s transcript.Step) bool { return len(s.Args) > 0 && strings.EqualFold(s.Args[0], "acl") }) {
		return
	}
	services.AskServer(t, s, "ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all", "clearselectors")
	for _, u := range services.AskServer(t, s, "ACL", "USERS").Elems {
		if u.Str != "default" {
			services.AskServer(t, s, "ACL", "DELUSER", u.Str)
		}
	}
}

func (o *oracle) play(t *testing.T, c *transcript.Case) {
	if why := o.unfit(t, c); why != "" {
		o.skipped[why]++
		return
	}
	s := transcript.NewServer(o.addr)
	defer s.Close()
	services.AskServer(t, s, "FLUSHALL")
	services.AskServer(t, s, "FUNCTION", "FLUSH")
	services.AskServer(t, s, "SCRIPT", "FLUSH")
	defer forgetUsers(t, s, c)
	for _, step := range c.Steps {
		if len(step.Args) > 3 && strings.EqualFold(step.Args[0], "config") && strings.EqualFold(step.Args[1], "set") {
			for i := 2; i+1 < len(step.Args); i += 2 {
				if v := services.AskServer(t, s, "CONFIG", "GET", step.Args[i]); len(v.Elems) == 2 {
					defer services.AskServer(t, s, "CONFIG", "SET", v.Elems[0].Str, v.Elems[1].Str)
				}
			}
		}
	}
	if o.speaking == 3 {
		if err := greet(s, c); err != nil {
			t.Error(err)
			return
		}
	}
	began := time.Now()
	err := transcript.Play(c, s, transcript.Rules{
		Unseen: true,
		Reword: func(line string) string { return o.reword(t, line) },
		Loose:  func(s *transcript.Step) bool { return o.described(s) || o.allowance(t, s) != "" },
		Compared: func(s *transcript.Step, same bool) {
			id := o.allowance(t, s)
			switch {
			case o.described(s):
			case same && id != "":
				o.same[id]++
			case id != "":
				o.differs[id]++
			default:
				o.replies++
			}
		},
		Slack: func(args []string) int64 {
			passed := time.Since(began)
			switch name := strings.ToUpper(args[0]); {
			case strings.HasSuffix(name, "PTTL"):
				return passed.Milliseconds() + 2
			case strings.HasSuffix(name, "TTL"), name == "EXEC":
				return int64(passed.Seconds()) + 2
			}
			return 0
		},
	})
	o.played++
	if id := o.covering(t, c.Differs); id != "" {
		if err == nil {
			o.same[id]++
			return
		}
		o.differs[id]++
		if errors.As(err, new(*transcript.Mismatch)) {
			return
		}
	}
	if err != nil {
		t.Error(fmt.Errorf("%s says otherwise: %w", o.program, err))
	}
}

// described reports whether TestEveryCommandIsDescribedAsByRedis compares the reply to a step.
func (o *oracle) described(s *transcript.Step) bool {
	if s.Kind != transcript.Request {
		return false
	}
	spec := o.spec(s.Args)
	return spec != nil && described[spec.Name]
}

// reword replaces the texts of a line that rewordings lists.
func (o *oracle) reword(t *testing.T, line string) string {
	for _, r := range rewordings {
		if o.covers(t, r.id) && r.pattern.MatchString(line) {
			line = r.pattern.ReplaceAllString(line, r.by)
			o.differs[r.id]++
		}
	}
	return line
}

// allowance returns the ID of the difference that explains a differing reply to a step, "" if there is none.
func (o *oracle) allowance(t *testing.T, s *transcript.Step) string {
	if s.Kind != transcript.Request {
		return ""
	}
	if id := o.covering(t, s.Differs); id != "" {
		return id
	}
	if spec := o.spec(s.Args); spec != nil && notCompared[spec.Name] != "" {
		return o.covering(t, []string{notCompared[spec.Name]})
	}
	return ""
}

// covering returns the first of some differences that exists on the server, "" if none does.
func (o *oracle) covering(t *testing.T, ids []string) string {
	for _, id := range ids {
		if o.covers(t, id) {
			return id
		}
	}
	return ""
}
