package commands_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/testing/transcript"
)

// TestTranscriptsAgreeInRESP3 plays the cases again on connections that begin with HELLO 3: first on ebb, to
// record the replies, and then on a real server.
func TestTranscriptsAgreeInRESP3(t *testing.T) {
	tier.Sequential(t)
	for _, program := range compat.All.Programs() {
		t.Run(program, func(t *testing.T) {
			o, i, changed := newOracle(t, program), 0, 0
			o.eachCase(t, func(c *transcript.Case) {
				if i++; tier.Share(i) && fitForRESP3(c) && o.unfit(t, c) == "" {
					if recorded := inRESP3(t, c); recorded != nil {
						for i := range c.Steps {
							if !slices.Equal(c.Steps[i].Reply, recorded.Steps[i].Reply) {
								changed++
							}
						}
						o.speaking = 3
						o.play(t, recorded)
					}
				}
			})
			o.same = map[string]int{} // some cases are not played, so a difference may not show
			o.report(t)
			if changed == 0 {
				t.Error("no reply of RESP3 differs from that of RESP2: HELLO 3 has no effect")
			}
			t.Logf("%s: %d replies differ from those of RESP2", program, changed)
		})
	}
}

// fitForRESP3 reports whether a case does not test the protocol itself, and its replies can be recorded.
func fitForRESP3(c *transcript.Case) bool {
	return len(c.Differs) == 0 && !slices.ContainsFunc(c.Steps, func(s transcript.Step) bool {
		first := ""
		if len(s.Args) > 0 {
			first = strings.ToLower(s.Args[0])
		}
		return strings.Contains(s.Text+strings.Join(s.Reply, ""), "$") || slices.Contains([]string{"hello", "reset", "quit", "auth"}, first)
	})
}

// inRESP3 returns the case with ebb's replies in RESP3.
func inRESP3(t *testing.T, c *transcript.Case) *transcript.Case {
	t.Helper()
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	again := *c
	again.Steps = slices.Clone(c.Steps)
	if err := greet(e, c); err != nil {
		t.Fatal(err)
	}
	if err := transcript.Play(&again, e, transcript.Rules{Record: true}); err != nil {
		if !errors.As(err, new(*transcript.Mismatch)) {
			t.Error(err)
		}
		return nil
	}
	return &again
}

// greet begins each connection of a case with HELLO 3.
func greet(target transcript.Target, c *transcript.Case) error {
	for conn := 1; conn < 10; conn++ {
		if !slices.ContainsFunc(c.Steps, func(s transcript.Step) bool { return s.Conn == conn }) {
			continue
		}
		if err := target.Send(conn, []string{"HELLO", "3"}); err != nil {
			return err
		}
		if _, ok := target.Next(conn); !ok {
			return fmt.Errorf("%s:%d: HELLO 3 has no reply", c.File, c.Line)
		}
	}
	return nil
}
