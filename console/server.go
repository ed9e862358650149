package console

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/config"
)

// This file answers the cards of the screen Server: replication, files and the configuration. acl.go has those about users.

// info returns the fields of some sections of INFO.
func (k *call) info(q *request, sections ...string) (map[string]string, error) {
	args := []any{"INFO"}
	for _, s := range sections {
		args = append(args, s)
	}
	v, err := k.do(q.ctx, args...)
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(v.Str) {
		if name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), ":"); ok {
			fields[name] = value
		}
	}
	return fields, nil
}

// number returns a field of INFO, 0 if it is missing.
func number(fields map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(fields[name], 10, 64) // 0 where the field is no number
	return n
}

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

// syncRow is the progress of a full synchronisation, in bytes. Total is 0 if the master has not said it.
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
		Offset   string       `json:"offset,omitempty"`
		ID       string       `json:"id,omitempty"`
		Failover string       `json:"failover,omitempty"`
		Backlog  *backlog     `json:"backlog,omitempty"`
		Master   *masterRow   `json:"master"`
		Replicas []replicaRow `json:"replicas"`
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
	out.Offset, out.ID, out.Failover = f["master_repl_offset"], f["master_replid"], f["master_failover_state"]
	out.Backlog = &backlog{f["repl_backlog_active"] == "1", number(f, "repl_backlog_size"), f["repl_backlog_first_byte_offset"],
		number(f, "repl_backlog_histlen")}
	out.Full, out.Partial, out.Refused = number(f, "sync_full"), number(f, "sync_partial_ok"), number(f, "sync_partial_err")
	if f["role"] == "slave" {
		out.Role, out.Master = "replica", k.master(f)
	}
	for i := range number(f, "connected_slaves") {
		out.Replicas = append(out.Replicas, replicaOf(f["slave"+strconv.FormatInt(i, 10)], number(f, "master_repl_offset")))
	}
	return out, nil
}

// master returns the master that the fields of INFO replication name.
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

// replicaOf reads the value of a line such as slave0:ip=10.0.0.1,port=6379,state=online,offset=14,lag=0.
func replicaOf(text string, end int64) replicaRow {
	f := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		f[name] = value
	}
	host := f["ip"]
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return replicaRow{Addr: host + ":" + f["port"], State: f["state"], Offset: f["offset"], Behind: text64(max(0, end-number(f, "offset"))), Lag: number(f, "lag")}
}

// getFiles answers GET api/files: where the data is kept, and how the last jobs ended. Times are in seconds.
func getFiles(k *call, _ *request) (any, error) {
	type appendOnly struct {
		On       bool   `json:"on"`
		Fsync    string `json:"fsync"`
		Size     int64  `json:"size"`
		Base     int64  `json:"base"`
		Buffered int64  `json:"buffered"`
		Pending  int64  `json:"pendingSync"`
		Delayed  int64  `json:"delayedSyncs"`
		WriteOK  bool   `json:"writeOK"`
		Running  bool   `json:"rewriting"`
		Waiting  bool   `json:"rewriteScheduled"`
		Rewrites int64  `json:"rewrites"`
		Failures int64  `json:"failures"`
		LastOK   bool   `json:"rewriteOK"`
		Took     *int64 `json:"rewriteTook"`
	}
	type snapshot struct {
		Saving   bool    `json:"saving"`
		Waiting  bool    `json:"scheduled"`
		Progress float64 `json:"progress"` // 0 to 1, of the job that runs
		Last     int64   `json:"last"`     // ms since 1970
		OK       bool    `json:"ok"`
		Took     *int64  `json:"took"`
		Changes  int64   `json:"changes"`
		Saves    int64   `json:"saves"`
		Points   string  `json:"points"` // as CONFIG GET save prints them
	}
	type loaded struct {
		Keys    int64 `json:"keys"`
		Expired int64 `json:"expired"`
	}
	out := struct {
		Now      int64       `json:"now"`
		Dir      *string     `json:"dir"`    // null: the user may not see it, or there is none
		Memory   bool        `json:"memory"` // the server keeps no files
		AOF      *appendOnly `json:"aof,omitempty"`
		Snapshot *snapshot   `json:"snapshot,omitempty"`
		Loaded   *loaded     `json:"loaded,omitempty"`
		Denied   []string    `json:"denied,omitempty"`
	}{Now: k.c.now()}
	if !k.allowed([][]byte{[]byte("INFO"), []byte("persistence")}) {
		out.Denied = k.denied
		return out, nil
	}
	f, keeper, cfg := k.c.svc.Admin().Host.Files(), k.c.svc.Keeper(), k.c.svc.Config
	out.Memory = keeper == nil || keeper.Dir() == ""
	if k.allowed([][]byte{[]byte("CONFIG"), []byte("GET"), []byte("dir")}) && !out.Memory {
		dir := keeper.Dir()
		out.Dir = &dir
	}
	took := func(seconds int64) *int64 {
		if seconds < 0 {
			return nil
		}
		return &seconds
	}
	out.AOF = &appendOnly{f.AppendOnly, cfg.String("appendfsync"), f.CurrentSize, f.BaseSize, f.Buffered, f.PendingSync, f.DelayedSyncs, f.LastWriteOK,
		f.Rewriting, f.RewriteScheduled, f.Rewrites, f.RewriteFailures, f.LastRewriteOK, took(f.LastRewriteTime)}
	out.Snapshot = &snapshot{f.Saving, f.SaveScheduled, min(1, admin.Ratio(f.SavedKeys, f.TotalKeys)), f.LastSave * 1000, f.LastSaveOK, took(f.LastSaveTime),
		f.Dirty, f.Saves, cfg.String("save")}
	out.Loaded = &loaded{f.LoadedKeys, f.ExpiredOnLoad}
	out.Denied = k.denied
	return out, nil
}

// configRow is a directive of the configuration.
type configRow struct {
	Name      string   `json:"name"`
	Value     *blob    `json:"value"` // null: a secret
	Default   *blob    `json:"default"`
	Changed   bool     `json:"changed"`
	Secret    bool     `json:"secret,omitempty"`
	Set       bool     `json:"set,omitempty"`     // of a secret: it is not empty
	Given     blob     `json:"given"`             // where it was given at start, such as redis.conf:12
	Immutable bool     `json:"immutable"`         // CONFIG SET refuses it
	Protected bool     `json:"protected"`         // CONFIG SET needs enable-protected-configs
	Choices   []string `json:"choices"`           // the values that it may have, null: others
	Usage     string   `json:"usage"`             // which values are valid
	Doc       string   `json:"doc"`               // its meaning and unit
	Ignored   string   `json:"ignored,omitempty"` // why the server does not use it
}

// getConfig answers GET api/config: the directives, those that differ from their defaults first.
func getConfig(k *call, _ *request) (any, error) {
	out := struct {
		File   string      `json:"file"` // "": none was read
		Rows   []configRow `json:"rows"`
		Denied []string    `json:"denied,omitempty"`
	}{Rows: []configRow{}}
	if !k.allowed([][]byte{[]byte("CONFIG"), []byte("GET"), []byte("*")}) {
		out.Denied = k.denied
		return out, nil
	}
	set := k.c.svc.Config
	out.File = set.Path()
	for _, s := range set.Settings() {
		if s.Hidden && !s.Changed() {
			continue // CONFIG GET * does not show it either
		}
		row := configRow{Name: s.Name, Changed: s.Changed(), Secret: s.Sensitive, Given: bytesOf(s.Where), Immutable: s.Immutable, Protected: s.Protected,
			Usage: s.Usage(), Doc: s.Doc, Ignored: s.Unused}
		switch s.Kind {
		case config.Bool:
			row.Choices = []string{"no", "yes"}
		case config.Enum:
			row.Choices = s.Choices
		}
		if row.Set = s.Sensitive && s.Value != ""; !s.Sensitive {
			value, initial := bytesOf(s.Value), bytesOf(s.Initial)
			row.Value, row.Default = &value, &initial
		}
		out.Rows = append(out.Rows, row)
	}
	rank := func(r configRow) int {
		switch {
		case r.Ignored != "":
			return 2
		case r.Changed:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(out.Rows, func(a, b configRow) int { return rank(a) - rank(b) })
	return out, nil
}
