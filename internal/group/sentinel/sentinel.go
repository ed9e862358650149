// Package sentinel answers the clients of a group by Sentinel's protocol: they ask where the master is, and hear when that changes. So
// every client library that knows Sentinel finds the master of a group, without Sentinel's processes.
//
//	View ─▶ answers    SENTINEL GET-MASTER-ADDR-BY-NAME, MASTER, REPLICAS, SENTINELS ...; PING, ROLE, INFO, AUTH, CLIENT, HELLO
//	     └▶ events     what differs from the View before: +switch-master, +slave, +sdown, -sdown       SUBSCRIBE
//
// Answers have the form of redis-sentinel's, 7.0. A node answers from what it knows: it may be behind, as a Sentinel may. A client that
// has connected to the node that it was told asks it for its role, which the node knows.
//
// Start reading at View, then answer.go.
package sentinel

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// View is the state of a group, as a node knows it.
type View struct {
	Name      string // group-name
	ID        string // of this node: 40 hexadecimal digits
	Epoch     uint64
	Master    Server // without a Host: there is none yet
	Replicas  []Server
	Others    []Server // the other nodes and witnesses, at their Sentinel ports
	Quorum    int      // the smallest majority of nodes
	Usable    int      // the number of nodes that are not silent, this one included
	DownAfter time.Duration
}

// Server is the master, a replica, or a node that answers Sentinel's protocol.
type Server struct {
	Host           string
	Port           int
	ID             string // 40 hexadecimal digits
	SinceHeartbeat time.Duration
	Down           bool   // it is silent
	Linked         bool   // a replica: its link to the master is up
	Offset         uint64 // a replica: how far it is
}

// address returns host:port.
func (s Server) address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// same reports whether two servers are at the same address.
func (s Server) same(o Server) bool { return s.Host == o.Host && s.Port == o.Port }

// event is a message of a channel.
type event struct{ channel, text string }

// events returns what has changed between two views, in the order in which Sentinel says it.
func events(old, now View) (all []event) {
	if now.Master.Host == "" {
		return nil
	}
	for _, r := range now.Replicas {
		before, known := find(old.Replicas, r)
		if !known {
			all = append(all, event{"+slave", now.instance("slave", r)})
		}
		all = append(all, now.silence("slave", before, r)...)
	}
	for _, s := range now.Others {
		before, _ := find(old.Others, s)
		all = append(all, now.silence("sentinel", before, s)...)
	}
	if old.Master.Host == "" {
		return all
	}
	if !old.Master.same(now.Master) {
		return append(all, event{"+switch-master", fmt.Sprintf("%s %s %d %s %d", now.Name, old.Master.Host, old.Master.Port,
			now.Master.Host, now.Master.Port)})
	}
	return append(all, now.silence("master", old.Master, now.Master)...)
}

// silence returns the event of a server that has become silent, or is alive again.
func (v View) silence(kind string, before, now Server) []event {
	switch {
	case now.Down == before.Down:
		return nil
	case now.Down:
		return []event{{"+sdown", v.instance(kind, now)}}
	}
	return []event{{"-sdown", v.instance(kind, now)}}
}

// instance names a server as Sentinel's messages do.
func (v View) instance(kind string, s Server) string {
	switch kind {
	case "master":
		return fmt.Sprintf("master %s %s %d", v.Name, s.Host, s.Port)
	case "sentinel":
		return fmt.Sprintf("sentinel %s %s %d @ %s %s %d", s.ID, s.Host, s.Port, v.Name, v.Master.Host, v.Master.Port)
	}
	return fmt.Sprintf("slave %s %s %d @ %s %s %d", s.address(), s.Host, s.Port, v.Name, v.Master.Host, v.Master.Port)
}

func find(all []Server, s Server) (Server, bool) {
	for _, o := range all {
		if o.same(s) {
			return o, true
		}
	}
	return Server{}, false
}
