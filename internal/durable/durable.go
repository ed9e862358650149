// Package durable keeps an engine's data in a directory: RDB snapshots and append-only files,
// written while the engine is in use and loaded at start.
//
//	                ┌── save points, BGSAVE ──▶ dump.rdb
//	engine ─cut─▶ job ── rewrite ─────────────▶ appendonlydir/*.base.rdb
//	  │             └── Backup ───────────────▶ a writer
//	  └─ stream ──▶ appender ─────────────────▶ appendonlydir/*.incr.aof
//
// The append-only files of a Keeper are in one of these states:
//
//	off ──SetAppendOnly(true)──▶ starting ──rewrite done──▶ on
//	 ▲                              │                      │  ▲
//	 └────── SetAppendOnly(false) ──┴──────────────────────┤  │ rewrite done
//	                                        write or sync  ▼  │
//	                                        failed ──▶ failed ┘
//
// In the state failed, the server refuses writes until a rewrite has written all data into new
// files. The Keeper begins this rewrite by itself. It never repeats a sync that failed.
//
// One job, a save or a rewrite, runs at a time, because the engine makes one snapshot at a time; it
// refuses or schedules others, as Redis does. It writes each data file under a temporary name,
// syncs it, renames it, and syncs the directory.
//
// Start reading at Open, Keeper.Load in load.go and job.go.
package durable

import (
	"errors"
	"log/slog"

	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/engine"
)

// Applier is a session that replays commands of an append-only file. During the replay nothing
// expires, and the engine logs nothing. One goroutine uses it.
type Applier interface {
	// Apply runs one command, SELECT among them. The arguments are valid during the call. An error
	// means that the session refused the command, and ends the load.
	Apply(args [][]byte) error
	// Close ends the session.
	Close()
}

// Options configure a Keeper. DB, Config and NewApplier are required.
type Options struct {
	DB     *engine.DB
	Config *config.Set
	Logger *slog.Logger // nowhere if nil
	FS     disk.FS      // the real one if nil

	// Dir is the directory of the files; if empty, the one of Config.
	Dir string
	// Memory makes a Keeper without a directory. It locks, loads, appends and saves nothing, and
	// methods that need files return ErrNoDirectory.
	Memory bool
	// Shared allows other servers to use the directory too. The Keeper locks it only during a save,
	// and the last save wins, as with redis-server. It skips a save if the directory is locked, and
	// logs that. CONFIG SET save and appendonly end the sharing.
	Shared bool
	// TakeRDB loads the RDB file if appendonly is yes and there are no append-only files; these
	// then begin with its data. Redis loads nothing in this case.
	TakeRDB bool
	// AcceptClock starts even if the system's clock is far behind the files, which
	// means that the clock is right.
	AcceptClock bool
	// Version is the server's version, which the Keeper writes into files as redis-ver.
	Version string

	// NewApplier returns a session for a worker of the load.
	NewApplier func() Applier
	// Route returns the key of a command that reads and changes this one key and nothing else, so
	// that commands of other keys can run at the same time. Other commands run alone. Without
	// Route, all commands do.
	Route func(args [][]byte) (key []byte, one bool)
	// DumpFunctions returns the code of all libraries. The Keeper calls it with all shards locked,
	// at the instant of a snapshot.
	DumpFunctions func() [][]byte
	// LoadFunction loads a library of an RDB file, and replaces one with the same name.
	LoadFunction func(code []byte) error
	// DropFunctions removes all libraries, before a reload.
	DropFunctions func()
	// Origin names the stream for RDB files: its id, the offset as replicas count it, and the
	// selected database, -1 for none. The Keeper calls it with all shards locked, at the instant of
	// a snapshot. If it is nil, files do not name the stream.
	Origin func() (id string, offset int64, db int)

	// The Keeper calls SetLoading when a load begins (true) and when it ends (false).
	SetLoading func(on bool)
	// The Keeper calls RefuseWrites with the error reply for writes; "" allows writes. It must not
	// block or lock a shard.
	RefuseWrites func(reply string)
	// The Keeper calls Latency with the duration of the change to rewritten files, in us, as the
	// event aof-rename; may be nil.
	Latency func(event string, us int64)
	// Replica reports whether the engine follows a master now; may be nil.
	Replica func() bool
}

// The errors of jobs, with Redis's texts: the server replies them after "ERR ".
var (
	// ErrNoDirectory: the Keeper has no directory.
	ErrNoDirectory = errors.New("there is no directory for files: start with --dir")
	// ErrSaving: a BGSAVE is running.
	ErrSaving = errors.New("Background save already in progress")
	// ErrRewriting: a rewrite is running.
	ErrRewriting = errors.New("Background append only file rewriting already in progress")
	// ErrBusy: a rewrite or another snapshot is running, and the BGSAVE has no SCHEDULE.
	ErrBusy = errors.New("Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule " +
		"a BGSAVE whenever possible.")
	// ErrPartial: a reload has failed after the data was dropped.
	ErrPartial = errors.New("a reload has failed and the data in memory is not complete: it is not saved; start " +
		"again, the files are as they were")
	// ErrClosed: the Keeper was closed.
	ErrClosed = errors.New("the files are closed")
)

// ShutdownMode says whether a shutdown saves.
type ShutdownMode uint8

// These are the modes of SHUTDOWN.
const (
	ShutdownDefault ShutdownMode = iota // saves if there are save points
	ShutdownSave
	ShutdownNoSave
)

// Origin names the stream and the offset of a loaded RDB file.
type Origin struct {
	ID     string // "": the file does not name the stream
	Offset int64  // as replicas count it
	DB     int    // the selected database, -1 for none
}

// ReloadOptions are the options of DEBUG RELOAD. With the zero value, Reload saves, empties the
// engine and loads.
type ReloadOptions struct {
	NoSave  bool // load the existing file
	NoFlush bool // keep the engine's data; a key that is also in the file is an error
	Merge   bool // like NoFlush, but the file's key wins
}

// Info has the numbers of INFO persistence. Times are in s, unless the name has another unit; -1
// stands for never, or for no running job.
type Info struct {
	Loading       bool
	LoadingStart  int64 // unix time
	LoadingTotal  int64 // bytes
	LoadingLoaded int64
	LoadingETA    int64 // estimated seconds until the end
	LoadingKeys   int64 // keys and commands so far
	LoadedKeys    int64 // keys of the last RDB file
	ExpiredOnLoad int64
	LoadMillis    int64 // the duration of the last load

	Dirty         int64 // changes since the last save
	Saving        bool  // BGSAVE runs
	SaveScheduled bool
	LastSave      int64 // unix time
	LastSaveOK    bool
	LastSaveTime  int64
	CurrentSave   int64
	Saves         int64
	SavedKeys     int64 // keys that the running job has saved
	TotalKeys     int64

	AppendOnly       bool // enabled, or starting
	Rewriting        bool
	RewriteScheduled bool
	LastRewriteTime  int64
	CurrentRewrite   int64
	LastRewriteOK    bool
	Rewrites         int64
	RewriteFailures  int64 // failed rewrites since the last success
	LastWriteOK      bool
	CurrentSize      int64 // bytes of all append-only files
	BaseSize         int64 // CurrentSize as of the last rewrite
	Buffered         int64 // bytes of the stream that are not written yet
	PendingSync      int64 // 1: a sync is running
	DelayedSyncs     int64
}
