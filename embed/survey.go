package embed

import (
	"strconv"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
)

// DueSurvey counts deadlines of all databases by when they fall due.
type DueSurvey struct {
	At time.Time // the instant from which on it counts

	Keys       DueCounts // keys with a deadline
	Containers DueCounts // containers, by when the next of their items falls due
}

// DueCounts has one count for each interval. Each series begins at the survey's instant:
// Minutes[0] is the sum of Seconds, Hours[0] that of Minutes, Days[0] that of the first 24
// of Hours. A deadline on a boundary belongs to the later interval.
type DueCounts struct {
	Due     int64     // deadlines that have passed; the keys and items are not removed yet
	Seconds [60]int64 // of the next minute
	Minutes [60]int64 // of the next hour
	Hours   [48]int64 // of the next two days
	Days    [31]int64 // of the next 31 days, 24 hours each
	Later   int64     // after these
}

// Survey counts the deadlines of all databases by when they fall due, in seconds, minutes,
// hours and days from now: EXPIRY SURVEY. It visits no keys and takes less than a
// millisecond with a million of them. The sum of all intervals is exact. An interval may be off
// by the deadlines near its ends: 256 ms of them within a minute, 65 s within hours, 4.7 hours
// within weeks. It is safe for concurrent use. The nil Engine of a remote connection returns nil.
func (e *Engine) Survey() *DueSurvey {
	if e == nil {
		return nil
	}
	v := e.in.DB().SurveyDue()
	return &DueSurvey{At: time.UnixMilli(v.At), Keys: DueCounts(v.Keys), Containers: DueCounts(v.Containers)}
}

// Level says what a deadline belongs to.
type Level uint8

// These are the levels.
const (
	LevelKey     = Level(engine.LevelKey)
	LevelField   = Level(engine.LevelField)   // a field of a hash
	LevelMember  = Level(engine.LevelMember)  // a member of a set or a sorted set
	LevelElement = Level(engine.LevelElement) // an element of a list
	LevelLease   = Level(engine.LevelLease)   // a lease of a lock, a semaphore or a job
)

// String returns the name of the level, as the command EXPIRY has it: key, field, member, element or lease.
func (l Level) String() string {
	if l > LevelLease {
		return "Level " + strconv.Itoa(int(l))
	}
	return engine.Level(l).String()
}

// SoonOptions choose among what expires. The zero value is the next deadline of all.
type SoonOptions struct {
	Count  int                   // rows; 1 if 0, at most 1,000
	Within time.Duration         // from now; 0: any deadline. Parts of a millisecond do not count
	Levels []Level               // none: all
	Match  func(key []byte) bool // chooses keys; nil: all. It is called with a part of the engine locked, and must not use the engine
}

// Expiry is a deadline and the key or item that it belongs to.
type Expiry struct {
	Deadline time.Time
	Level    Level
	Key      []byte
	Item     []byte // a field, a member, an element, a holder's name or a job's id; nil of a key
}

// Soon returns the keys and items of a database that expire next, earliest first: EXPIRY
// SOON. whole is false if it has stopped before it had seen all that may be earlier: it looks
// at 65,536 deadlines, of each shard or, with Levels or Match, of all. Without them it costs
// O(n log n) for n rows, else O(what expires before the last row). It is safe for concurrent
// use, and the rows are the caller's. The nil Engine of a remote connection returns nothing.
func (e *Engine) Soon(db int, o SoonOptions) (rows []Expiry, whole bool) {
	if e == nil {
		return nil, false
	}
	in := engine.SoonOptions{Count: o.Count, Within: o.Within.Milliseconds(), Match: o.Match}
	for _, l := range o.Levels {
		in.Levels |= 1 << min(l, 7) // nothing is on the levels above LevelLease
	}
	all, whole := e.in.DB().Soon(db, in)
	for _, x := range all {
		rows = append(rows, Expiry{time.UnixMilli(x.Deadline), Level(x.Level), x.Key, x.Item})
	}
	return rows, whole
}

// ThrottledKey is a limiter that has denied requests lately. A request counts fully in the
// minute in which it was made, then half, then a quarter.
type ThrottledKey struct {
	Key     []byte
	Denied  int64
	Allowed int64     // since Since
	Since   time.Time // the first denial that is counted
	Error   int64     // Denied is too high by this at most, and never too low
}

// Top returns the keys of a database whose limiters have denied most requests lately, at
// most n of them: RL.TOP. It is safe for concurrent use, and the rows are the caller's. The
// nil Engine of a remote connection returns nothing.
func (e *Engine) Top(db, n int) (rows []ThrottledKey) {
	if e == nil {
		return nil
	}
	for _, x := range e.in.DB().Throttled(db, n) {
		rows = append(rows, ThrottledKey{x.Key, x.Denied, x.Allowed, time.UnixMilli(x.Since), x.Error})
	}
	return rows
}

// HotKey is a key that clients use often.
type HotKey struct {
	DB    int
	Key   []byte
	QPS   float64 // calls a second, estimated from a sample of the commands
	Error float64 // by which QPS may be too low, beside the chance of the sample
}

// HotKeys returns the keys that clients have used most in the last whole window, at most n of
// them, most calls first: HOTKEYS GET. The length of a window and the part of the commands that
// is sampled are the directives hotkey-window-seconds and hotkey-sampling-percentage. watch keeps
// the sampling on for that time, whatever hotkey-top-k says; with 0 the directive decides. ok is
// false if nothing is sampled, and before the first window has ended. It is safe for concurrent
// use, and the keys are the caller's. The nil Engine of a remote connection returns nothing.
func (e *Engine) HotKeys(n int, watch time.Duration) (keys []HotKey, ok bool) {
	if e == nil {
		return nil, false
	}
	w, ok := e.in.Service().HotKeys(n, watch)
	for _, k := range w.Keys {
		keys = append(keys, HotKey(k))
	}
	return keys, ok
}
