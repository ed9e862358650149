package main

import (
	"strings"
	"testing"
)

func TestTheStateOfAGroupIsATable(t *testing.T) {
	master := map[string]string{"group_state": "leading", "group_node": "2", "group_incarnation": "1", "group_epoch": "4", "group_master": "2",
		"group_min_sync_replicas": "1", "group_in_sync": "2", "group_self_in_sync": "1", "group_accepted_losses": "0", "group_writable": "1",
		"group_lease": "0", "master_repl_offset": "900",
		"group_member0": "node=1,incarnation=3,in_sync=0,linked=0,offset=0,behind_bytes=900,behind_ms=1200",
		"group_member1": "node=3,incarnation=1,in_sync=1,linked=1,offset=900,behind_bytes=0,behind_ms=0"}
	replica := map[string]string{"group_state": "searching", "group_node": "3", "group_incarnation": "1", "group_epoch": "4",
		"group_master": "2", "group_min_sync_replicas": "1", "group_in_sync": "2", "group_self_in_sync": "1", "group_accepted_losses": "2",
		"group_member0": "node=2,incarnation=1,in_sync=1"}
	for _, x := range []struct {
		info map[string]string
		want string
	}{
		{master, `node 2 at h:1: leading
epoch 4, master node 2; in sync: 2, min-sync-replicas 1
writes: answered, reads: not answered
NODE  INCARNATION  IN SYNC  LINK    OFFSET  BEHIND
2     1            yes      master  900
1     3            no       no      0       900 bytes, 1200 ms
3     1            yes      yes     900     0 bytes, 0 ms
`},
		{replica, `node 3 at h:1: searching
epoch 4, master node 2; in sync: 2, min-sync-replicas 1
an operator has accepted a loss of acknowledged writes: 2 times
NODE  INCARNATION  IN SYNC
3     1            yes
2     1            yes
`},
	} {
		var out strings.Builder
		if err := groupTable(&out, "h:1", x.info); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for line := range strings.Lines(out.String()) {
			got.WriteString(strings.TrimRight(line, " \n") + "\n")
		}
		if got.String() != x.want {
			t.Errorf("got\n%swant\n%s", got.String(), x.want)
		}
	}
}
