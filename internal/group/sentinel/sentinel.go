// Package sentinel serves Sentinel's protocol for a group: clients ask for the address of the master, and receive
// events when it changes. So each client library that supports Sentinel finds the master of a group without a
// redis-sentinel process.
//
//	View ─▶ answers    SENTINEL GET-MASTER-ADDR-BY-NAME, MASTER, REPLICAS, SENTINELS ...; PING, ROLE, INFO, AUTH, CLIENT, HELLO
//	     └▶ events     the changes between two Views: +switch-master, +slave, +sdown, -sdown       SUBSCRIBE
//
// Answers have the form of redis-sentinel 7.0. A node answers from its own knowledge, which may be old, as a
// Sentinel's may be. So a client that has connected to a master asks it for its role.
//
// Start reading at View, then answer.go.
package sentinel

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// View is the state of a group as a node knows it.
type View struct {
	Name      string // group-name
	ID        string // of this node: 40 hexadecimal digits
	Epoch     uint64
	Master    Server // Host is empty while there is no master
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
	Down           bool   // it has sent no heartbeat for DownAfter
	Linked         bool   // a replica: its link to the master is up
	Offset         uint64 // for a replica: the end of its log
}

// address returns host:port.
func (s Server) address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// same reports whether two servers are at the same address.
func (s Server) same(o Server) bool { return s.Host == o.Host && s.Port == o.Port }

// event is a message of a channel.
type event struct{ channel, text string }

// events returns the events for the changes between two views, in Sentinel's order.
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

// silence returns the event for a server that has become silent or is alive again, if it has.
func (v View) silence(kind string, before, now Server) []event {
	switch {
	case now.Down == before.Down:
		return nil
	case now.Down:
		return []event{{"+sdown", v.instance(kind, now)}}
	}
	return []event{{"-sdown", v.instance(kind, now)}}
}

// instance returns the description of a server in an event.
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
