package modeltest

import (
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/servercmd"
)

// A command that is added to the table gets draws of its own, and changes no step that does not draw it: the random tests of a
// change are those of the commit before, and some more.
func TestANewCommandChangesNoOtherDraw(t *testing.T) {
	specs := servercmd.Specs()
	get := specs[slices.IndexFunc(specs, func(s *command.Spec) bool { return s.Name == "get" })]
	for _, name := range []string{"aaa", "hnew", "zzz", "getmore", "dq.what", "x", "rl.other", "spopdue", "tt", "neverseen"} {
		more := *get
		more.Name = name
		before, after := steps(t, specs), steps(t, append(slices.Clone(specs), &more))
		other, own := 0, 0
		for i := range before {
			switch {
			case before[i] == after[i]:
			case strings.Contains(strings.ToLower(after[i]), name):
				own++
			default:
				other++
				t.Errorf("with a command %s, step %d is\n%sand was\n%s", name, i, after[i], before[i])
			}
			if other > 2 {
				break
			}
		}
		if own == 0 {
			t.Errorf("%s was never drawn in %d steps", name, len(before))
		}
	}
}

// steps returns the steps of thirty sequences over the commands of a table.
func steps(t *testing.T, specs []*command.Spec) (all []string) {
	t.Helper()
	table, err := command.NewTable(specs...)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(30) {
		g := NewOwnGenerator(seed+1, table)
		for range 400 {
			g.next()
			all = append(all, showOps(g.some()))
		}
	}
	return all
}
