package command

import "sync"

// aclContext is where a request was refused.
type aclContext string

const (
	contextTop   aclContext = "toplevel"
	contextMulti aclContext = "multi"
	contextLua   aclContext = "lua"
)

// context is where the session's requests are refused now.
func (c *Session) context() aclContext {
	if c.multi.on {
		return contextMulti
	}
	return contextTop
}

// refusal is what was refused, and to whom.
type refusal struct {
	why          denied
	object, user string // object as far as it is kept: refusedObject
}

// aclLog is what ACL LOG shows: refusals, those of the same thing within a
// minute together.
type aclLog struct {
	mu      sync.Mutex // guards what follows
	next    int64
	entries []aclEntry // the newest last
}

type aclEntry struct {
	refusal
	context          aclContext
	id, count        int64
	created, updated int64 // us
	client           string
}

const (
	// aclLogTogether is how far refusals of the same thing may be apart, in us,
	// to be counted instead of listed.
	aclLogTogether = 60e6
	// aclLogLook is among how many entries they are looked for.
	aclLogLook = 10
	// aclLogBytes is how much is kept of what was refused and of the user's name, and
	// aclLogClient how much of the client's description, in which its own words stand.
	aclLogBytes  = slowBytes
	aclLogClient = 1024
)

// refused counts and logs a refusal.
func (c *Ctx) refused(r refusal, where aclContext) {
	s := serviceOf(c)
	s.totals.denied[r.why].Add(1)
	r.user = clipped(r.user, aclLogBytes)
	client := clipped(c.describe(nil, sessionOf(c)), aclLogClient)
	s.acl.log.add(r, where, c.Now(), client, s.Config.Int("acllog-max-len"))
}

// add logs a refusal at now (us), and keeps the log to most entries.
func (l *aclLog) add(r refusal, where aclContext, now int64, client string, most int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := aclEntry{refusal: r, context: where, id: l.next, created: now}
	l.next++
	for i := len(l.entries) - 1; i >= max(0, len(l.entries)-aclLogLook); i-- {
		old := l.entries[i]
		if old.refusal == r && old.context == where && now-old.updated <= aclLogTogether {
			l.next-- // the number was not needed
			e = old
			l.entries = append(l.entries[:i], l.entries[i+1:]...)
			break
		}
	}
	e.count++
	e.updated, e.client = now, client
	l.entries = append(l.entries, e)
	if over := int64(len(l.entries)) - most; over > 0 {
		l.entries = append([]aclEntry(nil), l.entries[over:]...)
	}
}

// newest returns up to n entries, the newest first.
func (l *aclLog) newest(n int64) []aclEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]aclEntry, 0, min(n, int64(len(l.entries))))
	for i := len(l.entries) - 1; i >= 0 && int64(len(out)) < n; i-- {
		out = append(out, l.entries[i])
	}
	return out
}

// reset empties the log.
func (l *aclLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
