package group

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/group/control"
	"github.com/ebbdb/ebb/internal/group/directory"
	"github.com/ebbdb/ebb/internal/group/sentinel"
	"github.com/ebbdb/ebb/internal/group/settings"
	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/listen"
	"github.com/ebbdb/ebb/internal/system"
)

// part is the half of a node that servers and witnesses share: a vote, heartbeats, and Sentinel's protocol.
type part struct {
	opt      Options
	control  *control.Control
	sentinel *sentinel.Service
	unlock   func() error
	handOver func(to directory.NodeID) error // nil for a witness
	// registered is set when the directory has answered this process. Until then its state may be old: an operator
	// may have removed the node.
	registered atomic.Bool
}

type partOptions struct {
	data       bool
	register   directory.Command
	report     func() shard.Report
	heartbeat  func(shard.Report) // nil: heartbeats are not reported
	registered func(directory.Member, []directory.Shard)
	applied    func([]directory.Shard)
	failover   func(to directory.NodeID) error // begins a hand-over if this node is the master; becomes part.handOver
	access     sentinel.Access
}

// open starts a node's part. The caller closes it.
func open(o Options, with partOptions) (*part, error) {
	dir, unlock, err := lockFolder(o.Dir)
	if err != nil {
		return nil, err
	}
	p := &part{opt: o, unlock: unlock, handOver: with.failover}
	fail := func(err error) (*part, error) { return nil, errors.Join(err, p.close()) }
	at, port, err := listensAt(o.Bind, o.Group.Self.Address)
	if err != nil {
		return fail(err)
	}
	own, err := listen.At(at, port)
	if err != nil {
		return fail(fmt.Errorf("cannot open the group's port: %w", err))
	}
	registered := func(self directory.Member, all []directory.Shard) {
		p.registered.Store(true)
		with.registered(self, all)
	}
	p.control, err = control.Open(control.Config{Group: o.Group, Data: with.data, Clients: o.Clients, Sentinel: o.Group.Sentinel,
		Register: with.register, Now: o.Now, Report: with.report, Heartbeat: with.heartbeat, Registered: registered,
		Applied: with.applied, Dir: dir, Random: o.Random, Listeners: own, Server: o.Server, Client: o.Client, Logger: o.Logger})
	if err != nil {
		for _, l := range own {
			err = errors.Join(err, l.Close())
		}
		return fail(err)
	}
	if o.Group.Sentinel == 0 {
		return p, nil
	}
	all, err := listen.At(o.Bind, o.Group.Sentinel)
	if err != nil {
		return fail(fmt.Errorf("cannot open sentinel-port: %w", err))
	}
	p.sentinel = sentinel.Serve(sentinel.Options{Listeners: all, View: p.view, Access: with.access, Failover: p.failover, Recover: p.recoverAt,
		Version: o.Version, Period: o.Group.Timeout / 20, Patience: o.Group.Timeout, Logger: o.Logger})
	return p, nil
}

// lockFolder creates and locks the folder of a node, so that no second process uses it.
func lockFolder(dir string) (path string, unlock func() error, err error) {
	path = filepath.Join(dir, folder)
	fs := disk.OS()
	if err = fs.MkdirAll(path); err != nil {
		return "", nil, err
	}
	l, err := fs.Lock(path)
	if err != nil {
		return "", nil, fmt.Errorf("another node uses the directory %s; want a --dir of its own for each node: %w", path, err)
	}
	return path, l.Close, nil
}

// listensAt returns the addresses and the port at which the group's port listens, for a node that others reach at
// address: the addresses of bind, or loopback if address is a loopback address.
func listensAt(bind []string, address string) (at []string, port int, err error) {
	host, text, _ := net.SplitHostPort(address)
	port, _ = strconv.Atoi(text) // settings has checked it
	if system.LoopbackHost(host) {
		return []string{host}, port, nil
	}
	if !slices.ContainsFunc(bind, func(b string) bool { return !system.LoopbackHost(strings.TrimPrefix(b, "-")) }) {
		return nil, 0, fmt.Errorf("other nodes reach this one at %s, but bind %q has only loopback: want that address, or *", address,
			strings.Join(bind, " "))
	}
	return bind, port, nil
}

func (p *part) close() error {
	var err error
	if p.control != nil {
		err = p.control.Close() // first, because it ends the requests of clients of Sentinel's protocol
	}
	if p.sentinel != nil {
		err = errors.Join(err, p.sentinel.Close())
	}
	return errors.Join(err, p.unlock())
}

// view returns the state of the group for Sentinel clients. It names no server before the directory has answered this
// process.
func (p *part) view() sentinel.View {
	g := p.opt.Group
	voters := len(p.control.Voters())
	if voters == 0 { // the voters are not known yet
		voters = len(g.Nodes)
	}
	v := sentinel.View{Name: g.Name, ID: p.id(g.Self.Address), Quorum: voters/2 + 1, DownAfter: g.Timeout}
	if !p.registered.Load() {
		return v
	}
	s := p.shard()
	v.Epoch = s.Epoch
	for _, peer := range p.control.Peers() {
		if p.control.Removed(peer.ID) {
			continue
		}
		if !peer.Silent {
			v.Usable++
		}
		self := peer.ID == g.Self.ID
		if peer.Sentinel != 0 && !self {
			v.Others = append(v.Others, sentinel.Server{Host: hostOf(peer.Node), Port: peer.Sentinel, ID: p.id(peer.Address),
				SinceHeartbeat: peer.SinceHeartbeat, Down: peer.Silent})
		}
		host, text, err := net.SplitHostPort(peer.Clients)
		if err != nil {
			continue
		}
		port, _ := strconv.Atoi(text)
		server := sentinel.Server{Host: host, Port: port, ID: p.id(peer.Clients), SinceHeartbeat: peer.SinceHeartbeat, Down: peer.Silent,
			Linked: !peer.Silent && s.In(peer.Report.From), Offset: peer.Report.End}
		if s.Master.Node == peer.ID {
			v.Master = server
		} else {
			v.Replicas = append(v.Replicas, server)
		}
	}
	return v
}

// hostOf returns the host of a node's address.
func hostOf(n settings.Node) string {
	host, _, _ := net.SplitHostPort(n.Address) // settings has checked it
	return host
}

// shard returns the newest state of the group's only shard that this node has seen, or the zero Shard before the
// group has begun.
func (p *part) shard() (s directory.Shard) {
	for _, one := range p.control.Shards() {
		s = one
	}
	return s
}

// propose sends a command to the directory. It returns a refusal as an error.
func (p *part) propose(ctx context.Context, c directory.Command) error {
	a, err := p.control.Propose(ctx, c)
	if err == nil && a.Refused != 0 {
		err = a.Refused
	}
	return err
}

// id returns an identifier of 40 hex digits, as Sentinel's protocol has for servers, derived from the group's name
// and what.
func (p *part) id(what string) string {
	sum := sha256.Sum256([]byte(p.opt.Group.Name + " " + what))
	return hex.EncodeToString(sum[:20])
}

// Witness is a running node without data.
type Witness struct{ part *part }

// OpenWitness starts a node without data. The caller closes it.
func OpenWitness(o Options) (*Witness, error) {
	register := shard.Restart(o.Group.Self.ID, nil, false, false)
	register.Process = o.Random()
	var self directory.Member
	w := &Witness{}
	done := make(chan struct{}) // closed when the node is registered; self is written before
	report := func() shard.Report {
		select {
		case <-done:
			return shard.Report{From: self}
		default:
			return shard.Report{}
		}
	}
	p, err := open(o, partOptions{register: register, report: report, applied: func([]directory.Shard) {},
		access:     witnessAccess{password: o.Password, secret: o.Group.Secret, protected: o.Protected},
		registered: func(m directory.Member, _ []directory.Shard) { self = m; close(done) }})
	w.part = p
	return w, err
}

// Close ends the node's part.
func (w *Witness) Close() error { return w.part.close() }
