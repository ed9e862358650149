package check

import (
	"path/filepath"
	"testing"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
)

func TestTheFilesOfAGroupsNode(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "group")
	state := shard.Saved{Member: directory.Member{Node: 2, Incarnation: 5}, Always: true}
	put(t, folder, "group.state", state.Bytes())
	said, ok := run(dir, "", Options{})
	want(t, "a directory", said, ok,
		"group/group.state: state of node 2 of a group, incarnation 5: all that it acknowledged was synced before",
		"  ok")
	state.Always = false
	put(t, folder, "group.state", state.Bytes())
	said, ok = run(dir, "group/group.state", Options{})
	want(t, "a node that does not sync", said, ok,
		"group/group.state: state of node 2 of a group, incarnation 5: not all that it acknowledged was synced before",
		"  ok")
	put(t, folder, "group.state", state.Bytes()[:6])
	put(t, folder, "raft.log", []byte("REDIS0011"))
	said, ok = run(dir, "", Options{})
	want(t, "damaged files", said, ok,
		"group/group.state:",
		"  WRONG: group.state is damaged: the file has 6 bytes, want at least 8: the node starts without it, "+
			"as a new incarnation that is not in sync",
		"group/raft.log:",
		"  WRONG: the file is damaged: remove it, and the node comes back as a new voter, which the leader admits "+
			"(the file does not begin with the magic of raft.log)")
}
