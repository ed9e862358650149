package embed

import "github.com/ebbdb/ebb/engine"

// Survey counts the deadlines of all databases by when they fall due, in seconds, minutes,
// hours and days from now: EXPIRY SURVEY. It visits no keys and takes less than a
// millisecond with a million of them; see engine.Tx.DueSurvey for how exact the counts are.
// It is safe for concurrent use. The nil Engine of a remote connection returns nil.
func (e *Engine) Survey() *engine.DueSurvey {
	if e == nil {
		return nil
	}
	return e.db.SurveyDue()
}

// Soon returns the keys and items of a database that expire next, earliest first: EXPIRY
// SOON. whole is false if it has stopped before it had seen all that may be earlier; see
// engine.Tx.Soon for the bounds and the cost. It is safe for concurrent use, and the rows
// are the caller's. The nil Engine of a remote connection returns nothing.
func (e *Engine) Soon(db int, o engine.SoonOptions) (rows []engine.Expiry, whole bool) {
	if e == nil {
		return nil, false
	}
	return e.db.Soon(db, o)
}

// Top returns the keys of a database whose limiters have denied most requests lately, at
// most n of them: RL.TOP. It is safe for concurrent use, and the rows are the caller's. The
// nil Engine of a remote connection returns nothing.
func (e *Engine) Top(db, n int) []engine.ThrottledKey {
	if e == nil {
		return nil
	}
	return e.db.Throttled(db, n)
}
