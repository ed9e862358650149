package console

import "github.com/ebbdb/ebb/internal/admin"

// appendOnly is the append-only file. Times are in seconds.
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

// snapshot describes the last snapshot, and the running one.
type snapshot struct {
	Saving   bool    `json:"saving"`
	Waiting  bool    `json:"scheduled"`
	Progress float64 `json:"progress"` // 0 to 1, of the running job
	Last     int64   `json:"last"`     // ms since 1970
	OK       bool    `json:"ok"`
	Took     *int64  `json:"took"`
	Changes  int64   `json:"changes"`
	Saves    int64   `json:"saves"`
	Points   string  `json:"points"` // as CONFIG GET save prints them
}

// loaded describes the data that the start has read.
type loaded struct {
	Keys    int64 `json:"keys"`
	Expired int64 `json:"expired"`
}

// getFiles answers GET api/files: the place of the data, and the results of the last jobs. Times are in
// seconds.
func getFiles(k *call, _ *request) (any, error) {
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
	out.AOF = &appendOnly{f.AppendOnly, cfg.String("appendfsync"), f.CurrentSize, f.BaseSize, f.Buffered, f.PendingSync, f.DelayedSyncs,
		f.LastWriteOK, f.Rewriting, f.RewriteScheduled, f.Rewrites, f.RewriteFailures, f.LastRewriteOK, durationOf(f.LastRewriteTime)}
	out.Snapshot = &snapshot{f.Saving, f.SaveScheduled, min(1, admin.Ratio(f.SavedKeys, f.TotalKeys)), f.LastSave * 1000, f.LastSaveOK,
		durationOf(f.LastSaveTime), f.Dirty, f.Saves, cfg.String("save")}
	out.Loaded = &loaded{f.LoadedKeys, f.ExpiredOnLoad}
	out.Denied = k.denied
	return out, nil
}

// durationOf returns the duration of a job in seconds; nil if none has run, for which the server has -1.
func durationOf(seconds int64) *int64 {
	if seconds < 0 {
		return nil
	}
	return &seconds
}
