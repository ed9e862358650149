package console

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/resp"
)

// memberRow describes a group as a member sees it. Nodes have numbers from 1.
type memberRow struct {
	State   string `json:"state"`
	Node    int64  `json:"node"`    // this one; 0 before it is registered
	IsIn    bool   `json:"isIn"`    // this node is in sync
	Epoch   int64  `json:"epoch"`   // each promotion raises it
	Version int64  `json:"version"` // each change of the directory's state raises it
	Master  int64  `json:"master"`  // 0: there has been none
	InSync  int64  `json:"inSync"`  // the number of nodes in sync, including the master
	K       int64  `json:"k"`       // the number of replicas that must be in sync
	Leader  int64  `json:"leader"`  // the node that leads the directory; 0: this node knows none
	Voters  int64  `json:"voters"`  // 0: this node has not loaded its data yet
	Losses  int64  `json:"losses"`  // the number of times that an operator has accepted a loss

	// For the master only: whether it executes writes, and whether it holds the lease without which reads wait.
	Writable *bool `json:"writable,omitempty"`
	Lease    *bool `json:"lease,omitempty"`
}

// nodeRow is a node of the group, as this one sees it.
type nodeRow struct {
	Node   int64  `json:"node"`
	Addr   string `json:"addr"`   // for clients, or else of the group's port; "": not known
	IsPort bool   `json:"isPort"` // addr is that of the group's port
	IsThis bool   `json:"isThis"`
	// Role is master, insync, catching (it gets the data), out (not in sync), witness, starting (it has not registered), removed, or "",
	// which is not known.
	Role        string `json:"role"`
	Silent      int64  `json:"silent"` // ms since the last heartbeat of a silent node; -1: the node is not silent
	Incarnation int64  `json:"incarnation"`
	Link        string `json:"link"`   // up, down or loading; "": none, or not known
	Offset      string `json:"offset"` // "": not known
	// The part of the stream that the node has not acknowledged, in bytes, and for how long it has been behind, ms. -1: not known.
	Behind int64 `json:"behind"`
	Since  int64 `json:"since"`
	// Share is the part of the backlog that Behind takes. A node that lacks more than the backlog has needs all data.
	Share float64 `json:"share"`
	Next  bool    `json:"next"` // GROUP PROMOTE accepts the node
}

// getGroup answers GET api/group: the group, and its nodes.
func getGroup(k *call, q *request) (any, error) {
	out := struct {
		Group  *memberRow `json:"group"`
		Nodes  []nodeRow  `json:"nodes"`
		Listed bool       `json:"listed"` // the user may run GROUP STATUS; if not, nodes has only what INFO shows
		Denied []string   `json:"denied,omitempty"`
	}{Nodes: []nodeRow{}}
	f, err := k.status(q)
	if out.Listed = err == nil; err == errNotAllowed {
		f, err = k.info(q, "replication")
	}
	if err == errNotAllowed {
		out.Denied = k.denied
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.Group = memberOf(f)
	out.Nodes = nodesOf(f, k.c.svc.Config.Int("repl-backlog-size"))
	return out, nil
}

// status returns the lines of GROUP STATUS.
func (k *call) status(q *request) (map[string]string, error) {
	v, err := k.do(q.ctx, "GROUP", "STATUS")
	if err != nil {
		return nil, err
	}
	return fieldsOf(v), nil
}

// fieldsOf reads lines of name:value.
func fieldsOf(v resp.Value) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(v.Str) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// memberOf returns the group described by the fields of INFO replication; nil if the server belongs to none.
func memberOf(f map[string]string) *memberRow {
	if f["group_state"] == "" {
		return nil
	}
	g := &memberRow{State: f["group_state"], Node: number(f, "group_node"), IsIn: f["group_self_in_sync"] == "1",
		Epoch: number(f, "group_epoch"), Version: number(f, "group_version"), Master: number(f, "group_master"),
		InSync: number(f, "group_in_sync"), K: number(f, "group_min_sync_replicas"), Leader: number(f, "group_leader"),
		Voters: number(f, "group_voters"), Losses: number(f, "group_accepted_losses")}
	if f["group_writable"] != "" {
		writable, lease := f["group_writable"] == "1", f["group_lease"] == "1"
		g.Writable, g.Lease = &writable, &lease
	}
	return g
}

// nodesOf returns the nodes that the lines of GROUP STATUS, or those of INFO replication, name, by number. backlog is the size of the
// backlog in bytes.
func nodesOf(f map[string]string, backlog int64) []nodeRow {
	self, measured, end := number(f, "group_node"), f["group_writable"] != "", int64(-1)
	peers, members := linesOf(f, "group_peer"), linesOf(f, "group_member")
	if self != 0 && peers[self] == nil {
		peers[self] = map[string]string{} // INFO has no line about this node
	}
	for n, m := range members {
		if peers[n] == nil {
			peers[n] = map[string]string{}
		}
		if m["behind_bytes"] != "" {
			end = number(m, "offset") + number(m, "behind_bytes")
		}
	}
	numbers := make([]int64, 0, len(peers))
	for n := range peers {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	rows := make([]nodeRow, 0, len(peers))
	for _, n := range numbers {
		p, m := peers[n], members[n]
		row := nodeRow{Node: n, Addr: cmp.Or(p["clients"], p["address"]), IsPort: p["clients"] == "" && p["address"] != "",
			IsThis: n == self, Silent: -1, Incarnation: cmp.Or(number(m, "incarnation"), number(p, "incarnation")), Behind: -1, Since: -1}
		isIn := m["in_sync"] == "1"
		if row.IsThis {
			isIn, row.Incarnation, row.Link = f["group_self_in_sync"] == "1", number(f, "group_incarnation"), ownLink[f["group_state"]]
		} else if p["silent"] == "1" {
			row.Silent = number(p, "heard_ms")
		}
		if offset := number(p, "offset"); offset > 0 {
			row.Offset = text64(offset)
		}
		row.Role = roleOf(&row, p, isIn, number(f, "group_master"), f["group_state"])
		switch {
		case !measured || row.Role == "witness" || row.Role == "removed":
		case row.IsThis && end >= 0:
			row.Offset = text64(end) // a moment newer than the node's own heartbeat
		case !row.IsThis:
			row.measure(m, backlog)
		}
		row.Next = isIn && n != number(f, "group_master")
		rows = append(rows, row)
	}
	return rows
}

// ownLink has the link to the master by the state of a replica.
var ownLink = map[string]string{"searching": "down", "loading": "loading", "following": "up"}

// measure fills in the fields that only the master knows, from the line of a member.
func (r *nodeRow) measure(m map[string]string, backlog int64) {
	if r.Link = "down"; m["linked"] == "1" {
		r.Link = "up"
		if r.Role == "out" && r.Silent < 0 {
			r.Role = "catching"
		}
	}
	if m["offset"] == "0" && r.Link == "down" {
		return // the node has acknowledged nothing in this epoch
	}
	if m != nil {
		r.Offset, r.Behind, r.Since = m["offset"], number(m, "behind_bytes"), number(m, "behind_ms")
		r.Share = min(1, admin.Ratio(r.Behind, backlog))
	}
}

// roleOf returns the role of a node. p is its line in GROUP STATUS; isIn reports that the node is in sync.
func roleOf(r *nodeRow, p map[string]string, isIn bool, master int64, state string) string {
	switch {
	case p["removed"] == "1":
		return "removed"
	case r.Node == master:
		return "master"
	case isIn:
		return "insync"
	case p["data"] == "0" && (p["voter"] == "1" || r.Silent < 0):
		return "witness"
	case r.IsThis && (state == "loading" || state == "following"):
		return "catching"
	case r.Incarnation == 0 && r.Silent < 0:
		return "starting"
	case r.Incarnation == 0:
		return ""
	}
	return "out"
}

// linesOf reads the lines prefix0, prefix1 and so on, each about a node, by the number of the node.
func linesOf(f map[string]string, prefix string) map[int64]map[string]string {
	all := map[int64]map[string]string{}
	for i := 0; f[prefix+strconv.Itoa(i)] != ""; i++ {
		m := pairsOf(f[prefix+strconv.Itoa(i)])
		all[number(m, "node")] = m
	}
	return all
}
