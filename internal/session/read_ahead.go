package session

import (
	"bytes"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/wire"
)

// aheadPause is the number of batches for which a session does not read ahead after a batch in which reading
// ahead saved nothing.
const aheadPause = 63

// readAhead makes the engine read ahead for the requests at the start of in, of which the first is complete;
// see engine.Ahead. It returns the length of these requests: the caller calls it again after them. A wrong
// guess, for instance in MULTI or before a SELECT, costs some useless reads.
func (c *Session) readAhead(in []byte) (n int) {
	if c.noAhead > 0 {
		c.noAhead--
		return len(in)
	}
	var keys engine.Ahead
	var last []byte
	hasKey := false
	for range engine.AheadMost {
		name, key, size := wire.Peek(in[n:])
		if size == 0 {
			break
		}
		n += size
		if !bytes.Equal(name, last) {
			s := c.svc.table.Lookup(name)
			last, hasKey = name, s != nil && s.OneKey(nil) == 1
		}
		if hasKey && key != nil {
			keys.Add(c.svc.DB, key)
		}
	}
	if !c.svc.DB.ReadAhead(c.dbi, &keys) {
		c.noAhead = aheadPause
		return len(in)
	}
	return n
}
