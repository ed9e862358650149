// Package durable keeps an engine's data in a directory: RDB snapshots and
// append-only files, written while the engine is in use and loaded at start.
//
//	                ┌── save points, BGSAVE ──▶ dump.rdb
//	engine ─cut─▶ job ── rewrite ─────────────▶ appendonlydir/*.base.rdb
//	  │             └── Backup ───────────────▶ a writer
//	  └─ stream ──▶ appender ─────────────────▶ appendonlydir/*.incr.aof
//
// A Keeper is in one of these states as to the append-only files:
//
//	off ──SetAppendOnly(true)──▶ starting ──rewrite done──▶ on
//	 ▲                              │                      │  ▲
//	 └────── SetAppendOnly(false) ──┴──────────────────────┤  │ rewrite done
//	                                        write or sync  ▼  │
//	                                        failed ──▶ failed ┘
//
// In failed nothing that is written counts: writes are refused until a rewrite has
// put all data into new files, which the Keeper begins by itself. A sync that
// failed is never tried again.
//
// One job, a save or a rewrite, runs at a time, because the engine makes one
// snapshot at a time; the others are refused or scheduled, as in Redis. Everything
// that becomes a file of the data is written under a temporary name, synced,
// renamed, and the directory synced.
//
// Start reading at Open, Keeper.Load in load.go and job.go.
package durable

import (
	"errors"
	"log/slog"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/disk"
)

// Applier runs commands of an append-only file again: a session that replays.
// Nothing expires, nothing is logged. It is used by one goroutine.
type Applier interface {
	// Apply runs one command, SELECT among them. The arguments are valid during the
	// call. An error means that the command was refused, which ends the load.
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

	// Dir is where the files are; if empty, what Config says.
	Dir string
	// Memory makes a Keeper without a directory: nothing is locked, loaded, appended
	// or saved, and what needs files fails with ErrNoDirectory.
	Memory bool
	// Shared leaves the directory to other servers as well: it is locked only while a
	// save writes, and the last save wins, as with redis-server. A save that finds it
	// locked is left out, which the log tells. CONFIG SET save and appendonly end it.
	Shared bool
	// TakeRDB loads the RDB file where appendonly is yes and there are no append-only
	// files: they begin with its data. Redis loads nothing then.
	TakeRDB bool
	// AcceptClock starts even if the system's clock is far behind the files, which
	// means that the clock is right.
	AcceptClock bool
	// Version is written into files as redis-ver.
	Version string

	// NewApplier returns a session for a worker of the load.
	NewApplier func() Applier
	// Route returns the key of a command that reads and changes this one key and
	// nothing else, so that commands of other keys may run at the same time. Other commands
	// run alone. Without Route all do.
	Route func(args [][]byte) (key []byte, one bool)
	// DumpFunctions returns the code of all libraries. It is called with all shards
	// locked, at the instant of a snapshot.
	DumpFunctions func() [][]byte
	// LoadFunction takes a library of an RDB file, and replaces one of that name.
	LoadFunction func(code []byte) error
	// DropFunctions forgets all libraries, before a reload.
	DropFunctions func()
	// Origin names the stream for RDB files: its id, the offset as replicas count it,
	// and the selected database, -1 for none. It is called with all shards locked, at
	// the instant of a snapshot. nil writes nothing.
	Origin func() (id string, offset int64, db int)

	// SetLoading is called when a load begins (true) and when it ends (false).
	SetLoading func(on bool)
	// RefuseWrites is called with the error reply that writes are to get; "" allows
	// writes. It must not block, and takes no shard.
	RefuseWrites func(reply string)
	// Latency is called with the time that the change to rewritten files took, in us, as the event
	// aof-rename; may be nil.
	Latency func(event string, us int64)
	// Replica reports whether the engine follows a master now; may be nil.
	Replica func() bool
}

// The errors of jobs, in Redis's words: they become replies behind "ERR ".
var (
	// ErrNoDirectory: there are no files.
	ErrNoDirectory = errors.New("there is no directory for files: start with --dir")
	// ErrSaving: a BGSAVE runs.
	ErrSaving = errors.New("Background save already in progress")
	// ErrRewriting: a rewrite runs.
	ErrRewriting = errors.New("Background append only file rewriting already in progress")
	// ErrBusy: a rewrite or another snapshot runs, and the BGSAVE did not ask to be
	// scheduled.
	ErrBusy = errors.New("Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.")
	// ErrPartial: a reload has failed after the data was dropped.
	ErrPartial = errors.New("a reload has failed and the data in memory is not complete: it is not saved; start again, the files are as they were")
	// ErrClosed: the Keeper was closed.
	ErrClosed = errors.New("the files are closed")
)

// ShutdownMode says whether a shutdown saves.
type ShutdownMode uint8

// The modes of SHUTDOWN.
const (
	ShutdownDefault ShutdownMode = iota // saves if there are save points
	ShutdownSave
	ShutdownNoSave
)

// Origin is where the stream of a loaded RDB file came from.
type Origin struct {
	ID     string // "": the file does not say
	Offset int64  // as replicas count it
	DB     int    // the selected database, -1 for none
}

// ReloadOptions are those of DEBUG RELOAD. The zero value saves, empties and loads.
type ReloadOptions struct {
	NoSave  bool // load the file that is there
	NoFlush bool // leave what is there; a key that is in the file too is an error
	Merge   bool // as NoFlush, and the file's key wins
}

// Info is what INFO persistence tells. Times are in s, except where the name says
// so; -1 stands for never, or for nothing under way.
type Info struct {
	Loading       bool
	LoadingStart  int64 // unix time
	LoadingTotal  int64 // bytes
	LoadingLoaded int64
	LoadingETA    int64 // seconds that are left, about
	LoadingKeys   int64 // keys and commands so far
	LoadedKeys    int64 // of the last RDB file
	ExpiredOnLoad int64
	LoadMillis    int64 // how long the last load took

	Dirty         int64 // changes since the last save
	Saving        bool  // BGSAVE runs
	SaveScheduled bool
	LastSave      int64 // unix time
	LastSaveOK    bool
	LastSaveTime  int64
	CurrentSave   int64
	Saves         int64
	SavedKeys     int64 // of the job under way
	TotalKeys     int64

	AppendOnly       bool // enabled, or starting
	Rewriting        bool
	RewriteScheduled bool
	LastRewriteTime  int64
	CurrentRewrite   int64
	LastRewriteOK    bool
	Rewrites         int64
	RewriteFailures  int64 // since the last that succeeded
	LastWriteOK      bool
	CurrentSize      int64 // bytes of all append-only files
	BaseSize         int64 // and as of the last rewrite
	Buffered         int64 // bytes of the stream that are not written yet
	PendingSync      int64 // 1: a sync is under way
	DelayedSyncs     int64
}
