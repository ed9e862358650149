package embed

import (
	"time"

	"github.com/ebbdb/ebb/engine"
)

// Survey counts the deadlines of all databases by when they fall due, in seconds, minutes,
// hours and days from now: EXPIRY SURVEY. It visits no keys and takes less than a
// millisecond with a million of them; see engine.Tx.DueSurvey for how exact the counts are.
// It is safe for concurrent use. The nil Engine of a remote connection returns nil.
func (e *Engine) Survey() *engine.DueSurvey {
	if e == nil {
		return nil
	}
	return e.DB().SurveyDue()
}

// Soon returns the keys and items of a database that expire next, earliest first: EXPIRY
// SOON. whole is false if it has stopped before it had seen all that may be earlier; see
// engine.Tx.Soon for the bounds and the cost. It is safe for concurrent use, and the rows
// are the caller's. The nil Engine of a remote connection returns nothing.
func (e *Engine) Soon(db int, o engine.SoonOptions) (rows []engine.Expiry, whole bool) {
	if e == nil {
		return nil, false
	}
	return e.DB().Soon(db, o)
}

// Top returns the keys of a database whose limiters have denied most requests lately, at
// most n of them: RL.TOP. It is safe for concurrent use, and the rows are the caller's. The
// nil Engine of a remote connection returns nothing.
func (e *Engine) Top(db, n int) []engine.ThrottledKey {
	if e == nil {
		return nil
	}
	return e.DB().Throttled(db, n)
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
