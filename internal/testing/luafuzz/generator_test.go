package luafuzz

import (
	"strings"
	"testing"
)

// pretender answers with the request, or with what wrong makes of it.
type pretender struct{ wrong func(string) string }

func (p pretender) Run(requests []string) ([]string, error) {
	answers := make([]string, len(requests))
	for i, r := range requests {
		answers[i] = r
		if p.wrong != nil {
			answers[i] = p.wrong(r)
		}
	}
	return answers, nil
}

func (pretender) Close() {}

func TestASeedGivesOneProgram(t *testing.T) {
	different := 0
	for seed := range uint64(200) {
		a, b := NewProgram(seed).Text(), NewProgram(seed).Text()
		if a != b {
			t.Fatalf("seed %d gives\n%s\nand\n%s", seed, a, b)
		}
		if a != NewProgram(seed+1).Text() {
			different++
		}
		if a, b := NewExpression(seed).Text(), NewExpression(seed).Text(); a != b {
			t.Fatalf("seed %d gives\n%s\nand\n%s", seed, a, b)
		}
	}
	if different < 190 {
		t.Fatalf("only %d of 200 neighbours differ", different)
	}
}

func TestADifferenceIsMadeSmall(t *testing.T) {
	const cause = "math.fmod("
	c := campaign{ours: pretender{func(r string) string {
		if strings.Contains(r, cause) {
			return "wrong"
		}
		return r
	}}, oracle: pretender{}, name: "the truth", mode: Run, allowed: map[string]int{}}
	found := 0
	for seed := uint64(0); found < 10; seed++ {
		p := NewProgram(seed)
		if p.Compile || !strings.Contains(p.Text(), cause) {
			continue
		}
		found++
		if report := c.fault(t, p, seed, different{}); !strings.Contains(report, "wrong") {
			t.Fatalf("seed %d: the report is\n%s", seed, report)
		}
		if text := p.Text(); !strings.Contains(text, cause) || strings.Count(text, "\n") > 8 {
			t.Errorf("seed %d was only made\n%s", seed, text)
		}
	}
}

// A difference that does not show again is our fault if our machine is what has changed.
func TestAMachineThatDoesNotPrintTheSameAgainIsAFault(t *testing.T) {
	for _, steady := range []bool{false, true} {
		c := campaign{ours: pretender{}, steady: steady, oracle: pretender{}, name: "the truth", mode: Run, allowed: map[string]int{}}
		report := c.fault(t, NewProgram(1), 1, different{ours: "what it printed first"})
		if strings.Contains(report, "what it printed first") != steady || c.passing == 1 == steady {
			t.Errorf("steady %v: the report is %q, and %d did not show again", steady, report, c.passing)
		}
	}
}

func TestEveryFunctionOfTheLibrariesIsCalled(t *testing.T) {
	var all strings.Builder
	for seed := range uint64(3000) {
		all.WriteString(NewProgram(seed).Text())
	}
	for _, b := range builtins {
		if name, _, _ := strings.Cut(b.name, "$"); !strings.Contains(all.String(), name) {
			t.Errorf("%s is never called", name)
		}
	}
	for event := range metamethods {
		if !strings.Contains(all.String(), event+" = ") {
			t.Errorf("%s is never defined", event)
		}
	}
}

func TestWhatMayDifferIsRecognized(t *testing.T) {
	lines := strings.Repeat("handler\n", 190)
	for _, tt := range []struct {
		oracle, ours, theirs string
		want                 bool
	}{
		{"redis-server", "a\n" + lines + "b", "a\n" + lines + "handler\nc", true},
		{"redis-server", "a\n" + lines + "b", "b\n" + lines + "b", false},
		{"redis-server", "a\n" + lines + "b", "a\nb", false},
		{"redis-server", "field 'x257'\n" + lines + "b", "field '?'\n" + lines + "handler\nc", true},
		{"redis-server", "field 'x257'\nb", "field '?'\nc", false},
		{"redis-server", "x", "nesting of [[...]] is deprecated", false},
		{"lua5.1", "x", "nesting of [[...]] is deprecated", true},
		{"lua5.1", "x", "y", false},
	} {
		if reason := allowed(tt.oracle, tt.ours, tt.theirs); (reason != "") != tt.want {
			t.Errorf("%.30q and %.30q on %s: %q", tt.ours, tt.theirs, tt.oracle, reason)
		}
	}
}
