package groupsim

import (
	"math/rand/v2"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/shard"
)

// world is a group of simulated nodes with its networks and its directory.
type world struct {
	Figures
	rng    *rand.Rand
	fault  Fault
	now    time.Duration // true time, which no node can read
	step   time.Duration // the longest time between two steps
	nodes  []*node
	conns  []*conn
	cut    [maxNodes][maxNodes]bool // messages of [from][to] are held back
	apart  [maxNodes]bool           // cut off from the directory
	config shard.Config

	directory *directory.Directory
	states    []directory.Shard // all states of the shard, in order
	requests  []request         // commands on their way to the directory
	answers   []answer          // answers on their way back

	acked      []entry  // the acknowledged entries, in the order of the log
	ackedIn    []uint64 // for each of acked, the epoch in which it was committed
	committers map[uint64]int
	vouched    map[uint64][maxNodes]uint64 // by epoch, the highest offset that each node has acknowledged
	lost       int                         // members that lost data since the in-sync set was last complete
	entries    uint32
	processes  uint64
	links      shard.Link
	history    []Row
	recording  bool
	directing  directing
}

// directing configures the random steps during a directed sequence.
type directing struct {
	faults, control, leaving bool // no random faults, no random promotions, no leaving members
	reads                    bool // each step reads at every node
	lazy                     bool // masters do not sync at once
}

const maxNodes = 5

// entry is a write in a log: the epoch of its master and a unique number.
type entry struct{ epoch, number uint32 }

// kind determines the part of a node's log that survives a crash.
type kind int

const (
	inMemory kind = iota // nothing
	onDisk               // all synced entries; the node acknowledges synced entries
	lazily               // all synced entries, but the node acknowledges applied ones
)

// node is a simulated machine with a process.
type node struct {
	id      directory.NodeID
	kind    kind
	rate    float64 // of its clock
	offset  time.Duration
	up      bool
	process uint64 // the number of the process, new after each restart
	shard   *shard.Node
	writes  bool // clients can reach it

	incarnation uint64 // the incarnation whose acknowledged entries the log still has; 0 after a loss
	register    directory.Command
	registered  bool
	applied     int // the index in world.states of the newest state that it has

	log     []entry
	synced  int
	history history // as its files record it
	agrees  int     // the number of leading entries known to equal those of acked
	file    []byte  // group.state
	recent  bool    // the file may not be completely on disk yet
	conn    *conn   // to its master
	newest  *conn   // the last connection of this process, which it may still take for open
	gates   shard.Gates
}

// newWorld returns a group at rest: all nodes are up, the in-sync set is drawn, and node 1 is the master in epoch 1.
func newWorld(rng *rand.Rand, f Fault, recording bool) *world {
	w := &world{rng: rng, fault: f, recording: recording, directory: directory.New(), committers: map[uint64]int{},
		vouched: map[uint64][maxNodes]uint64{}}
	w.directory.Plant(f.Directory)
	w.Nodes = pick(w, 2, 3, 3, 3, 4, 5)
	w.K = min(pick(w, 0, 0, 1, 1, 1, 2), w.Nodes-1)
	w.step = pick[time.Duration](w, 5, 10, 20, 40) * time.Millisecond
	w.config = shard.Config{Lease: pick(w, time.Second, 2*time.Second), Lag: pick(w, 300*time.Millisecond, time.Second)}
	var members []directory.Member
	inSync := w.K + 1 + rng.IntN(w.Nodes-w.K)
	for i := range w.Nodes {
		id := directory.NodeID(i + 1)
		w.directory.Apply(directory.Command{Kind: directory.AddNode, Node: id, Voter: true, Data: true})
		n := &node{id: id, kind: pick(w, inMemory, onDisk, onDisk, lazily), writes: true}
		n.rate = 1 + 0.0098*pick(w, -1, 0, 1, rng.Float64()*2-1)
		w.nodes = append(w.nodes, n)
		w.boot(n)
		w.directory.Apply(n.register)
		if i < inSync {
			members = append(members, directory.Member{Node: id, Incarnation: 1})
		}
	}
	w.directory.Apply(directory.Command{Kind: directory.Create, Shard: 1, Node: 1, K: w.K, Members: members})
	w.states = append(w.states, w.present())
	for _, n := range w.nodes {
		w.answered(n, n.register, directory.Answer{Node: directory.Node{ID: n.id, Incarnation: 1}}) // the answer from before there was a shard
		w.apply(n, 0)
	}
	w.now += 2 * w.config.Lease // the promises of the start have ended
	return w
}

// shard returns the newest state.
func (w *world) shard() directory.Shard { return w.states[len(w.states)-1] }

// present returns the state that the directory has.
func (w *world) present() directory.Shard {
	s, _ := w.directory.Shard(1)
	return s
}

// node returns a node by its id.
func (w *world) node(id directory.NodeID) *node { return w.nodes[id-1] }

// master returns the master of the newest state.
func (w *world) master() *node { return w.node(w.shard().Master.Node) }

// clock returns what a node's clock shows. Its rate differs from the world's by less than 1 %.
func (w *world) clock(n *node) shard.Time { return time.Duration(n.rate*float64(w.now)) + n.offset }

// level returns the sync-level that the node claims.
func (n *node) level() directory.SyncLevel {
	if n.kind == onDisk {
		return directory.Disk
	}
	return directory.Memory
}

// boot starts a process with the node's files and with a clock of any origin.
func (w *world) boot(n *node) {
	w.processes++
	n.process, n.up, n.registered, n.applied, n.conn = w.processes, true, false, -1, nil
	n.offset = time.Duration(w.rng.Int64N(int64(100 * time.Second)))
	c := w.config
	c.Level = n.level()
	n.shard = shard.New(w.clock(n), c, shard.Log{End: uint64(len(n.log)), Synced: uint64(n.synced)})
	n.shard.Plant(w.fault.Shard)
	n.gates = shard.Gates{}
	always := n.kind == onDisk || n.kind == lazily && w.fault.BelieveClean
	n.register = shard.Restart(n.id, n.file, always, true)
	if s, err := shard.ParseSaved(n.file); err == nil && w.fault.SameIncarnation {
		n.register.Incarnation, n.register.Kept = s.Member.Incarnation, true
	}
	n.register.Process, n.register.Level = n.process, n.level()
	if n.register.Kept && w.fault.believes() {
		n.register.Level = directory.Disk
	}
}

// start starts a node that is down.
func (w *world) start(n *node) {
	if n.up {
		return
	}
	w.boot(n)
	w.note(n, "starts, with %d entries", len(n.log))
	registered, _ := w.directory.Node(n.id)
	if w.fault.ActUnregistered && n.register.Incarnation >= registered.Incarnation {
		old := w.states[max(0, len(w.states)-1-w.rng.IntN(6))]
		n.registered = true
		w.send(n, shard.Registered{Self: n.register.Member(), Shard: old})
	}
	w.ask(n, n.register)
}

// crash ends a process. The kind of the machine determines what else is lost; with lose the disk is lost too.
func (w *world) crash(n *node, lose bool) {
	w.Crashes++
	if n.kind == inMemory || lose {
		w.loses(n)
		n.log, n.synced, n.agrees, n.history = nil, 0, 0, history{}
	} else if left := n.synced + w.rng.IntN(len(n.log)-n.synced+1); left < len(n.log) || n.kind == lazily {
		if n.kind == lazily {
			w.loses(n)
		}
		n.log = n.log[:left:left]
		n.agrees = min(n.agrees, left)
	}
	n.synced = len(n.log)
	switch {
	case lose:
		n.file = nil
	case n.recent && w.chance(0.5) && len(n.file) > 0:
		n.file = n.file[:w.rng.IntN(len(n.file))]
		w.loses(n) // the node can prove nothing, whatever its log has
	}
	n.up, n.recent, n.gates, n.conn = false, false, shard.Gates{}, nil
	w.note(n, "crashes, %d entries left, disk lost %v", len(n.log), lose)
	w.checkMembers("after a crash")
}

// loses records that a node no longer has all that its incarnation acknowledged.
func (w *world) loses(n *node) {
	if w.shard().In(directory.Member{Node: n.id, Incarnation: n.incarnation}) {
		w.lost++
		w.Losses++
	}
	n.incarnation = 0
}

// send passes an event to a node, carries out its output, and checks the node.
func (w *world) send(n *node, e shard.Event) {
	out := n.shard.Step(w.clock(n), e)
	if epoch := n.shard.Gates(w.clock(n)).Epoch; epoch != 0 {
		n.history.adopt(epoch, uint64(len(n.log)))
	}
	for _, id := range out.Close {
		w.closeLink(n, id)
	}
	if out.Ack != nil {
		w.acknowledge(n, *out.Ack)
	}
	if out.Propose != nil {
		w.note(n, "proposes %s", commandText(*out.Propose))
		w.ask(n, *out.Propose)
	}
	w.checkNode(n)
}

// append adds a client's write to a master's log.
func (w *world) append(n *node) {
	g := n.shard.Gates(w.clock(n))
	if !n.up || !n.writes || !g.Writable || uint64(len(n.log)) >= max(g.Committed, g.Floor)+6 {
		return
	}
	w.entries++
	w.Writes++
	n.log = append(n.log, entry{uint32(g.Epoch), w.entries})
	if !w.directing.lazy && w.chance(0.7) {
		n.synced = len(n.log)
	}
	w.send(n, shard.Appended{End: uint64(len(n.log)), Synced: uint64(n.synced)})
}

// sync syncs a node's log.
func (w *world) sync(n *node) {
	if n.up && n.synced < len(n.log) {
		n.synced = len(n.log)
		w.send(n, shard.Appended{End: uint64(len(n.log)), Synced: uint64(n.synced)})
	}
}
