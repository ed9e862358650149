package acl

import "sync"

// Context is the place where a request was refused.
type Context string

const (
	TopLevel Context = "toplevel"
	InMulti  Context = "multi"
	InScript Context = "lua"
)

// Refusal is a refused request and its user.
type Refusal struct {
	Why    Denial
	Object string // the command, key, channel or name of AUTH, shortened for the log
	User   string
}

// Log holds the refusals that ACL LOG shows. Refusals of the same object within a minute
// share an entry. Its methods are safe for concurrent use. The zero value is empty.
type Log struct {
	mu      sync.Mutex // guards what follows
	next    int64
	entries []LogEntry // the newest last
}

// LogEntry is one entry of a Log.
type LogEntry struct {
	Refusal
	Context          Context
	ID, Count        int64
	Created, Updated int64  // us
	Client           string // the description of the client that was refused last
}

const (
	// togetherMicros is the longest time, in us, between two refusals of the same object
	// that the log counts in one entry.
	togetherMicros = 60e6
	// lookBack is the number of entries in which Add looks for the same refusal.
	lookBack = 10
)

// Add logs a refusal at now (us), and keeps the log to limit entries.
func (l *Log) Add(r Refusal, where Context, now int64, client string, limit int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := LogEntry{Refusal: r, Context: where, ID: l.next, Created: now}
	l.next++
	for i := len(l.entries) - 1; i >= max(0, len(l.entries)-lookBack); i-- {
		old := l.entries[i]
		if old.Refusal == r && old.Context == where && now-old.Updated <= togetherMicros {
			l.next-- // the number was not needed
			e = old
			l.entries = append(l.entries[:i], l.entries[i+1:]...)
			break
		}
	}
	e.Count++
	e.Updated, e.Client = now, client
	l.entries = append(l.entries, e)
	if over := int64(len(l.entries)) - limit; over > 0 {
		l.entries = append([]LogEntry(nil), l.entries[over:]...)
	}
}

// Newest returns up to n entries, the newest first.
func (l *Log) Newest(n int64) []LogEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]LogEntry, 0, min(n, int64(len(l.entries))))
	for i := len(l.entries) - 1; i >= 0 && int64(len(out)) < n; i-- {
		out = append(out, l.entries[i])
	}
	return out
}

// Reset empties the log.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
