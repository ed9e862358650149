package console

import (
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
)

// masterRow is the master of a replica.
type masterRow struct {
	Host     blob     `json:"host"`
	Port     int64    `json:"port"`
	Up       bool     `json:"up"`
	Step     string   `json:"step"` // connect, connecting, handshake, sync or connected
	Idle     int64    `json:"idle"` // seconds since the last byte, -1: the link is down
	Down     int64    `json:"down"` // seconds for which the link has been down, 0 if it is up
	ReadOnly bool     `json:"readOnly"`
	Sync     *syncRow `json:"sync"` // null: no full synchronisation is running
	Error    blob     `json:"error"`
	Refused  int64    `json:"refused"` // commands of the stream that this server refused
	Last     blob     `json:"refusedLast"`
}

// syncRow is the progress of a full synchronisation, in bytes. Total is 0 if the master has not sent it.
type syncRow struct {
	Total int64   `json:"total"`
	Read  int64   `json:"read"`
	Share float64 `json:"share"`
}

// replicaRow is a replica of this server.
type replicaRow struct {
	Addr   string `json:"addr"`
	State  string `json:"state"`
	Offset string `json:"offset"`
	Behind string `json:"behind"` // bytes of the stream that it has not acknowledged
	Lag    int64  `json:"lag"`    // seconds since its last acknowledgement
}

// getReplication answers GET api/replication: the masters and the replicas that this server is connected to.
func getReplication(k *call, q *request) (any, error) {
	type backlog struct {
		On    bool   `json:"on"`
		Size  int64  `json:"size"`
		First string `json:"first"`
		Len   int64  `json:"len"`
	}
	out := struct {
		Now      int64        `json:"now"`
		Role     string       `json:"role,omitempty"`
		Port     int64        `json:"port,omitempty"` // the port of this server; 0: it has none
		Offset   string       `json:"offset,omitempty"`
		ID       string       `json:"id,omitempty"`
		Failover string       `json:"failover,omitempty"`
		Backlog  *backlog     `json:"backlog,omitempty"`
		Master   *masterRow   `json:"master"`
		Replicas []replicaRow `json:"replicas"`
		Grouped  bool         `json:"grouped"` // this server is a member of a group, see getGroup
		Full     int64        `json:"full"`
		Partial  int64        `json:"partial"`
		Refused  int64        `json:"partialRefused"`
		Denied   []string     `json:"denied,omitempty"`
	}{Now: k.c.now(), Replicas: []replicaRow{}}
	f, err := k.info(q, "replication", "stats")
	if err == errNotAllowed {
		out.Denied = k.denied
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	out.Role = "master"
	if h := k.c.svc.Admin().Host; h.Listening() {
		out.Port = int64(h.Port())
	}
	out.Offset, out.ID, out.Failover = f["master_repl_offset"], f["master_replid"], f["master_failover_state"]
	out.Backlog = &backlog{f["repl_backlog_active"] == "1", number(f, "repl_backlog_size"), f["repl_backlog_first_byte_offset"],
		number(f, "repl_backlog_histlen")}
	out.Full, out.Partial, out.Refused = number(f, "sync_full"), number(f, "sync_partial_ok"), number(f, "sync_partial_err")
	if f["role"] == "slave" {
		out.Role, out.Master = "replica", k.master(f)
	}
	out.Grouped = f["group_state"] != ""
	for i := range number(f, "connected_slaves") {
		out.Replicas = append(out.Replicas, replicaOf(f["slave"+strconv.FormatInt(i, 10)], number(f, "master_repl_offset")))
	}
	return out, nil
}

// master returns the master named by the fields of INFO replication.
func (k *call) master(f map[string]string) *masterRow {
	m := &masterRow{Host: bytesOf(f["master_host"]), Port: number(f, "master_port"), Up: f["master_link_status"] == "up",
		Idle: number(f, "master_last_io_seconds_ago"), Down: number(f, "master_link_down_since_seconds"),
		ReadOnly: f["slave_read_only"] == "1", Error: bytesOf(f["master_sync_last_error"]),
		Refused: number(f, "replica_refused_commands"), Last: bytesOf(f["replica_refused_last"])}
	if link, ok := k.c.svc.Replication().Link(); ok {
		m.Step = link.Step
	}
	if f["master_sync_in_progress"] == "1" {
		m.Sync = &syncRow{Total: number(f, "master_sync_total_bytes"), Read: number(f, "master_sync_read_bytes")}
		m.Sync.Share = admin.Ratio(m.Sync.Read, m.Sync.Total)
	}
	return m
}

// pairsOf reads the value of a line such as group_member0:node=2,in_sync=1.
func pairsOf(text string) map[string]string {
	f := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		f[name] = value
	}
	return f
}

// replicaOf reads the value of a line such as slave0:ip=10.0.0.1,port=6379,state=online,offset=14,lag=0.
func replicaOf(text string, end int64) replicaRow {
	f := pairsOf(text)
	host := f["ip"]
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return replicaRow{Addr: host + ":" + f["port"], State: f["state"], Offset: f["offset"], Behind: text64(max(0, end-number(f, "offset"))), Lag: number(f, "lag")}
}
