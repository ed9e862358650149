package command_test

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

	"github.com/ebbdb/ebb/command"
	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/gen"
	"github.com/ebbdb/ebb/internal/modeltest"
	"github.com/ebbdb/ebb/internal/realserver"
	"github.com/ebbdb/ebb/internal/transcript"
	"github.com/ebbdb/ebb/resp"
)

// root is the repository's root, seen from this package.
const root = ".."

var update = flag.Bool("update", false, "rewrite the replies in testdata/transcripts to what they are")

func defaultTable(t testing.TB) *command.Table {
	t.Helper()
	table, err := command.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// files are the transcripts of the repository.
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

// play plays a case on a fresh engine, and then checks that its effects give the
// same keyspace.
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
	for _, path := range files(t) {
		name, _ := filepath.Rel(filepath.Join(root, gen.Transcripts), path)
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".txt"), func(t *testing.T) {
			cases, err := transcript.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range cases {
				if share(i) {
					play(t, &cases[i], transcript.Rules{Record: *update})
				}
			}
			if *update && !t.Failed() && !testing.Short() {
				if err := transcript.Update(path, cases); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// example is the transcript of a command's page.
func example(t *testing.T, s *command.Spec) []transcript.Case {
	t.Helper()
	cases, err := transcript.Parse(s.Name, s.Examples)
	if err != nil {
		t.Error(err)
	}
	return cases
}

func TestExamplesOfEveryCommandAreTrue(t *testing.T) {
	table := defaultTable(t)
	for id := range table.Len() {
		if s := table.Spec(id); s.Run != nil && share(id) {
			t.Run(s.Name, func(t *testing.T) {
				for _, c := range example(t, s) {
					play(t, &c, transcript.Rules{})
				}
			})
		}
	}
}

func TestEveryCommandHasATranscript(t *testing.T) {
	if missing := gen.MissingTranscripts(root, defaultTable(t)); len(missing) > 0 {
		t.Errorf("%d commands have no transcript:\n  %s", len(missing), strings.Join(missing, "\n  "))
	}
}

// notPlayed are the commands that keep a case off a real server, because of what
// the test can do.
var notPlayed = map[string]string{
	"shutdown":         "ends the server",
	"client|pause":     "takes real time",
	"config|rewrite":   "needs a configuration file",
	"bgsave":           "writes files",
	"save":             "writes files",
	"bgrewriteaof":     "writes files",
	"object|freq":      "needs another eviction policy",
	"module":           "there are none",
	"script|debug":     "there is no debugger",
	"monitor":          "shows addresses",
	"client|no-touch":  "is newer",
	"client|setinfo":   "is newer",
	"config|resetstat": "statistics are compared nowhere",
	"client|kill":      "needs addresses",
	"client|unblock":   "needs ids",
}

// apart are the commands that keep a case off a real server, because their replies
// differ: the IDs of the differences in internal/compat.
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

// notCompared are the commands whose replies differ by nature: the IDs of the
// differences in internal/compat.
var notCompared = map[string]string{
	"hello":        "server-identity",
	"info":         "server-identity",
	"client|id":    "server-identity",
	"client|list":  "server-identity",
	"client|info":  "server-identity",
	"lolwut":       "server-identity",
	"time":         "wall-clock",
	"scan":         "scan-cursors",
	"randomkey":    "random-choice",
	"acl|genpass":  "random-choice",
	"memory|usage": "memory-sizes",
	"config|get":   "config-defaults",
	"geopos":       "shortest-coordinates",

	"command|getkeys":         "getkeys-bare",
	"command|getkeysandflags": "getkeys-bare",
}

// described are the commands whose replies TestEveryCommandIsDescribedAsByRedis compares.
var described = map[string]bool{"command": true, "command|info": true}

// ownWords are the words of options that are not in Redis 7.0.15.
var ownWords = map[string]string{"JITTER": "own-options", "SLIDE": "own-options", "SPAN": "own-options", "IFEQ": "own-options", "IFNE": "own-options",
	"IFDEQ": "own-options", "IFDNE": "own-options", "WITHTTL": "own-options", "NOVALUES": "own-options", "WITHSCORE": "own-options"}

func TestWhatMayDifferIsOnTheListOfDifferences(t *testing.T) {
	for _, allowed := range []map[string]string{apart, notCompared, ownWords, {"": withoutCommand}} {
		for what, id := range allowed {
			if _, ok := compat.Find(id); !ok {
				t.Errorf("%s: internal/compat has no difference %q", what, id)
			}
		}
	}
}

// withoutCommand is why a case with a command that the server does not have is not played.
const withoutCommand = "own-commands"

// oracle plays cases on a real server as well.
type oracle struct {
	addr    string
	table   *command.Table
	has     map[string]bool // commands that the server has
	skipped map[string]int  // by reason
	played  int
}

func TestTranscriptsAgreeWithARealServer(t *testing.T) {
	o := oracle{addr: realserver.Start(t, "redis-server", "--enable-debug-command", "yes"), table: defaultTable(t),
		has: map[string]bool{}, skipped: map[string]int{}}
	o.learn(t)
	for id := range o.table.Len() {
		if s := o.table.Spec(id); s.Run != nil {
			for _, c := range example(t, s) {
				o.play(t, &c)
			}
		}
	}
	for _, path := range files(t) {
		cases, err := transcript.Load(path)
		if err != nil {
			continue // reported elsewhere
		}
		for i := range cases {
			o.play(t, &cases[i])
		}
	}
	t.Logf("%d cases were played on redis-server; not played: %v", o.played, o.skipped)
	if o.played == 0 {
		t.Error("nothing was played")
	}
}

// learn asks the server which of our commands it has.
func (o *oracle) learn(t *testing.T) {
	s := transcript.NewServer(o.addr)
	defer s.Close()
	for id := range o.table.Len() {
		name := o.table.Spec(id).Name
		v := must(t, s, "COMMAND", "INFO", name)
		o.has[name] = len(v.Elems) == 1 && !v.Elems[0].IsNull()
	}
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

// must sends a request on a connection that cases do not use.
func must(t *testing.T, s *transcript.Server, args ...string) resp.Value {
	t.Helper()
	const admin = 1000
	if err := s.Send(admin, args); err != nil {
		t.Fatal(err)
	}
	v, ok := s.Next(admin)
	if !ok {
		t.Fatalf("%q: no reply", args)
	}
	return v
}

// spec finds what a request runs, nil for nothing.
func (o *oracle) spec(args []string) *command.Spec {
	s, err := o.table.Find(bytesOf(args))
	if err != nil {
		return nil
	}
	return s
}

// unfit returns why a case cannot be played, "" if it can.
func (o *oracle) unfit(c *transcript.Case) string {
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
		for _, a := range s.Args {
			if id := ownWords[strings.ToUpper(a)]; id != "" {
				return id
			}
		}
		spec := o.spec(s.Args)
		if spec == nil {
			if o.knows(s.Args[0]) {
				return "commands that are not there yet"
			}
			continue
		}
		if !o.has[spec.Name] {
			return withoutCommand
		}
		for _, name := range []string{spec.Name, strings.ToLower(s.Args[0])} {
			if why := notPlayed[name]; why != "" {
				return name + ": " + why
			}
			if id := apart[name]; id != "" {
				return id
			}
		}
	}
	return ""
}

var digits = regexp.MustCompile(`\d{10,16}`)

// nearStart reports whether a line has a time between the start of a case's
// clock and the real time.
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

// forgetUsers takes back what a case has done to the users.
func forgetUsers(t *testing.T, s *transcript.Server, c *transcript.Case) {
	if !slices.ContainsFunc(c.Steps, func(s transcript.Step) bool { return len(s.Args) > 0 && strings.EqualFold(s.Args[0], "acl") }) {
		return
	}
	must(t, s, "ACL", "SETUSER", "default", "on", "nopass", "~*", "&*", "+@all", "clearselectors")
	for _, u := range must(t, s, "ACL", "USERS").Elems {
		if u.Str != "default" {
			must(t, s, "ACL", "DELUSER", u.Str)
		}
	}
}

func (o *oracle) play(t *testing.T, c *transcript.Case) {
	if why := o.unfit(c); why != "" {
		o.skipped[why]++
		return
	}
	s := transcript.NewServer(o.addr)
	defer s.Close()
	must(t, s, "FLUSHALL")
	must(t, s, "FUNCTION", "FLUSH")
	must(t, s, "SCRIPT", "FLUSH")
	defer forgetUsers(t, s, c)
	for _, step := range c.Steps {
		if len(step.Args) > 3 && strings.EqualFold(step.Args[0], "config") && strings.EqualFold(step.Args[1], "set") {
			for i := 2; i+1 < len(step.Args); i += 2 {
				if v := must(t, s, "CONFIG", "GET", step.Args[i]); len(v.Elems) == 2 {
					defer must(t, s, "CONFIG", "SET", v.Elems[0].Str, v.Elems[1].Str)
				}
			}
		}
	}
	began := time.Now()
	err := transcript.Play(c, s, transcript.Rules{
		Skip: func(args []string) bool {
			spec := o.spec(args)
			return spec != nil && (notCompared[spec.Name] != "" || described[spec.Name])
		},
		Slack: func(args []string) int64 {
			passed := time.Since(began)
			switch strings.ToUpper(args[0]) {
			case "PTTL":
				return passed.Milliseconds() + 2
			case "TTL", "EXEC":
				return int64(passed.Seconds()) + 2
			}
			return 0
		},
	})
	o.played++
	if err != nil {
		t.Error(fmt.Errorf("redis-server says otherwise: %w", err))
	}
}
