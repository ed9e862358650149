package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/group/control"
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/settings"
)

// A node that was down before this one started has sent it no heartbeat. The directory has its kind.
func TestTheStatusOfASilentServerIsNotThatOfAWitness(t *testing.T) {
	peer := control.Peer{Node: settings.Node{ID: 2, Address: "b:7379"}, SinceHeartbeat: 4 * time.Second, Silent: true}
	const want = "node=2,address=b:7379,clients=,voter=1,data=%d,incarnation=3,level=disk,removed=0,silent=1,heard_ms=4000," +
		"master_of_epoch=0,offset=0"
	for _, data := range []bool{true, false} {
		n := directory.Node{ID: 2, Incarnation: 3, Level: directory.Disk, Data: data}
		if got := line(peer, n, true, false); got != fmt.Sprintf(want, bit(data)) {
			t.Errorf("data %v: %s", data, got)
		}
	}
}
