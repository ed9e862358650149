package engine

// ruleSet is the rules of one database.
type ruleSet struct{}

// rules returns the rules of the selected database, nil if there are none.
func (tx *Tx) rules() *ruleSet { return nil }

// ruled reports whether a rule of the selected database matches a key on a level.
func (tx *Tx) ruled(key []byte, l Level) bool { return false }

// fire appends entries to the streams of the rules that match.
func (tx *Tx) fire(rs *ruleSet, l Level, key, item, value []byte, deadline int64) {}
