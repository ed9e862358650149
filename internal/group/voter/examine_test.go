package voter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/group/directory"
)

func TestAFileIsExamined(t *testing.T) {
	command := directory.AppendCommand(nil, directory.Command{Kind: directory.SetK, Shard: 1, Epoch: 1, Version: 1, K: 1})
	c := content{identity: 7, snapshot: &saved{index: 4, term: 1, state: directory.New().Snapshot()},
		entries: []raft.Log{{Index: 5, Term: 2, Type: raft.LogCommand, Data: command}, {Index: 6, Term: 2, Type: raft.LogNoop}}}
	whole := c.append(nil)
	for name, b := range map[string][]byte{"the file": whole, "one with a piece of a record": append(bytes.Clone(whole), 1, 2, 3)} {
		want := fmt.Sprintf("votes and the directory of a group's node, %d bytes, a snapshot at entry 4, entries: 2, commands: 1", len(b))
		if got, err := Examine(b); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	bad := bytes.Clone(whole)
	bad[len(fileMagic)+recordHead] ^= 1
	if what, err := Examine(bad); !errors.Is(err, errDamaged) {
		t.Errorf("a damaged file: %q, %v", what, err)
	}
	c.entries[0].Data = []byte("x")
	if what, err := Examine(c.append(nil)); err == nil || !strings.Contains(err.Error(), "entry 5: ") {
		t.Errorf("a command that cannot be read: %q, %v", what, err)
	}
	c.snapshot.state = []byte("x")
	if what, err := Examine(c.append(nil)); err == nil || !strings.Contains(err.Error(), "the snapshot at entry 4: ") {
		t.Errorf("a snapshot that cannot be read: %q, %v", what, err)
	}
}
