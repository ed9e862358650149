package gen

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/compat"
)

// CompatDir is the directory of Compatibility's page, below the repository's root.
const CompatDir = "docs"

const compatHead = `<!-- Generated from internal/compat by ` + "`make docs`" + `; changes are lost. -->
# Compatibility

The tests compare ebb with Redis 7.0.15, Redis 8.0.6 and Valkey 9.1.2: they play the
transcripts of all commands on these servers, and random sequences of commands, and they compare
the descriptions of the commands, the stream of changes, and the notifications.

ebb tells clients that it is Redis 7.4.0 (` + "`redis_version`" + `), so that they use what came with
7.4, deadlines of hash fields above all. Where the three servers differ, ebb follows the newest
behaviour that does not break a client of Redis 7.0: a later error text, a further field or a
fixed fault yes, a reply of another shape no.

This page lists every difference that the tests allow. A difference that is not on it is a
fault of ebb: please report it. [The list of commands](commands/index.md) says which
commands of the three servers ebb does not have.
`

// Compatibility returns the page of the differences between ebb and the servers that it is
// compared with, by its name below CompatDir.
func Compatibility() map[string][]byte {
	var b bytes.Buffer
	b.WriteString(compatHead)
	for _, a := range compat.Areas {
		all := compat.List(a)
		if len(all) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| Difference | From | Commands | What | Why |\n|---|---|---|---|---|\n", a)
		for _, d := range all {
			commands := strings.ToUpper(strings.ReplaceAll(strings.ReplaceAll(d.Commands, " ", ", "), "|", " "))
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", d.ID, d.Servers, commands, cell(d.What), cell(d.Reason))
		}
	}
	return map[string][]byte{"compatibility.md": b.Bytes()}
}
