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
