package effecttest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// programs are the servers that ebb is compared with, and the word that
// internal/config/testdata/directives.txt has for each.
var programs = map[string]string{realserver.Redis7: "redis-7.0.15", realserver.Redis8: "redis-8.0.6", realserver.Valkey9: "valkey-9.1.2"}

// knownTo returns the directives that each program knows.
func knownTo(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../config/testdata/directives.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]bool{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		for program, name := range programs {
			if len(words) > 0 && words[0] == name {
				known[program] = map[string]bool{"rename-command": true, "user": true, "include": true}
				for _, w := range words[1:] {
					known[program][w] = true
				}
			}
		}
	}
	if len(known) != len(programs) {
		t.Fatalf("directives.txt has lines for %d of the servers", len(known))
	}
	return known
}

// outcome is the outcome of playing a section on a program.
type outcome struct {
	seen []string
	err  error
}

// job is some sections that share a process of a program.
type job struct {
	program  string
	options  string
	sections []*section
	player   *player
}

// errBefore is for sections whose process an earlier one has spoiled.
var errBefore = errors.New("the process is not as it should be")

// atOnce is the number of jobs that run at a time. Most of them wait for events.
const atOnce = 6

var only = flag.String("effect.only", "", "play the sections alone whose names match this pattern")

// Each directive, limit and field that a script is about has the same effect on ebb and on
// each server that knows it.
func TestEffectsAreThoseOfTheServers(t *testing.T) {
	all, known, ebb := sections(t), knownTo(t), realserver.Ebb(t)
	var jobs []*job
	for _, program := range []string{ebb, realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		if program != ebb && !realserver.Has(program) {
			t.Run(program, func(t *testing.T) { realserver.NewProcess(t, program) }) // skips, and is counted
			delete(known, program)
			continue
		}
		jobs = append(jobs, arrange(t, program, known[program], all)...)
	}
	results := runAll(jobs)
	for _, program := range []string{realserver.Redis7, realserver.Redis8, realserver.Valkey9} {
		if known[program] == nil {
			continue
		}
		t.Run(program, func(t *testing.T) {
			for _, s := range all {
				if theirs, ok := results[program][s]; ok {
					compare(t, program, s, results[ebb][s], theirs)
				}
			}
			if *only != "" {
				return
			}
			report(t, program, all, known[program], results[program])
		})
	}
}

// arrange makes the jobs of a program: those sections that need processes of their own, and
// the others by their options.
func arrange(t *testing.T, program string, known map[string]bool, all []*section) (jobs []*job) {
	shared := map[string]*job{}
	for _, s := range all {
		if slices.Contains(s.without, program) || known != nil && s.kind == "directive" &&
			slices.ContainsFunc(s.about, func(name string) bool { return !known[name] }) {
			continue
		}
		options := s.start
		j := shared[options]
		if s.alone() || j == nil {
			j = &job{program: program, options: options, player: &player{
				verbs: newVerbs(), options: options, main: realserver.NewProcess(t, program),
				peers: map[string]*realserver.Process{}, conns: map[string]*conn{}, initial: map[string]string{},
			}}
			jobs = append(jobs, j)
			if strings.Contains(options, "{free}") {
				j.player.free = realserver.FreePort(t)
			}
			if s.alone() {
				j.player.spare = []*realserver.Process{realserver.NewProcess(t, program), realserver.NewProcess(t, program)}
			} else {
				shared[options] = j
			}
		}
		j.sections = append(j.sections, s)
	}
	return jobs
}

// runAll runs jobs, some at a time, and returns what was observed by program and section.
func runAll(jobs []*job) map[string]map[*section]outcome {
	var mu sync.Mutex
	results := map[string]map[*section]outcome{}
	todo := make(chan *job, len(jobs))
	// Those that wait longest first.
	slices.SortStableFunc(jobs, func(a, b *job) int { return len(b.sections) - len(a.sections) })
	for _, j := range jobs {
		todo <- j
	}
	close(todo)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for j := range todo {
				j.run(func(s *section, o outcome) {
					mu.Lock()
					defer mu.Unlock()
					if results[j.program] == nil {
						results[j.program] = map[*section]outcome{}
					}
					results[j.program][s] = o
				})
			}
		})
	}
	group.Wait()
	return results
}

func (j *job) run(done func(*section, outcome)) {
	p := j.player
	defer func() {
		for name := range p.conns {
			_ = p.leave(name, "")
		}
		p.main.Kill()
		for _, peer := range p.peers {
			peer.Kill()
		}
	}()
	alone := len(j.sections) == 1 && j.sections[0].alone()
	var failed error
	if err := begin(p.main, p.replace(j.options)); err != nil {
		failed = err
	} else if running, err := p.ready(p.main); err != nil || !running {
		failed = fmt.Errorf("%s does not start with %q: %v; it said: %s", j.program, j.options, err, p.main.Said())
	}
	for _, s := range j.sections {
		if failed != nil {
			done(s, outcome{nil, failed})
			failed = errBefore
			continue
		}
		seen, err := p.play(s)
		done(s, outcome{seen, err})
		if !alone {
			failed = p.undo()
		}
	}
}

// compare compares what a section has shown on ebb and on a server.
func compare(t *testing.T, program string, s *section, ours, theirs outcome) {
	t.Helper()
	for name, o := range map[string]outcome{"ebb": ours, program: theirs} {
		if o.err != nil && !errors.Is(o.err, errBefore) {
			t.Errorf("%s: %s on %s: %v\nso far:\n%s", s.at, s.name(), name, o.err, strings.Join(o.seen, "\n"))
		}
	}
	if ours.err != nil || theirs.err != nil {
		return
	}
	allowed := ""
	for _, id := range s.differs {
		covered, err := compat.Covers(id, program)
		if err != nil {
			t.Errorf("%s: %v", s.at, err)
		}
		if covered {
			allowed = id
		}
	}
	same := slices.Equal(ours.seen, theirs.seen)
	switch {
	case same && allowed != "":
		t.Errorf("%s: %s: ebb does as %s, and the difference %s is named", s.at, s.name(), program, allowed)
	case !same && allowed == "":
		t.Errorf("%s: %s\n%s", s.at, s.name(), difference(ours.seen, theirs.seen, program))
	}
}

// difference shows two texts side by side where they part.
func difference(ours, theirs []string, program string) string {
	var b strings.Builder
	for i := range max(len(ours), len(theirs)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(nothing)"
		}
		if a, c := line(ours), line(theirs); a == c {
			fmt.Fprintf(&b, "      %.300s\n", a)
		} else {
			fmt.Fprintf(&b, "  ebb %.1000s\n      %.1000s  <- %s\n", a, c, program)
		}
	}
	return b.String()
}

// report prints how many directives with an effect were compared by it, and why the others
// were not.
func report(t *testing.T, program string, all []*section, known map[string]bool, results map[*section]outcome) {
	t.Helper()
	played, counts := map[string]bool{}, map[string]int{}
	for _, s := range all {
		if _, ok := results[s]; !ok {
			continue
		}
		counts[s.kind]++
		for _, name := range s.about {
			played[name] = true
		}
	}
	var effect, compared int
	var none, rest []string
	for _, d := range config.Directives() {
		if !known[d.Name] && (d.Alias == "" || !known[d.Alias]) {
			continue
		}
		switch {
		case d.Unused != "":
			none = append(none, d.Name)
		case played[d.Name]:
			effect++
			compared++
		default:
			effect++
			rest = append(rest, d.Name)
			if notCompared[d.Name] == "" {
				t.Errorf("%s has an effect, and no section; say why in notCompared", d.Name)
			}
		}
	}
	t.Logf("directives compared by effect: %d of %d with an effect, in %d sections", compared, effect, counts["directive"])
	t.Logf("limits compared: %d; fields and sections of INFO compared by cause: %d", counts["limit"], counts["info"])
	for _, name := range rest {
		t.Logf("not compared: %-32s %s", name, notCompared[name])
	}
	t.Logf("without an effect in ebb: %d: %s", len(none), strings.Join(none, " "))
}

// notCompared are directives with an effect that no section is about, and why.
var notCompared = map[string]string{
	"aof-rewrite-incremental-fsync": noSight,
	"rdb-save-incremental-fsync":    noSight,
	"no-appendfsync-on-rewrite":     noSight,
	"tcp-backlog":                   "the system's queue of connections shows to no client",
	"tcp-keepalive":                 "the probes of an idle connection show to no client",
	"bind-source-addr":              "needs a second address of the machine",
	"protected-mode":                "needs an address that is not loopback",
	"daemonize":                     "the process that the runner holds would end; cmd/ebb tests it",
	"io-loops":                      "threads of ebb and of the servers are not the same thing",
	"lfu-decay-time":                "needs a minute",
	"propagation-error-behavior":    "needs a replication stream with an error in it, which no server of the kind sends; command tests it",
	"repl-diskless-load":            "the replies are the same either way; replication's tests look into the replica",
	"repl-timeout":                  "needs a link that is silent for longer than a ping period, more than ten seconds in all",
	"shutdown-timeout":              "needs a replica that lags for seconds",
	"supervised":                    "needs a service manager",
	"unixsocketgroup":               "needs a second group",
	"tls-auth-clients":              noCertificates, "tls-ca-cert-dir": noCertificates, "tls-ca-cert-file": noCertificates,
	"tls-cert-file": noCertificates, "tls-client-cert-file": noCertificates, "tls-client-key-file": noCertificates,
	"tls-key-file": noCertificates, "tls-port": noCertificates,
	"tls-protocols": noCertificates, "tls-replication": noCertificates,
}

const (
	noSight        = "when the system writes to the disk shows to no client"
	noCertificates = "needs certificates; the tests of server have them, without another server"
)

func TestWhatIsNotComparedIsADirectiveWithAnEffect(t *testing.T) {
	for name := range notCompared {
		if d := config.Lookup(name); d == nil || d.Unused != "" {
			t.Error(errors.New(name + " has no effect in ebb, or is not a directive"))
		}
	}
}
