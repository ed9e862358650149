// Package settings reads the directives of a group, and refuses a combination that would not keep the group's promise, or could never
// work. An error names the directive, what it has and what would be right.
//
// The nodes of a group have the same list of addresses, in the same order: a node's number is its place in the list, so a later node is
// added at its end. A node finds itself in the list by its group-port and the addresses of its machine.
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

// Values are the directives of a server: config.Set.
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

// Settings are the values of the directives of a group.
type Settings struct {
	Name     string
	Nodes    []Node // by ID
	Self     Node
	Sentinel int // the port of Sentinel's protocol; 0: none

	K     int                 // min-sync-replicas, for the first start of the group
	Level directory.SyncLevel // sync-level

	Timeout  time.Duration // group-timeout: of a silent master
	Lease    time.Duration // sync-lease
	Lag      time.Duration // sync-lag
	StaleOK  bool          // sync-reads local: reads are answered without the lease
	Secret   string        // masterauth: nodes prove to each other that they know it
	Replicas bool          // tls-replication: nodes speak TLS
}

// maxNodes is the largest number of voters in a group: each change of the directory waits for a majority of them.
const maxNodes = 7

// Read reads the directives. local returns the addresses of a host that are this machine's; it returns none for another machine. Read
// returns nil if there is no group.
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

// read reads the list.
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
		return fmt.Errorf("group has %d nodes: want an odd number, because half of them do not count as a majority; "+
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
		return fmt.Errorf("group has %q: its port is not a number from 1 to 65535", address)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("group has %q: want an address at which the other nodes reach this one", address)
	}
	return nil
}

// sameWorld refuses a list of loopback addresses and others: the former name a node for itself alone.
func (g *Settings) sameWorld() error {
	loopback := g.loopback()
	if n := len(loopback); n > 0 && n < len(g.Nodes) {
		return fmt.Errorf("group has the loopback address %s beside addresses of other machines, which cannot reach it", loopback[0].Address)
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

// find finds this node in the list.
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
		return fmt.Errorf("group has %d nodes on this machine, %s and %s among them: group-port says which of them this one is",
			len(here), here[0].Address, here[1].Address)
	case unknown != nil:
		return fmt.Errorf("group: this node does not find itself in the list: %w", unknown)
	case port != 0:
		return fmt.Errorf("group has no address of this machine with group-port %d", port)
	}
	return errors.New("group has no address of this machine: want this node in the list, which is the same on all nodes")
}

// nameLetters are those of a group's name, for which clients of Sentinel's protocol ask.
const nameLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// check checks what the group's directives say of each other.
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

// fits checks the directives of the server beside which a group has to work.
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
		return errors.New("replicaof is given beside group: the group says which node is the master")
	case v.Bool("cluster-enabled"):
		return errors.New("cluster-enabled is yes beside group: want no; clients find the master by Sentinel's protocol")
	case !v.Bool("replica-read-only"):
		return errors.New("replica-read-only must be yes beside group, got no: a replica would otherwise have more than the group")
	case g.Level == directory.Disk && (!v.Bool("appendonly") || v.String("appendfsync") != "always"):
		return fmt.Errorf("sync-level is disk, with appendonly %s and appendfsync %s: want yes and always, so that what a node acknowledges "+
			"is on its disk", yesNo(v.Bool("appendonly")), v.String("appendfsync"))
	case g.Secret == "" && len(g.loopback()) == 0:
		return errors.New("masterauth is empty: want the same secret on all nodes, by which they know each other")
	}
	return nil
}

// CheckLogin refuses what keeps the servers of a group, each of which may become the master, from logging in to each other. A witness
// serves no replicas.
func CheckLogin(v Values) error {
	auth, pass := v.String("masterauth"), v.String("requirepass")
	switch {
	case v.String("masteruser") != "" || v.String("aclfile") != "" || auth == pass:
		return nil
	case pass == "":
		return errors.New("requirepass is empty beside masterauth: want the same one, because each server of a group may become the master, " +
			"to which the others log in with masterauth")
	case auth == "":
		return errors.New("masterauth is empty beside requirepass: want the same one, with which the replicas of a group log in")
	}
	return errors.New("masterauth and requirepass are different: want the same one, because each server of a group may become the master")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
