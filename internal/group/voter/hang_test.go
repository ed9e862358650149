package voter

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/testing/crashfs"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// hanging is a file system whose syncs wait while it hangs.
type hanging struct {
	disk.FS
	mu   sync.Mutex
	free chan struct{} // nil: it does not hang
}

func (h *hanging) hang() (release func()) {
	free := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = free
	return sync.OnceFunc(func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.free = nil
		close(free)
	})
}

func (h *hanging) Append(name string) (disk.File, error) {
	f, err := h.FS.Append(name)
	return hangingFile{f, h}, err
}

type hangingFile struct {
	disk.File
	fs *hanging
}

func (f hangingFile) Sync() error {
	f.fs.mu.Lock()
	free := f.fs.free
	f.fs.mu.Unlock()
	if free != nil {
		<-free
	}
	return f.File.Sync()
}

// Another voter leads while the disk of the leader hangs. In virtual time the leader's other goroutines, which wait for the lock of its
// store, would stop the clock.
func TestADiskThatHangsEndsALeader(t *testing.T) {
	const timeout = 400 * time.Millisecond
	disks, voters, cables := map[directory.NodeID]*hanging{}, map[directory.NodeID]*Voter{}, map[directory.NodeID]*raft.InmemTransport{}
	var all []Server
	for id := directory.NodeID(1); id <= 3; id++ {
		disks[id] = &hanging{FS: crashfs.New(uint64(id))}
		v, err := Open(Config{Node: id, Address: "host" + string(rune('0'+id)) + ":1", FS: disks[id], Dir: "/data", Timeout: timeout,
			Logger: slog.New(slog.DiscardHandler), Random: func() uint64 { return uint64(id) },
			Network: func(self Server) (Transport, error) {
				_, cable := raft.NewInmemTransportWithTimeout(self.address(), timeout)
				cables[id] = cable
				return cable, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer v.Close()
		voters[id], all = v, append(all, v.Self())
	}
	for a, one := range cables {
		for b, other := range cables {
			if a != b {
				one.Connect(other.LocalAddr(), other)
			}
		}
	}
	if err := voters[1].Found(all); err != nil {
		t.Fatal(err)
	}
	leader := func(without *Voter) (found *Voter) {
		tier.Eventually(t, "a voter leads", func() bool {
			for _, v := range voters {
				if v != without && v.Leading() && v.Barrier() == nil {
					found = v
				}
			}
			return found != nil
		})
		return found
	}
	old := leader(nil)
	release := disks[old.Self().Node].hang()
	defer release()
	proposed := make(chan error, 1)
	go func() {
		_, err := old.Propose(directory.Command{Kind: directory.AddNode, Node: 1, Address: "a", Voter: true, Data: true})
		proposed <- err
	}()
	next := leader(old)
	if _, err := next.Propose(directory.Command{Kind: directory.AddNode, Node: 1, Address: "a", Voter: true, Data: true}); err != nil {
		t.Error(err)
	}
	release()
	<-proposed
	tier.Eventually(t, "the old leader follows", func() bool { return !old.Leading() && len(old.Nodes()) == 1 })
}
