package luafuzz

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"

	"github.com/ebbdb/ebb/internal/testing/draw"
)

var (
	luaTime    = flag.Duration("lua.time", 0, "how long programs, and expressions, are compared with each oracle; 0: a fixed number of rounds")
	luaSeed    = flag.Uint64("lua.seed", 0, "the seed of the first program; 0: see package draw")
	luaFaults  = flag.Int("lua.faults", 5, "after how many faults a campaign ends")
	luaBetween = flag.Bool("lua.between", false, "compare lua5.1 with redis-server, to see what the generator must not depend on")
)

// batch is the number of programs that are run between two readings of the clock.
const batch = 50

// shrinkings is the number of programs that may be tried to make a failing one smaller.
const shrinkings = 3000

func TestRandomProgramsDoAsOnLua51(t *testing.T)       { againstStock(t, NewProgram) }
func TestRandomProgramsDoAsOnRedis(t *testing.T)       { againstRedis(t, NewProgram) }
func TestRandomExpressionsYieldAsOnLua51(t *testing.T) { againstStock(t, NewExpression) }
func TestRandomExpressionsYieldAsOnRedis(t *testing.T) { againstRedis(t, NewExpression) }

func againstStock(t *testing.T, generate func(seed uint64) *Program) {
	c := campaign{ours: Ours{}, steady: true, oracle: startStock(t), name: "lua5.1", mode: Run}
	c.run(t, generate)
}

func againstRedis(t *testing.T, generate func(seed uint64) *Program) {
	c := campaign{ours: Ours{}, steady: true, oracle: startRedis(t), name: "redis-server", mode: Script}
	if *luaBetween {
		c.ours, c.steady = startStock(t), false
	}
	c.run(t, generate)
}

func startStock(t *testing.T) *Stock {
	realserver.Program(t, "lua5.1")
	s, err := NewStock()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func startRedis(t *testing.T) *Redis {
	p := realserver.NewProcess(t, "redis-server", "--save", "", "--busy-reply-threshold", "1000")
	p.Start()
	r, err := NewRedis(p.Addr(), func() { p.Kill(); p.Start() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// luaRounds is the number of batches without a flag.
const luaRounds = 4

// campaign compares what programs print on two machines.
type campaign struct {
	ours, oracle Machine
	steady       bool   // ours prints the same each time, or that is a fault
	name         string // of the oracle
	mode         Mode
	programs     int
	skipped      int // took too long or too much memory on either
	passing      int // differences that the oracle did not show again
	allowed      map[string]int
}

func (c *campaign) run(t *testing.T, generate func(seed uint64) *Program) {
	t.Helper()
	c.allowed = map[string]int{}
	seed := draw.Seed(t, *luaSeed)
	faults := 0
	for range draw.Rounds(*luaTime/2, luaRounds) {
		if faults >= *luaFaults {
			break
		}
		var programs []*Program
		var seeds []uint64
		for len(programs) < batch {
			p := generate(seed)
			if p.Only == "" || p.Only == c.name && !*luaBetween {
				programs, seeds = append(programs, p), append(seeds, seed)
			}
			seed++
		}
		for _, d := range c.differing(t, programs, seeds) {
			if report := c.fault(t, programs[d.at], seeds[d.at], d); report != "" && faults < *luaFaults {
				t.Error(report)
				faults++
			}
		}
	}
	t.Logf("%d programs, %d too long for a comparison, %d differences that %s did not show again, allowed: %v",
		c.programs, c.skipped, c.passing, c.name, c.allowed)
}

// different is a program, by its place in a batch, and what it has printed.
type different struct {
	at           int
	ours, theirs string
}

// differing runs programs on both machines and returns which do not do the same.
func (c *campaign) differing(t *testing.T, programs []*Program, seeds []uint64) (all []different) {
	requests := make([]string, len(programs))
	for i, p := range programs {
		requests[i] = p.Request(c.mode)
	}
	c.programs += len(programs)
	theirs, err := c.oracle.Run(requests)
	if err == nil {
		var ours []string
		if ours, err = c.ours.Run(requests); err == nil {
			for i := range programs {
				if !c.same(ours[i], theirs[i], true) {
					all = append(all, different{i, ours[i], theirs[i]})
				}
			}
			return all
		}
	}
	// One of them does not end, or ended the process: find it.
	for i, r := range requests {
		if ours, theirs, differ, err := c.compare(r, true); err != nil {
			c.skipped++
			t.Logf("skipped (seed %d): %v", seeds[i], err)
		} else if differ {
			all = append(all, different{i, ours, theirs})
		}
	}
	return all
}

// compare runs one program on both machines. An error is that of the oracle.
func (c *campaign) compare(request string, counted bool) (ours, theirs string, differ bool, err error) {
	x, err := c.ours.Run([]string{request})
	if err != nil {
		return "", "", false, err
	}
	y, err := c.oracle.Run([]string{request})
	if err != nil {
		return "", "", false, err
	}
	return x[0], y[0], !c.same(x[0], y[0], counted), nil
}

// same compares outputs, with the list of allowed differences.
func (c *campaign) same(ours, theirs string, counted bool) bool {
	if ours == theirs {
		return true
	}
	if theirs == tooMany || strings.Contains(theirs, "not enough memory") || strings.Contains(theirs, tooMany) {
		if counted {
			c.skipped++
		}
		return true
	}
	if reason := allowed(c.name, ours, theirs); reason != "" {
		if counted {
			c.allowed[reason]++
		}
		return true
	}
	return false
}

// fault makes a program that differs smaller and describes it; "" if the oracle prints something else the next time.
func (c *campaign) fault(t *testing.T, p *Program, seed uint64, d different) string {
	fails := func(request string) bool {
		// A variable whose declaration went is an error on redis-server alone.
		ours, theirs, differ, err := c.compare(request, false)
		return err == nil && differ && ours != tooMany && !strings.Contains(theirs, "nonexistent global")
	}
	for range 3 {
		ours, theirs, differ, err := c.compare(p.Request(c.mode), false)
		if c.steady && err == nil && ours != d.ours && ours != tooMany && d.ours != tooMany {
			first, second := around(d.ours, ours)
			return fmt.Sprintf("package lua does not print the same again (seed %d)\nprogram:\n%s\nfirst:\n%s\nthen:\n%s\n", seed,
				indent(p.Text()), indent(first), indent(second))
		}
		if err != nil || !differ {
			c.passing++
			t.Logf("seed %d: %s did not show it again: %v\nfirst:\n%s\nthen:\n%s", seed, c.name, err, indent(d.theirs), indent(theirs))
			return ""
		}
	}
	p.Shrink(c.mode, shrinkings, fails)
	ours, theirs, _, err := c.compare(p.Request(c.mode), false)
	if err != nil {
		t.Logf("seed %d: %v", seed, err)
	}
	text := p.Text()
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r > '~' }) {
		text += "\n" + strconv.Quote(text)
	}
	ours, theirs = around(ours, theirs)
	return fmt.Sprintf("differs from %s (seed %d)\nprogram:\n%s\nours:\n%s\n%s:\n%s\n", c.name, seed, indent(text),
		indent(ours), c.name, indent(theirs))
}

// around cuts two outputs to what is near their first difference.
func around(a, b string) (string, string) {
	const before, after = 6, 16
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	first := 0
	for first < min(len(as), len(bs)) && as[first] == bs[first] {
		first++
	}
	cut := func(lines []string) string {
		from, to := max(0, first-before), min(len(lines), first+after)
		text := strings.Join(lines[from:to], "\n")
		if from > 0 {
			text = fmt.Sprintf("(%d lines)\n%s", from, text)
		}
		if to < len(lines) {
			text += fmt.Sprintf("\n(%d lines)", len(lines)-to)
		}
		return text
	}
	return cut(as), cut(bs)
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}
