// Package settings reads the directives of a group. It refuses combinations that would break the group's promise or
// could never work; the error names the directive, its value, and the values that are allowed.
//
// All nodes of a group have the same list of addresses in the same order. A node's number is its place in the list,
// so new nodes are added at the end. A node finds its own entry by group-port and the addresses of its machine.
//
// Start reading at Read.
package settings

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/system"
)

// Values returns the values of directives. config.Set implements it.
type Values interface {
	String(name string) string
	Int(name string) int64
	Bool(name string) bool
}

// Node is an entry of the list.
type Node struct {
	ID      directory.NodeID // from 1 on
	Address string           // host:port of the group's port
}

// Settings are the directives of a group, parsed.
type Settings struct {
	Name     string
	Nodes    []Node // by ID
	Self     Node
	Sentinel int // sentinel-port; 0: none

	K     int                 // min-sync-replicas, for the first start of the group
	Level directory.SyncLevel // sync-level

	Timeout  time.Duration // group-timeout: the silence after which a master is replaced
	Lease    time.Duration // sync-lease
	Lag      time.Duration // sync-lag
	StaleOK  bool          // sync-reads local: answer reads without the lease
	Secret   string        // masterauth: each node proves to the others that it knows it
	Replicas bool          // tls-replication: nodes use TLS with each other
}

// maxNodes is the largest number of nodes: each change of the directory waits for a majority of them.
const maxNodes = 7

// Read reads the directives. It returns nil if the directive group is empty. local reports whether a host is this
// machine.
func Read(v Values, local func(host string) (bool, error)) (*Settings, error) {
	list := strings.TrimSpace(v.String("group"))
	if list == "" {
		return nil, nil
	}
	g := &Settings{Name: v.String("group-name"), Sentinel: int(v.Int("sentinel-port")), K: int(v.Int("min-sync-replicas")),
		Timeout: millis(v, "group-timeout"), Lease: millis(v, "sync-lease"), Lag: millis(v, "sync-lag"),
		StaleOK: v.String("sync-reads") == "local", Secret: v.String("masterauth"),
		Replicas: v.Bool("tls-replication")}
	if v.String("sync-level") == "disk" {
		g.Level = directory.Disk
	}
	err := g.read(list)
	if err == nil {
		err = g.find(v.Int("group-port"), local)
	}
	if err == nil {
		err = errors.Join(g.check(), g.fits(v))
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

func millis(v Values, name string) time.Duration {
	return time.Duration(v.Int(name)) * time.Millisecond
}

// read parses the list of nodes.
func (g *Settings) read(list string) error {
	for i, address := range strings.Split(list, ",") {
		n := Node{directory.NodeID(i + 1), strings.TrimSpace(address)}
		if err := checkAddress(n.Address); err != nil {
			return err
		}
		if slices.ContainsFunc(g.Nodes, func(o Node) bool { return o.Address == n.Address }) {
			return fmt.Errorf("group has the address %s twice: want each node once", n.Address)
		}
		g.Nodes = append(g.Nodes, n)
	}
	switch n := len(g.Nodes); {
	case n == 1:
		return errors.New("group has one node: want 3 or 5; without a group, leave the directive out")
	case n%2 == 0:
		return fmt.Errorf("group has %d nodes: want an odd number, because half of the nodes are not a majority; "+
			"`ebb witness` runs a node without data, for which a small machine suffices", n)
	case n > maxNodes:
		return fmt.Errorf("group has %d nodes: want at most %d", n, maxNodes)
	}
	return g.sameWorld()
}

// checkAddress checks an entry of the list.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return fmt.Errorf("group has %q: want the host and the group-port of each node, such as a:7379,b:7379,c:7379", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("group has %q: want a port from 1 to 65535", address)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("group has %q: want an address at which the other nodes reach this one", address)
	}
	return nil
}

// sameWorld refuses a list that mixes loopback addresses with others: other machines cannot reach a loopback address.
func (g *Settings) sameWorld() error {
	loopback := g.loopback()
	if n := len(loopback); n > 0 && n < len(g.Nodes) {
		return fmt.Errorf("group has the loopback address %s and addresses of other machines, which cannot reach it", loopback[0].Address)
	}
	return nil
}

// loopback returns the nodes with loopback addresses.
func (g *Settings) loopback() (all []Node) {
	for _, n := range g.Nodes {
		host, _, _ := net.SplitHostPort(n.Address) // checked
		if system.LoopbackHost(host) {
			all = append(all, n)
		}
	}
	return all
}

// find sets Self, the entry of this node in the list.
func (g *Settings) find(port int64, local func(host string) (bool, error)) error {
	var here []Node
	var unknown error
	for _, n := range g.Nodes {
		host, own, _ := net.SplitHostPort(n.Address) // checked
		if port != 0 && own != strconv.FormatInt(port, 10) {
			continue
		}
		switch is, err := local(host); {
		case err != nil:
			unknown = err
		case is:
			here = append(here, n)
		}
	}
	switch {
	case len(here) == 1:
		g.Self = here[0]
		return nil
	case len(here) > 1:
		return fmt.Errorf("group has %d nodes on this machine, %s and %s among them: set group-port to that of this node",
			len(here), here[0].Address, here[1].Address)
	case unknown != nil:
		return fmt.Errorf("group: this node does not find itself in the list: %w", unknown)
	case port != 0:
		return fmt.Errorf("group has no address of this machine with group-port %d: want this node in the list", port)
	}
	return errors.New("group has no address of this machine: want this node in the list, which is the same on all nodes")
}

// nameLetters are the characters of a group's name, which is the master name of Sentinel clients.
const nameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// check checks the ranges of the group's directives.
func (g *Settings) check() error {
	switch {
	case g.Name == "" || len(g.Name) > 64 || strings.Trim(g.Name, nameLetters) != "":
		return fmt.Errorf("group-name is %q: want up to 64 letters, digits and . _ -", g.Name)
	case g.K < 0 || g.K > len(g.Nodes)-1:
		return fmt.Errorf("min-sync-replicas is %d: want at most %d, the number of the other nodes", g.K, len(g.Nodes)-1)
	case g.Timeout < 100*time.Millisecond:
		return fmt.Errorf("group-timeout is %v: want at least 100 ms", g.Timeout)
	case g.Lease <= 0 || g.Lease > g.Timeout:
		return fmt.Errorf("sync-lease is %v: want from 1 ms to group-timeout, %v: a promoted node waits for it", g.Lease, g.Timeout)
	case g.Lag <= 0:
		return fmt.Errorf("sync-lag is %v: want at least 1 ms", g.Lag)
	}
	return nil
}

// fits checks directives of the server that conflict with a group.
func (g *Settings) fits(v Values) error {
	_, own, _ := net.SplitHostPort(g.Self.Address) // checked
	for _, name := range []string{"port", "tls-port", "sentinel-port"} {
		if p := v.Int(name); p != 0 && strconv.FormatInt(p, 10) == own {
			return fmt.Errorf("%s and the group's port are both %d: want different ones", name, p)
		}
	}
	if s := int64(g.Sentinel); s != 0 && (s == v.Int("port") || s == v.Int("tls-port")) {
		return fmt.Errorf("sentinel-port and the port of clients are both %d: want different ones", s)
	}
	switch {
	case v.String("replicaof") != "":
		return errors.New("replicaof is set in a group: want it empty, because the group chooses the master")
	case v.Bool("cluster-enabled"):
		return errors.New("cluster-enabled is yes in a group: want no, because clients find the master by Sentinel's protocol")
	case !v.Bool("replica-read-only"):
		return errors.New("replica-read-only must be yes in a group, got no: the group would not have what clients write to a replica")
	case g.Level == directory.Disk && (!v.Bool("appendonly") || v.String("appendfsync") != "always"):
		return fmt.Errorf("sync-level is disk, but appendonly is %s and appendfsync is %s: want yes and always, so that acknowledged writes "+
			"are on the disk", yesNo(v.Bool("appendonly")), v.String("appendfsync"))
	case g.Secret == "" && len(g.loopback()) == 0:
		return errors.New("masterauth is empty: want the same secret on all nodes, by which they authenticate each other")
	}
	return nil
}

// CheckLogin returns an error if the servers of a group could not log in to each other as replicas. Each of them may
// become the master. It does not apply to a witness, which serves no replicas.
func CheckLogin(v Values) error {
	auth, pass := v.String("masterauth"), v.String("requirepass")
	switch {
	case v.String("masteruser") != "" || v.String("aclfile") != "" || auth == pass:
		return nil
	case pass == "":
		return errors.New("requirepass is empty, but masterauth is not: want both the same, because each server may become the master, " +
			"to which the others log in with masterauth")
	case auth == "":
		return errors.New("masterauth is empty, but requirepass is not: want both the same, because replicas log in with masterauth")
	}
	return errors.New("masterauth and requirepass are different: want both the same, because each server of a group may become the master")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
