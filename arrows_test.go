package ebb_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/ebbdb/ebb"

// arrow is a line of the table: a prefix of packages, and those that they may import.
type arrow struct {
	from string
	to   []string
}

// arrows say which of our packages the code of a package may import, by
// prefix; "." is the root package alone. The first line that fits a package
// holds. Nothing points up:
//
//	cmd/ebb, server -> internal/instance -> console -> embed, internal/session
//	internal/instance -> internal/servercmd -> internal/session -> internal/command -> internal/engine -> internal/{table, arena, ...}
//	internal/servercmd -> internal/commands -> internal/command
//	toolkit -> conn <- embed -> internal/embedded -> internal/servercmd, internal/session
//	           conn <- goredis -> go-redis
//	ebb -> conn, embed, goredis
var arrows = []arrow{
	{"internal/numeral", nil}, // numbers as Redis spells them
	{"resp", []string{"internal/numeral"}},
	{"internal/wire", []string{"resp", "internal/cleantext", "internal/numeral"}}, // RESP in bytes
	{"clock", nil}, // an engine's time
	{"internal/engine", []string{"clock", "internal/holders", "internal/limiter", "internal/arena", "internal/table", "internal/topk",
		"internal/wheel", "internal/ordered",
		"internal/packed", "internal/chunklist", "internal/cron", "internal/delayq",
		"internal/dict", "internal/stream", "internal/hll", "internal/bloom", "internal/geohash", "internal/oplog",
		"internal/rdb", "internal/glob"}},
	{"internal/command", []string{"internal/cleantext", "internal/engine", "resp", "internal/numeral", "internal/wire", "internal/glob"}},
	// the commands on data, which see the server through command.Host
	{"internal/commands", []string{"internal/cleantext", "internal/command", "internal/engine", "internal/numeral", "internal/wire",
		"internal/bloom", "internal/geohash", "internal/glob", "internal/hll", "internal/holders", "internal/limiter"}},
	// clients: they know no command but by its Spec
	{"internal/session", []string{"internal/command", "internal/engine", "resp", "internal/numeral", "internal/wire",
		"internal/acl", "internal/admin",
		"internal/cleantext",
		"internal/config", "internal/direct", "internal/disk", "internal/durable", "internal/hotkeys",
		"internal/listen", "internal/oplog",
		"internal/pubsub", "internal/reactor", "internal/redact",
		"internal/replication", "internal/routing", "internal/script", "internal/settings", "internal/system", "internal/timeouts",
		"internal/tracking"}},
	{"internal/redact", []string{"internal/command", "internal/config"}},
	{"internal/settings", []string{"internal/config", "internal/engine"}},
	{"internal/timeouts", []string{"clock", "internal/wheel"}},
	// the commands about the server and its clients, and the list of all commands
	{"internal/servercmd", []string{"internal/session", "internal/command", "internal/commands", "internal/engine",
		"internal/numeral", "internal/wire", "internal/acl",
		"internal/admin", "internal/cleantext", "internal/config", "internal/durable", "internal/glob", "internal/hotkeys", "internal/pubsub",
		"internal/rdb", "internal/reactor",
		"internal/replication", "internal/routing", "internal/script", "internal/system", "internal/tracking"}},
	{"internal/listen", []string{"internal/config"}},
	{"server", []string{"conn", "internal/adminhttp", "internal/session", "internal/config", "internal/disk", "internal/durable",
		"internal/instance", "internal/transport"}},
	{"internal/instance", []string{"clock", "conn", "embed", "console", "internal/"}}, // a whole server
	{"internal/demo", []string{"conn", "bloom", "expset", "limit", "lock", "queue"}},  // a program that uses the toolkit
	{"internal/transport", []string{"internal/reactor"}},
	{"internal/adminhttp", []string{"internal/transport"}}, // HTTP, without metrics
	// what the toolkit runs on: neither an engine nor a client library
	{"conn/driverutil", []string{"conn", "internal/drivers", "internal/routing"}}, // for authors of drivers
	{"conn", []string{"internal/direct", "internal/drivers", "internal/routing", "resp"}},
	{"internal/drivers", []string{"internal/routing", "resp"}}, // what conn and its drivers share
	// a go-redis client of an engine
	{"embed/embedredis", []string{"conn", "embed", "internal/kit", "internal/memnet"}},
	// the driver of package embed, and what of it other packages of the module need
	{"internal/embedded", []string{"clock", "conn", "internal/servercmd", "internal/session", "internal/engine", "internal/wire",
		"internal/admin", "internal/config", "internal/direct", "internal/disk", "internal/drivers", "internal/reactor", "internal/serverurl",
		"internal/transport"}},
	{"embed", []string{"clock", "conn", "internal/engine", "internal/embedded", "internal/kit"}},
	{"goredis", []string{"conn", "resp", "internal/drivers", "internal/kit", "internal/remote", "internal/routing", "internal/serverurl"}},
	{".", []string{"clock", "conn", "embed", "goredis", "internal/kit", "internal/serverurl"}}, // the facade
	{"ebbtest", []string{"clock", "conn", "embed", "resp", "internal/wire", "internal/memnet", "internal/reactor",
		"internal/transport"}},
	// the web console: an engine's commands under its users, and nothing above them
	{"console", []string{"clock", "conn", "embed", "internal/engine", "resp", "internal/numeral", "internal/wire", "internal/embedded",
		"internal/session", "internal/command",
		"internal/acl", "internal/admin",
		"internal/adminhttp", "internal/cleantext", "internal/config", "internal/glob", "internal/redact", "internal/system"}},
	{"cmd/ebb", []string{"conn", "queue", "internal/"}},

	// Tools around the engine: what they drive they may import.
	{"internal/gen", []string{"internal/command", "internal/compat", "internal/gen", "internal/routing", "internal/servercmd"}},
	{"internal/testing/transcript", []string{"clock", "resp", "internal/"}},
	{"internal/testing/services", []string{"clock", "resp", "internal/"}},
	{"internal/testing/modeltest", []string{"clock", "resp", "internal/"}},
	{"internal/testing/history", []string{"resp", "internal/"}},
	{"internal/cli", []string{"resp", "internal/disk", "internal/serverurl", "internal/system", "internal/wire"}},
	{"internal/loadgen", []string{"conn", "resp", "internal/wire"}},
	{"internal/check", []string{"internal/disk", "internal/group/", "internal/oplog", "internal/rdb"}}, // ebb check
	{"internal/doctor", []string{"conn", "internal/disk"}},
	{"internal/migrate", []string{"resp", "internal/wire", "internal/doctor", "internal/rdb", "internal/serverurl"}},
	{"internal/testing/luafuzz", []string{"internal/lua", "internal/testing/tier", "resp", "internal/wire"}},
	{"internal/lua", nil}, // a language, without a server
	// What the sessions' package uses, and what does not know sessions.
	{"internal/prefixes", nil},
	{"internal/pubsub", []string{"internal/glob", "internal/prefixes", "internal/wire"}}, // knows clients as Subscribers
	// knows commands by their Specs
	{"internal/acl", []string{"internal/cleantext", "internal/command", "internal/config", "internal/glob"}},
	{"internal/admin", []string{"internal/engine", "internal/acl", "internal/cleantext", "internal/config", "internal/durable",
		"internal/pubsub", "internal/replication",
		"internal/script", "internal/system", "internal/tracking"}}, // asks the sessions by admin.Host
	{"internal/tracking", []string{"internal/engine", "internal/prefixes", "internal/wire"}}, // knows clients as Clients
	{"internal/script", []string{"internal/cleantext", "internal/lua", "internal/rdb", "resp", "internal/numeral", "internal/wire"}},
	// behind its Host, as durable
	{"internal/replication", []string{"internal/engine", "internal/numeral", "internal/wire", "internal/cleantext",
		"internal/config", "internal/durable",
		"internal/oplog", "internal/rdb",
		"internal/reactor"}},
	// keeps an engine's data in files
	{"internal/durable", []string{"internal/config", "internal/disk", "internal/engine", "internal/numeral", "internal/oplog",
		"internal/rdb"}},
	{"internal/testing/backends", []string{".", "conn", "ebbtest", "internal/"}}, // the toolkit's tests
	{"internal/expiries", []string{"conn", "internal/kit"}},                      // what the toolkit's listeners share
	// what lock and redisson share
	{"internal/locking", []string{"conn", "internal/direct", "internal/kit", "internal/wake"}},
	{"internal/layouts", []string{"internal/kit"}},                               // of other libraries, for expmap and expset
	{"internal/nearcache", []string{"conn", "internal/kit"}},                     // copies of values in the process, for expmap and cache
	{"internal/testing/limittest", []string{".", "limit"}},                       // what contrib's tests of frameworks share
	{"internal/example", []string{"."}},                                          // what the programs of examples share
	{"internal/testing/exampletest", []string{".", "internal/testing/backends"}}, // and their tests
	{"internal/testing/idemtest", []string{".", "lock"}},                         // the same for idempotency keys
	{"internal/remote", []string{"conn", "internal/kit", "internal/routing"}},    // what goredis and contrib/rueidis share
	// the direct calls of a service
	{"internal/direct/calls", []string{"internal/command", "internal/direct", "internal/engine", "internal/limiter", "internal/session"}},
	{"internal/direct", nil},                                              // the typed calls of an embedded engine
	{"internal/routing", []string{"resp", "internal/numeral"}},            // what a client knows of commands: generated data
	{"internal/testing/doccode", []string{"internal/testing/realserver"}}, // compiles what documentation shows
	// what tests of the root and contrib/rueidis share
	{"internal/testing/drivertest", []string{".", "internal/testing/backends", "internal/testing/tier"}},
	{"internal/testing/expirytest", []string{".", "ebbtest", "internal/testing/draw"}}, // the model that expmap and expset are compared with
	{"internal/testing/hangtest", []string{"", "."}},                                   // plays the toolkit's objects through a silence
	{"internal/test", []string{"", "."}},                                               // a module of its own
	{"internal/testing/objects", []string{"", "."}},                                    // all objects, and their rules
	{"internal/fresh", []string{"conn", "internal/kit"}},                               // what cache and lock share
	{"internal/wake", []string{"conn", "internal/kit"}},                                // wake-ups by messages, for limit, lock and queue
	{"internal/sessions", []string{"conn", "internal/kit"}},                            // what contrib/scs and contrib/gorilla share
	{"internal/testing/sessionstest", nil},                                             // what their tests share
	{"internal/kit", []string{"conn", "internal/drivers"}},
	// Groups: the state that names the master, what a node does, and the simulator of both. The first two import nothing that runs.
	{"internal/group/directory", nil},
	{"internal/group/shard", []string{"internal/group/directory"}},
	{"internal/testing/groupsim", []string{"internal/group/directory", "internal/group/shard"}},
	{"internal/group/voter", []string{"internal/group/directory", "internal/disk"}},
	{"internal/group/port", []string{"internal/cleantext"}},
	{"internal/group/settings", []string{"internal/group/directory", "internal/system"}},
	{"internal/group/control", []string{"internal/group/", "internal/disk"}},
	{"internal/group/sentinel", []string{"internal/command", "internal/glob", "internal/system", "internal/wire"}},
	{"internal/group", []string{"clock", "internal/group/", "internal/admin", "internal/disk", "internal/engine", "internal/listen",
		"internal/oplog", "internal/replication", "internal/session", "internal/system"}},
	{"internal/config", []string{"internal/glob", "internal/system", "internal/wire"}},
	{"internal/disk", []string{"internal/disk"}}, // the file system, and one for tests
	{"internal/hotkeys", []string{"internal/topk"}},
	{"internal/oplog", []string{"internal/disk", "internal/rdb", "internal/wire"}},
	{"internal/promtext", []string{"internal/admin", "internal/cleantext", "internal/system"}},
	{"internal/testing/", []string{"internal/disk", "internal/testing/tier"}},
	// Structures of the engine import structures only.
	{"internal/", []string{"internal/arena", "internal/chunk", "internal/cron", "internal/dict", "internal/numeral", "internal/ordered",
		"internal/packed"}},

	{"examples", []string{"", "."}},
	{"redisson/examples", []string{"", "."}},
	{"redisson", []string{"conn", "expmap", "expset", "limit", "lock", "queue", "internal/kit", "internal/layouts", "internal/locking",
		"internal/wake"}}, // a module of its own
	{"expmap", []string{"conn", "resp", "internal/direct", "internal/kit", "internal/expiries", "internal/layouts", "internal/nearcache"}},
	{"expset", []string{"conn", "internal/kit", "internal/expiries", "internal/layouts"}},
	{"near", []string{"conn", "internal/kit", "internal/expiries"}},
	{"queue", []string{"conn", "internal/cron", "internal/direct", "internal/kit", "internal/wake"}}, // the arithmetic of schedules
	{"cache", []string{"conn", "internal/fresh", "internal/kit", "internal/nearcache"}},
	{"lock/httpidem", []string{"conn", "lock", "internal/kit"}},
	{"lock", []string{"conn", "internal/direct", "internal/fresh", "internal/kit", "internal/locking", "internal/wake"}},
	{"limit/httplimit", []string{"limit", "internal/kit"}},
	{"limit", []string{"conn", "internal/direct", "internal/kit", "internal/wake"}},
	{"", []string{"conn", "resp", "internal/kit"}}, // the toolkit: on Conn alone
}

// onlyHere lists packages of others that few of our packages may import.
var onlyHere = map[string][]string{
	// Remote backends are the door's business; tests break them, programs silence them.
	"github.com/redis/go-redis": {".", "goredis", "embed/embedredis", "internal/testing/backends", "internal/example"},
	"github.com/spf13/cobra":    {"cmd/ebb"}, // and command lines the program's
	// Only RDB files are compressed as a whole.
	"github.com/klauspost/compress": {"internal/rdb", "internal/testing/rdbtest"},
	"github.com/pierrec/lz4":        {"internal/rdb", "internal/testing/rdbtest"},
	"github.com/prometheus":         {"internal/test"}, // its linter looks at ours
	"github.com/robfig/cron":        {"internal/cron"},
	"github.com/minio/highwayhash":  {"redisson"},
	"github.com/hashicorp":          {"internal/group/voter"}, // raft
}

// source is one parsed Go file of the tree.
type source struct {
	name string // path from the root, with slashes
	dir  string // its package, "." for the root's
	file *ast.File
}

func (s source) test() bool { return strings.HasSuffix(s.name, "_test.go") }

// sources returns the module's files, and those of internal/test and redisson, which are modules for
// their dependencies' sake. The other modules keep their own rules.
func sources(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	p, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return p.fset, p.all
}

// tests returns the test files of all modules, and the files of packages that tests share: those that import package testing.
func tests(t *testing.T) (*token.FileSet, []source) {
	t.Helper()
	p, err := parsedAll()
	if err != nil {
		t.Fatal(err)
	}
	others := func(s source) bool { return !s.test() && !slices.Contains(s.imports(), "testing") }
	return p.fset, slices.DeleteFunc(slices.Clone(p.all), others)
}

// tree is the result of parse.
type tree struct {
	fset *token.FileSet
	all  []source
}

// parsed and parsedAll are parse, once for all tests: it takes a second.
var (
	parsed    = sync.OnceValues(func() (tree, error) { return parse("internal/test", "redisson") })
	parsedAll = sync.OnceValues(func() (tree, error) { return parse() })
)

// parse parses the module, and those of the other modules that are named; all of them if none is.
func parse(modules ...string) (tree, error) {
	fset := token.NewFileSet()
	var all []source
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules"),
			d.IsDir() && name != "." && len(modules) > 0 && hasModule(name) && !slices.Contains(modules, name):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		all = append(all, source{name, path.Dir(name), f})
		return err
	})
	return tree{fset, all}, err
}

func hasModule(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(found) > 0
}

// imports returns what a file imports.
func (s source) imports() []string {
	var all []string
	for _, i := range s.file.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		all = append(all, p)
	}
	return all
}

// ours returns the directory of one of our packages.
func ours(importPath string) (dir string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// within reports whether a package is covered by a prefix of the table.
func within(dir, prefix string) bool {
	return dir == prefix || strings.HasSuffix(prefix, "/") && strings.HasPrefix(dir, prefix) ||
		prefix != "." && strings.HasPrefix(dir, prefix+"/") || prefix == "" && dir != "."
}

func TestNothingPointsUp(t *testing.T) {
	_, all := sources(t)
	for _, s := range all {
		if s.test() {
			continue // tests may look from above
		}
		for _, p := range s.imports() {
			if to, ok := ours(p); ok && !mayImport(s.dir, to) {
				t.Errorf("%s imports %s: no arrow leads from %s to %s", s.name, p, s.dir, to)
			}
			for other, where := range onlyHere {
				if strings.HasPrefix(p, other) && !slices.ContainsFunc(where, func(w string) bool { return within(s.dir, w) }) {
					t.Errorf("%s imports %s: only %v may", s.name, p, where)
				}
			}
		}
	}
}

func mayImport(from, to string) bool {
	return within(to, from) || slices.ContainsFunc(arrowsFrom(from).to, func(p string) bool { return within(to, p) })
}

// arrowsFrom returns the line of the table that holds for a package.
func arrowsFrom(dir string) (a arrow) {
	if i := slices.IndexFunc(arrows, func(a arrow) bool { return within(dir, a.from) }); i >= 0 {
		a = arrows[i]
	}
	return a
}

// An arrow that no import follows allows what the design does not need.
func TestEveryArrowIsUsed(t *testing.T) {
	_, all := sources(t)
	used := map[[2]string]bool{}
	for _, s := range all {
		a := arrowsFrom(s.dir)
		for _, p := range s.imports() {
			to, ok := ours(p)
			if !ok || s.test() || within(to, s.dir) {
				continue
			}
			for _, prefix := range a.to {
				used[[2]string{a.from, prefix}] = used[[2]string{a.from, prefix}] || within(to, prefix)
			}
		}
	}
	for _, a := range arrows {
		for _, to := range a.to {
			if !used[[2]string{a.from, to}] && !within(to, a.from) {
				t.Errorf("no import follows the arrow from %q to %q: remove it", a.from, to)
			}
		}
	}
}

// notLinked lists what a package must not link, directly or through others, and why.
var notLinked = map[string][]string{
	"internal/engine": {module + "/internal/command", module + "/internal/session", module + "/internal/servercmd", "net/http",
		"github.com/redis/"},
	"server": {module, module + "/limit", "github.com/redis/", "github.com/prometheus/", "google.golang.org/protobuf",
		"github.com/spf13/cobra", "net/http/pprof"},
	// a program's tests link the engine, and its own client library
	"ebbtest": {module, "github.com/redis/"},
	// .ci/test size bounds it
	"cmd/ebb": {module, module + "/goredis", "github.com/redis/", "github.com/prometheus/", "google.golang.org/protobuf"},
}

// A program that imports the toolkit and one driver links that driver, and no other: not
// the engine where the data is on a server, and no client library where it is in the
// process.
func TestTheToolkitLinksTheDriverThatAProgramImports(t *testing.T) {
	toolkit := []string{"conn", "resp", "internal/direct", "internal/drivers", "internal/kit", "internal/expiries", "internal/fresh",
		"internal/layouts", "internal/locking",
		"internal/nearcache", "internal/numeral", "internal/routing", "internal/wake"} // routing is data
	objects := []string{"limit", "limit/httplimit", "lock", "lock/httpidem",
		"queue", "expmap", "expset", "topic", "stream", "bloom", "unique", "bits", "near", "cache"}
	for _, object := range objects {
		for _, dep := range linked(t, object) {
			if to, ok := ours(dep); ok && !slices.Contains(toolkit, to) && !within(to, "limit") && !within(object, to) &&
				(object != "queue" || to != "internal/cron") {
				t.Errorf("%s links %s: the toolkit is on conn alone", object, to)
			}
			if strings.HasPrefix(dep, "github.com/redis/") {
				t.Errorf("%s links %s", object, dep)
			}
		}
	}
	for _, dep := range linked(t, "limit", "goredis") {
		if to, ok := ours(dep); ok && !slices.Contains(toolkit, to) &&
			!slices.Contains([]string{"limit", "goredis", "conn/driverutil", "internal/remote", "internal/routing", "internal/serverurl"}, to) {
			t.Errorf("limit and goredis link %s: `go list -deps ./limit ./goredis` names what they need", to)
		}
	}
	deps := linked(t, "limit", "embed")
	if !slices.Contains(deps, module+"/internal/engine") {
		t.Errorf("limit and embed do not link the engine: %q", deps)
	}
	for _, dep := range deps {
		if to, _ := ours(dep); strings.HasPrefix(dep, "github.com/redis/") || slices.Contains([]string{".", "goredis", "server"}, to) {
			t.Errorf("limit and embed link %s", dep)
		}
	}
}

// linked returns the import paths of packages, and of all that they import.
func linked(t *testing.T, dirs ...string) []string {
	t.Helper()
	args := []string{"list", "-deps"}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	return strings.Fields(string(out))
}

func TestEngineAndServerPullInNoClient(t *testing.T) {
	for root, forbidden := range notLinked {
		deps := linked(t, root)
		if !slices.Contains(deps, module+"/"+root) {
			t.Errorf("go list -deps ./%s does not name it: %q", root, deps)
		}
		for _, dep := range deps {
			for _, f := range forbidden {
				if dep == f || strings.HasSuffix(f, "/") && strings.HasPrefix(dep, f) || f != module && strings.HasPrefix(dep, f+"/") {
					t.Errorf("%s links %s; `go list -deps` and `go mod why` say through what", root, dep)
				}
			}
		}
	}
}

// clockReaders may call time.Now, by path prefix, and why.
var clockReaders = map[string]string{
	"clock/":                                 "it is the clock",
	"internal/cli/":                          "a program's front end: prompts and --latency",
	"internal/loadgen/":                      "it measures",
	"cmd/ebb/":                               "the program",
	"internal/doctor/doctor.go":              "default of Options.Clock",
	"internal/migrate/":                      "it measures, and patience with other servers",
	"internal/nearcache/":                    "how long a value without reports of changes is kept in the process",
	"internal/reactor/":                      "default of Config.Now, and timeouts of sockets, which the system counts",
	"internal/transport/server.go":           "default of Options.Now",
	"internal/transport/portable.go":         "deadlines of sockets, which the system counts",
	"internal/commands/migrate.go":           "deadlines of sockets, to another server",
	"internal/memnet/":                       "deadlines, as a net.Conn has them",
	"internal/testing/realserver/":           "patience with another process",
	"internal/testing/wires/clock_":          "the machine's time, of which deadlines in a bubble are freed",
	"internal/testing/wires/wires.go":        "deadlines, as a net.Conn has them",
	"internal/testing/hangtest/":             "it measures how long calls take",
	"internal/testing/transcript/server.go":  "deadlines of sockets, to other servers",
	"internal/oplog/appendround.go":          "how long a sync takes",
	"internal/test/chaostest/client/":        "it says how wrong its clock is",
	"internal/testing/modeltest/campaign.go": "how long a campaign may take",
	"examples/sliding-window/":               "a limiter by hand uses the client's clock, which is its fault",
	"examples/funnel/":                       "it measures how long a wait was",
	"internal/sessions/":                     "the end of a session, an instant of the program as in the libraries",
	"internal/kit/rules.go":                  "how long a release takes, by the monotonic clock",
	"limit/local.go":                         "spans in this process, by the monotonic clock: an outage, and the permits meanwhile",
	"examples/tour/":                         "it shows how late things are",
	"examples/expiry-strategy/":              "it measures how late things are",
	"examples/unpaid-orders/":                "it measures how late things are",
	"examples/cache-under-load/":             "it measures how long reads take",
	"examples/sidekiq-schedule/":             "it measures how late jobs are",
	"examples/bullmq-delayed/":               "it measures how late jobs are",
	"internal/testing/testreport/":           "it measures how long steps take",
	"internal/testing/history/":              "the instants of operations, of which a checker takes the order",
	"internal/testing/draw/draw.go":          "a campaign of random tests lasts as long as its flag says",
	"redisson/ratelimiter.go":                "how long a call has waited, by the monotonic clock",
	"queue/metrics.go":                       "it measures how long functions take, by the monotonic clock",
	"internal/locking/lease.go":              "a lease is counted by the local monotonic clock too, on the safe side",
}

func TestOnlyTheClockReadsTheTime(t *testing.T) {
	eachCall(t, func(at token.Position, s source, pkg, name string) {
		if s.test() || pkg != "time" || name != "Now" {
			return
		}
		for prefix := range clockReaders {
			if strings.HasPrefix(s.name, prefix) {
				return
			}
		}
		t.Errorf("%s: time.Now: engine time comes from a Clock, as an argument", at)
	})
}

func TestNoTestSleepsOnTheWallClock(t *testing.T) {
	eachCall(t, func(at token.Position, s source, pkg, name string) {
		if !s.test() || pkg != "time" || name != "Sleep" || slices.Contains(s.imports(), "testing/synctest") {
			return // in a bubble a sleep takes no time
		}
		t.Errorf("%s: time.Sleep: use a manual clock, a synctest bubble, or wait for the event", at)
	})
}

// How long a test waits in vain depends on the machine: tier.Patience, a multiple or a fraction of it. time.After of a literal is well
// in a bubble, where it takes no time.
func TestAWaitIsAsLongAsTheMachineNeeds(t *testing.T) {
	fset, all := tests(t)
	for _, s := range all {
		if slices.Contains(s.imports(), "testing/synctest") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isCall(call, "time", "After") {
				return true
			}
			ast.Inspect(call.Args[0], func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok && (isName(sel, "time", "Second") || isName(sel, "time", "Minute")) {
					t.Errorf("%s: time.After of time.%s: use tier.Patience", fset.Position(n.Pos()), sel.Sel.Name)
				}
				return true
			})
			return true
		})
	}
}

func isCall(call *ast.CallExpr, pkg, name string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && isName(sel, pkg, name)
}

func isName(sel *ast.SelectorExpr, pkg, name string) bool {
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && sel.Sel.Name == name
}

// A test that draws without a seed is red by chance, and its failure cannot be repeated.
func TestTestsDrawFromASeed(t *testing.T) {
	seeded := []string{"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "Zipf"}
	fset, all := tests(t)
	eachCallIn(fset, all, func(at token.Position, s source, pkg, name string) {
		switch {
		case s.dir == "internal/testing/draw" || s.dir == "bench": // a benchmark measures, and cannot be red by chance
		case pkg == "rapid" && (name == "Check" || name == "MakeCheck"):
			t.Errorf("%s: rapid.%s: use draw.Check, which takes the seed of the run", at, name)
		case pkg == "rand" && !slices.Contains(seeded, name) && !slices.Contains(s.imports(), "crypto/rand"):
			t.Errorf("%s: rand.%s has no seed: use draw.Rand", at, name)
		}
	})
}

// A skip that is not counted looks like a test that passed. realserver.Require reports it
// to make test, and fails if EBB_REQUIRE forbids skips. Tests that mean nothing somewhere
// are not made there: backends.Virtual, backends.Except. rapid's own Skip draws again.
func TestEverySkipIsCounted(t *testing.T) {
	fset, all := tests(t)
	for _, s := range all {
		if !s.test() || s.dir == "internal/testing/realserver" || s.dir == "bench" { // bench has benchmarks, which nothing runs but a person
			continue
		}
		for _, d := range s.file.Decls {
			skips(d, nil, func(at token.Pos) {
				t.Errorf("%s: a skip that is not counted: use realserver.Require, or have no such test", fset.Position(at))
			})
		}
	}
}

// The race step leaves out the tests that call tier.Sequential. Such a test starts no goroutine and has no parallel part.
func TestASequentialTestStartsNoGoroutine(t *testing.T) {
	fset, all := tests(t)
	found := 0
	for _, s := range all {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || !callsSequential(f) {
				continue
			}
			found++
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s: %s calls tier.Sequential and starts a goroutine: the race step must run it", fset.Position(n.Pos()), f.Name.Name)
				case *ast.SelectorExpr:
					if n.Sel.Name == "Go" || n.Sel.Name == "Parallel" || isName(n, "synctest", "Test") {
						t.Errorf("%s: %s calls tier.Sequential and %s: the race step must run it", fset.Position(n.Pos()), f.Name.Name, n.Sel.Name)
					}
				}
				return true
			})
		}
	}
	if found == 0 {
		t.Error("no test calls tier.Sequential")
	}
}

func callsSequential(f *ast.FuncDecl) (calls bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		calls = calls || ok && isCall(call, "tier", "Sequential")
		return !calls
	})
	return calls
}

// A step that chooses or leaves out tests by name must not do so by a name that is gone.
func TestStepsNameTestsThatExist(t *testing.T) {
	script, err := os.ReadFile(".ci/test")
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	begins := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range begins.FindAllSubmatch(text, -1) {
			tests = append(tests, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	recipes, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`-run '?([\w|]+)`).FindAllSubmatch(recipes, -1) {
		if !slices.ContainsFunc(tests, regexp.MustCompile(string(m[1])).MatchString) {
			t.Errorf("Makefile: no test has a name with %s", m[1])
		}
	}
	chosen := ""
	for _, m := range regexp.MustCompile(`(?m)^chosen=[$a-z]*'([^']*)'$`).FindAllSubmatch(script, -1) {
		chosen += string(m[1])
	}
	names, begun := strings.CutPrefix(chosen, "^Test(")
	names, ended := strings.CutSuffix(names, ")$")
	if !begun || !ended {
		t.Fatalf(".ci/test: chosen is %q, want ^Test(NAME|NAME...)$", chosen)
	}
	for name := range strings.SplitSeq(names, "|") {
		if !slices.Contains(tests, "Test"+name) {
			t.Errorf(".ci/test: no test has the name Test%s, which is in chosen", name)
		}
	}
}

func TestTestsFindProgramsByRealserver(t *testing.T) {
	eachCall(t, func(at token.Position, s source, pkg, name string) {
		if s.test() && s.dir != "internal/testing/realserver" && name == "LookPath" {
			t.Errorf("%s: LookPath: use realserver.Program, which starts no program with -short", at)
		}
	})
}

// skips visits the calls of Skip, Skipf and SkipNow of what package testing gives to
// tests: the parameters that are in view have the types in types.
func skips(n ast.Node, types map[string]string, visit func(at token.Pos)) {
	ast.Inspect(n, func(x ast.Node) bool {
		switch f := x.(type) {
		case *ast.FuncDecl:
			if f.Body != nil {
				skips(f.Body, withParams(types, f.Type), visit)
			}
			return false
		case *ast.FuncLit:
			skips(f.Body, withParams(types, f.Type), visit)
			return false
		case *ast.SelectorExpr:
			v, ok := f.X.(*ast.Ident)
			if ok && strings.HasPrefix(types[v.Name], "testing.") && (f.Sel.Name == "Skip" || f.Sel.Name == "Skipf" || f.Sel.Name == "SkipNow") {
				visit(f.Pos())
			}
		}
		return true
	})
}

func withParams(types map[string]string, f *ast.FuncType) map[string]string {
	all := maps.Clone(types)
	if all == nil {
		all = map[string]string{}
	}
	for _, p := range f.Params.List {
		of := p.Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		name := ""
		if sel, ok := of.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok {
				name = pkg.Name + "." + sel.Sel.Name
			}
		}
		for _, n := range p.Names {
			all[n.Name] = name
		}
	}
	return all
}

func TestNothingRunsBeforeMain(t *testing.T) {
	fset, all := sources(t)
	for _, s := range all {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: init: have a constructor do it", fset.Position(f.Pos()))
			}
		}
	}
}

// eachCall visits the mentions of functions of the standard library, called or
// passed on: pkg.name.
func eachCall(t *testing.T, visit func(at token.Position, s source, pkg, name string)) {
	fset, all := sources(t)
	eachCallIn(fset, all, visit)
}

func eachCallIn(fset *token.FileSet, all []source, visit func(at token.Position, s source, pkg, name string)) {
	for _, s := range all {
		ast.Inspect(s.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok {
				visit(fset.Position(sel.Pos()), s, x.Name, sel.Sel.Name)
			}
			return true
		})
	}
}
