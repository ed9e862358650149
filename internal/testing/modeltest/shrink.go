package modeltest

import (
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/testing/transcript"
)

// Shrink removes operations from a failing sequence, in ever smaller pieces, as
// long as it still fails (delta debugging). It calls fails at most budget times.
func Shrink(ops []Op, budget int, fails func([]Op) bool) []Op {
	for size := len(ops) / 2; size > 0; {
		removed := false
		for at := 0; at+size <= len(ops) && budget > 0; {
			budget--
			without := append(append([]Op(nil), ops[:at]...), ops[at+size:]...)
			if fails(without) {
				ops, removed = without, true
			} else {
				at += size
			}
		}
		if budget <= 0 {
			break
		}
		if !removed || size > len(ops) {
			size /= 2
		}
	}
	return ops
}

// Report shows a fault with its sequence, as a transcript that can be kept.
func Report(server string, f *Fault, ops []Op, seed uint64) string {
	if f == nil {
		return "no fault"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "ebb differs from %s in the %s", server, f.What)
	if f.At < len(ops) {
		fmt.Fprintf(&b, " %d> %s", ops[f.At].Conn, transcript.Line(ops[f.At].Args))
		ops = ops[:f.At+1]
	}
	fmt.Fprintf(&b, " (seed %d)\nebb:\n%s\n%s:\n%s\n", seed, indent(f.Ours), server, indent(f.Theirs))
	steps := Steps(ops)
	if f.At < len(ops) && f.What == "reply to" {
		steps[len(steps)-1].Reply = strings.Split(f.Theirs, "\n")
	}
	b.WriteString(transcript.Format(transcript.Case{Title: "found by comparing", Steps: steps}))
	return b.String()
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
