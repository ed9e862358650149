package voter

import (
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/group/directory"
)

// Examine decodes the content of a file raft.log, with all records and commands, and returns a one-line summary. An
// incomplete record at the end is not an error: a start ignores it.
func Examine(b []byte) (what string, err error) {
	var c content
	if err := c.load(b); err != nil {
		return "", err
	}
	what = fmt.Sprintf("votes and the directory of a group's node, %d bytes", len(b))
	if s := c.snapshot; s != nil {
		if err := directory.New().Restore(s.state); err != nil {
			return "", fmt.Errorf("the snapshot at entry %d: %w", s.index, err)
		}
		what += fmt.Sprintf(", a snapshot at entry %d", s.index)
	}
	commands := 0
	for _, e := range c.entries {
		if e.Type != raft.LogCommand {
			continue
		}
		if _, err := directory.DecodeCommand(e.Data); err != nil {
			return "", fmt.Errorf("entry %d: %w", e.Index, err)
		}
		commands++
	}
	return what + fmt.Sprintf(", entries: %d, commands: %d", len(c.entries), commands), nil
}
