package servercmd

import (
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/routing"
	"github.com/ebbdb/ebb/internal/session"
)

// With cluster-enabled yes the server is a cluster of one node, which has all slots, for clients
// that need a cluster. Without it all commands of CLUSTER reply with an error, as in Redis.

const (
	errNoCluster = command.ReplyError("ERR This instance has cluster support disabled")
	errSlot      = command.ReplyError("ERR Invalid slot")
	errSlotKeys  = command.ReplyError("ERR Invalid slot or number of keys")
)

// ofCluster wraps a handler that needs cluster-enabled.
func ofCluster(run func(*command.Ctx) error) func(*command.Ctx) error {
	return func(c *command.Ctx) error {
		if !c.Host.Clustered() {
			return errNoCluster
		}
		return run(c)
	}
}

func replyOK(c *command.Ctx) error {
	c.Out.OK()
	return nil
}

var specAsking = command.Spec{
	Name: "asking", Group: command.GroupCluster, Since: "3.0.0", Complexity: "O(1)",
	Summary:    "Follows an -ASK redirection of a cluster.",
	Flags:      command.Fast,
	Client:     command.Stateful,
	Categories: command.CatConnection,
	Examples: `
> ASKING
(error) ERR This instance has cluster support disabled
`,
	Run: ofCluster(replyOK),
}

var specReadonly = command.Spec{
	Name: "readonly", Group: command.GroupCluster, Since: "3.0.0", Complexity: "O(1)",
	Summary:    "Allows reads from a replica of a cluster.",
	Flags:      command.Loading | command.Stale | command.Fast,
	Client:     command.Stateful,
	Categories: command.CatConnection,
	Examples: `
> READONLY (differs: cluster-off)
(error) ERR This instance has cluster support disabled
`,
	Run: ofCluster(replyOK),
}

var specReadwrite = command.Spec{
	Name: "readwrite", Group: command.GroupCluster, Since: "3.0.0", Complexity: "O(1)",
	Summary:    "Ends READONLY.",
	Flags:      command.Loading | command.Stale | command.Fast,
	Client:     command.Stateful,
	Categories: command.CatConnection,
	Examples: `
> READWRITE (differs: cluster-off)
(error) ERR This instance has cluster support disabled
`,
	Run: ofCluster(replyOK),
}

var clusterSpecs = []*command.Spec{&specAsking, &specCluster, &specReadonly, &specReadwrite}

var specCluster = command.Spec{
	Name: "cluster", Group: command.GroupCluster, Since: "3.0.0", Complexity: "Depends on subcommand.",
	Summary: "A container for commands about the cluster.",
	Sub: append([]*command.Spec{&specClusterCountKeysInSlot, &specClusterGetKeysInSlot, &specClusterHelp,
		&specClusterInfo, &specClusterKeySlot,
		&specClusterLinks, &specClusterMyID, &specClusterNodes, &specClusterShards, &specClusterSlots}, clusterRefused()...),
}

var specClusterHelp = command.HelpSpec("cluster", command.GroupCluster, 0)

// clusterExample returns an example of a command on a server without a cluster.
func clusterExample(request string) string {
	return "> CLUSTER " + request + "\n(error) ERR This instance has cluster support disabled\n"
}

var clusterTips = []string{"nondeterministic_output"}

var specClusterInfo = command.Spec{
	Name: "cluster|info", Group: command.GroupCluster, Since: "3.0.0", Complexity: "O(1)",
	Summary: "Returns the state of the cluster.",
	Flags:   command.Stale | command.Inert, Tips: clusterTips,
	Examples: clusterExample("INFO"),
	Run:      ofCluster(runClusterInfo),
}

func runClusterInfo(c *command.Ctx) error {
	c.Out.Verbatim("txt", "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\ncluster_slots_pfail:0\r\n"+
		"cluster_slots_fail:0\r\ncluster_known_nodes:1\r\ncluster_size:1\r\ncluster_current_epoch:1\r\ncluster_my_epoch:1\r\n"+
		"cluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n")
	return nil
}

var specClusterMyID = command.Spec{
	Name: "cluster|myid", Group: command.GroupCluster, Since: "3.0.0", Complexity: "O(1)",
	Summary: "Returns the node's id.",
	Flags:   command.Stale | command.Inert, Examples: clusterExample("MYID"),
	Run: ofCluster(runClusterMyID),
}

func runClusterMyID(c *command.Ctx) error {
	c.Out.BulkString(session.ServiceOf(c).NodeID())
	return nil
}

// endpoint returns the address that the node announces to clients: the address that the client has
// connected to, unless the configuration announces another.
func endpoint(c *command.Ctx) (ip string, port int) {
	cfg := session.ServiceOf(c).Config
	if conn := session.Of(c).Conn(); conn != nil {
		if host, p, err := net.SplitHostPort(conn.LocalAddr()); err == nil && conn.Network() != "unix" {
			ip = host
			port, _ = strconv.Atoi(p)
		}
	}
	if port == 0 {
		port = session.ServiceOf(c).Admin().Host.Port()
	}
	if s := cfg.String("cluster-announce-ip"); s != "" {
		ip = s
	}
	if n := cfg.Int("cluster-announce-port"); n != 0 {
		port = int(n)
	}
	return ip, port
}

// busOffset is the distance between a node's port and its bus port.
const busOffset = 10000

var specClusterNodes = command.Spec{
	Name: "cluster|nodes", Group: command.GroupCluster, Since: "3.0.0", Complexity: "O(N) where N is the total number of Cluster nodes",
	Summary: "Returns the nodes of the cluster, one to a line.",
	Flags:   command.Stale | command.Inert, Tips: clusterTips,
	Examples: clusterExample("NODES"),
	Run:      ofCluster(runClusterNodes),
}

func runClusterNodes(c *command.Ctx) error {
	svc := session.ServiceOf(c)
	ip, port := endpoint(c)
	bus := port + busOffset
	if n := svc.Config.Int("cluster-announce-bus-port"); n != 0 {
		bus = int(n)
	}
	c.Out.Verbatim("txt", svc.NodeID()+" "+ip+":"+strconv.Itoa(port)+"@"+strconv.Itoa(bus)+" myself,master - 0 0 1 connected 0-16383\n")
	return nil
}

var specClusterSlots = command.Spec{
	Name: "cluster|slots", Group: command.GroupCluster, Since: "3.0.0", Complexity: "O(N) where N is the total number of Cluster nodes",
	Summary: "Returns the slots of each node.",
	Flags:   command.Stale | command.Loading | command.Inert, Tips: clusterTips,
	History: []command.Change{{Since: "4.0.0", Text: "Added node IDs."},
		{Since: "7.0.0", Text: "Added additional networking metadata field."}},
	Deprecated: &command.Deprecation{Since: "7.0.0", ReplacedBy: "`CLUSTER SHARDS`"},
	Examples:   clusterExample("SLOTS"),
	Run:        ofCluster(runClusterSlots),
}

func runClusterSlots(c *command.Ctx) error {
	ip, port := endpoint(c)
	c.Out.Array(1)
	c.Out.Array(3)
	c.Out.Int(0)
	c.Out.Int(routing.Slots - 1)
	c.Out.Array(4)
	c.Out.BulkString(ip)
	c.Out.Int(int64(port))
	c.Out.BulkString(session.ServiceOf(c).NodeID())
	c.Out.Array(0)
	return nil
}

var specClusterShards = command.Spec{
	Name: "cluster|shards", Group: command.GroupCluster, Since: "7.0.0", Complexity: "O(N) where N is the total number of cluster nodes",
	Summary: "Returns the cluster's shards: their slots and nodes.",
	Flags:   command.Stale | command.Loading | command.Inert, Tips: clusterTips,
	Examples: clusterExample("SHARDS"),
	Run:      ofCluster(runClusterShards),
}

func runClusterShards(c *command.Ctx) error {
	ip, port := endpoint(c)
	w := c.Out
	text := func(name, value string) {
		w.BulkString(name)
		w.BulkString(value)
	}
	w.Array(1)
	w.Map(2)
	w.BulkString("slots")
	w.Array(2)
	w.Int(0)
	w.Int(routing.Slots - 1)
	w.BulkString("nodes")
	w.Array(1)
	w.Map(7)
	text("id", session.ServiceOf(c).NodeID())
	w.BulkString("port")
	w.Int(int64(port))
	text("ip", ip)
	text("endpoint", ip)
	text("role", "master")
	w.BulkString("replication-offset")
	w.Int(0)
	text("health", "online")
	return nil
}

var specClusterLinks = command.Spec{
	Name: "cluster|links", Group: command.GroupCluster, Since: "7.0.0", Complexity: "O(N) where N is the total number of Cluster nodes",
	Summary: "Returns the connections to other nodes: there are none.",
	Flags:   command.Stale | command.Inert, Tips: clusterTips,
	Examples: clusterExample("LINKS"),
	Run:      ofCluster(func(c *command.Ctx) error { c.Out.Array(0); return nil }),
}

var specClusterKeySlot = command.Spec{
	Name: "cluster|keyslot", Group: command.GroupCluster, Since: "3.0.0", Complexity: "O(N) where N is the number of bytes in the key",
	Summary: "Returns the slot of a key.",
	Flags:   command.Stale | command.Inert, Args: []command.Arg{command.Str("key")},
	Examples: clusterExample("KEYSLOT k (differs: cluster-off)"),
	Run:      ofCluster(runClusterKeySlot),
}

func runClusterKeySlot(c *command.Ctx) error {
	c.Out.Int(int64(routing.Slot(c.Args[2])))
	return nil
}

// slotStep is the number of keys that a walk visits before it unlocks the shard for others.
const slotStep = 256

// keysInSlot walks over the selected database and calls visit for the keys of a slot, until visit
// returns false.
func keysInSlot(c *command.Ctx, slot int, visit func(name []byte) (more bool)) {
	more := true
	look := func(k engine.Key) {
		if name := k.Name(); more && routing.Slot(name) == slot {
			more = visit(name)
		}
	}
	for cursor := uint64(0); ; {
		if c.Tx.Begun() {
			cursor = c.Tx.Scan(cursor, slotStep, look)
		} else {
			cursor = session.ServiceOf(c).DB.Scan(c.Tx.Selected(), cursor, slotStep, look)
		}
		if cursor == 0 || !more {
			return
		}
	}
}

var specClusterCountKeysInSlot = command.Spec{
	Name: "cluster|countkeysinslot", Group: command.GroupCluster, Since: "3.0.0",
	Complexity: "O(N) where N is the number of keys in the database",
	Summary:    "Returns the number of keys of a slot. It walks over all keys.",
	Flags:      command.Stale | command.SelfLock | command.Slow | command.Inert, Args: []command.Arg{command.Int("slot")},
	Examples: clusterExample("COUNTKEYSINSLOT 0"),
	Run:      ofCluster(runClusterCountKeysInSlot),
}

func runClusterCountKeysInSlot(c *command.Ctx) error {
	slot, ok := numeral.ParseInt(c.Args[2])
	switch {
	case !ok:
		return command.ErrNotInteger
	case slot < 0 || slot >= routing.Slots:
		return errSlot
	}
	n := int64(0)
	seen := map[string]bool{} // a walk may visit a key twice
	keysInSlot(c, int(slot), func(name []byte) bool {
		if !seen[string(name)] {
			seen[string(name)] = true
			n++
		}
		return true
	})
	c.Out.Int(n)
	return nil
}

var specClusterGetKeysInSlot = command.Spec{
	Name: "cluster|getkeysinslot", Group: command.GroupCluster, Since: "3.0.0",
	Complexity: "O(N) where N is the number of keys in the database",
	Summary:    "Returns count keys of a slot. It walks over the keys until it has found them.",
	Flags:      command.Stale | command.SelfLock | command.Slow | command.Inert, Tips: clusterTips,
	Args:     []command.Arg{command.Int("slot"), command.Int("count")},
	Examples: clusterExample("GETKEYSINSLOT 0 10"),
	Run:      ofCluster(runClusterGetKeysInSlot),
}

func runClusterGetKeysInSlot(c *command.Ctx) error {
	slot, ok := numeral.ParseInt(c.Args[2])
	count, ok2 := numeral.ParseInt(c.Args[3])
	switch {
	case !ok || !ok2:
		return command.ErrNotInteger
	case slot < 0 || slot >= routing.Slots || count < 0:
		return errSlotKeys
	}
	found := map[string]bool{}
	if count > 0 {
		keysInSlot(c, int(slot), func(name []byte) bool {
			found[string(name)] = true
			return int64(len(found)) < count
		})
	}
	c.Out.Array(len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		c.Out.BulkString(name)
	}
	return nil
}

// clusterRefused returns the commands that change a cluster or concern other nodes. The server refuses them.
func clusterRefused() []*command.Spec {
	node, slots := []command.Arg{command.Str("node-id")}, []command.Arg{command.Repeat(command.Int("slot"))}
	ranges := []command.Arg{command.Repeat(command.Block("start-slot_end-slot", command.Int("start-slot"), command.Int("end-slot")))}
	changes := command.Admin | command.Stale | command.NoAsyncLoading
	all := []*command.Spec{
		{Name: "addslots", Args: slots, Flags: changes},
		{Name: "addslotsrange", Args: ranges, Flags: changes, Since: "7.0.0"},
		{Name: "bumpepoch", Flags: changes, Tips: clusterTips},
		{Name: "count-failure-reports", Args: node, Flags: command.Admin | command.Stale, Tips: clusterTips},
		{Name: "delslots", Args: slots, Flags: changes},
		{Name: "delslotsrange", Args: ranges, Flags: changes, Since: "7.0.0"},
		{Name: "failover",
			Args: []command.Arg{command.Opt(command.OneOf("options", command.Token("FORCE"), command.Token("TAKEOVER")))}, Flags: changes},
		{Name: "flushslots", Flags: changes},
		{Name: "forget", Args: node, Flags: changes},
		{Name: "meet", Args: []command.Arg{command.Str("ip"), command.Int("port"),
			command.Opt(command.Int("cluster_bus_port")).Since("4.0.0")}, Flags: changes,
			History: []command.Change{{Since: "4.0.0", Text: "Added the optional `cluster_bus_port` argument."}}},
		{Name: "replicas", Args: node, Flags: command.Admin | command.Stale | command.Inert, Tips: clusterTips, Since: "5.0.0"},
		{Name: "replicate", Args: node, Flags: changes},
		{Name: "reset", Args: []command.Arg{command.Opt(command.OneOf("hard_soft", command.Token("HARD"), command.Token("SOFT")))},
			Flags: command.Admin | command.Stale | command.NoScript},
		{Name: "saveconfig", Flags: changes},
		{Name: "set-config-epoch", Args: []command.Arg{command.Int("config-epoch")}, Flags: changes},
		{Name: "setslot", Args: []command.Arg{command.Int("slot"),
			command.OneOf("subcommand", command.TokenArg("IMPORTING", command.Str("node-id")),
				command.TokenArg("MIGRATING", command.Str("node-id")), command.TokenArg("NODE", command.Str("node-id")),
				command.Token("STABLE"))}, Flags: changes},
		{Name: "slaves", Args: node, Flags: command.Admin | command.Stale | command.Inert, Tips: clusterTips,
			Deprecated: &command.Deprecation{Since: "5.0.0", ReplacedBy: "`CLUSTER REPLICAS`"}},
	}
	arguments := map[string]string{"addslots": " 1", "addslotsrange": " 1 2", "delslots": " 1", "delslotsrange": " 1 2",
		"meet": " 127.0.0.1 7000", "set-config-epoch": " 1", "setslot": " 1 STABLE", "count-failure-reports": " id", "forget": " id",
		"replicas": " id", "replicate": " id", "slaves": " id"}
	for _, s := range all {
		short := s.Name
		s.Name, s.Group, s.Complexity = "cluster|"+short, command.GroupCluster, "O(1)"
		s.Summary = "Is for clusters of several nodes, which ebb does not have: it replies an error."
		if s.Since == "" {
			s.Since = "3.0.0"
		}
		s.Examples = clusterExample(strings.ToUpper(short) + arguments[short])
		s.Run = ofCluster(runClusterRefused)
	}
	return all
}

func runClusterRefused(c *command.Ctx) error {
	return command.ReplyError("ERR CLUSTER " + strings.ToUpper(c.Spec.ShortName()) + " is not supported: this node is the whole cluster")
}
