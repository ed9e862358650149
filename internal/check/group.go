package check

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/group/shard"
)

// groupFile checks a file that a node of a group keeps in the folder "group" beside its data. examine returns a text that says what the
// file holds.
func (c *checker) groupFile(path string, examine func([]byte) (string, error)) {
	b, err := c.FS.ReadFile(path)
	what := ""
	if err == nil {
		what, err = examine(b)
	}
	if err != nil {
		c.printf("%s:", path)
		c.bad("%v", err)
		return
	}
	c.printf("%s: %s", path, what)
	c.printf("  ok")
}

// examineState examines group.state.
func examineState(b []byte) (string, error) {
	s, err := shard.ParseSaved(b)
	if err != nil {
		return "", fmt.Errorf("%w: the node starts without it, as a new incarnation that is not in sync", err)
	}
	synced := "not all that it acknowledged was synced before"
	if s.Always {
		synced = "all that it acknowledged was synced before"
	}
	return fmt.Sprintf("state of node %d of a group, incarnation %d: %s", s.Member.Node, s.Member.Incarnation, synced), nil
}
