package admin

import (
	"fmt"
	"strings"
	"sync"
)

// Slowlog keeps the latest calls that took long. Its methods are safe for concurrent use.
// The zero value is empty.
type Slowlog struct {
	mu      sync.Mutex // guards what follows
	next    int64
	entries []SlowCall // oldest first
}

// SlowCall is one call of a Slowlog.
type SlowCall struct {
	ID     int64
	At     int64 // its end, in seconds since 1970
	Micros int64
	Args   []string // shortened for the log
	Addr   string   // of the client
	Name   string   // of the client
}

// ClipBytes is the number of bytes that logs store of an argument or a client's name.
const ClipBytes = 128

// slowArgs is the number of arguments of a call that the log stores.
const slowArgs = 32

// Clip returns a copy of the first limit bytes of a text, with the number of the others.
func Clip[T string | []byte](text T, limit int) string {
	if len(text) <= limit {
		return strings.Clone(string(text))
	}
	return fmt.Sprintf("%s... (%d more bytes)", text[:limit], len(text)-limit)
}

// Add stores a call that ended at end (us since 1970) and took us microseconds, and
// removes the oldest calls beyond limit. It copies the arguments.
func (l *Slowlog) Add(addr, name string, args [][]byte, end, us int64, limit int) {
	e := SlowCall{At: end / 1e6, Micros: us, Args: ClipArgs(args), Addr: addr, Name: Clip(name, ClipBytes)}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.ID = l.next
	l.next++
	l.entries = append(l.entries, e)
	if over := len(l.entries) - limit; over > 0 {
		clear(l.entries[:over])
		l.entries = l.entries[over:]
	}
}

// ClipArgs copies the part of a call's arguments that logs keep.
func ClipArgs(args [][]byte) []string {
	out := make([]string, min(len(args), slowArgs))
	for i := range out {
		if len(args) > slowArgs && i == slowArgs-1 {
			out[i] = fmt.Sprintf("... (%d more arguments)", len(args)-slowArgs+1)
		} else {
			out[i] = Clip(args[i], ClipBytes)
		}
	}
	return out
}

// Latest returns up to n calls, the latest first; all of them if n is -1.
func (l *Slowlog) Latest(n int64) []SlowCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < 0 || n > int64(len(l.entries)) {
		n = int64(len(l.entries))
	}
	out := make([]SlowCall, 0, n)
	for i := range n {
		out = append(out, l.entries[int64(len(l.entries))-1-i])
	}
	return out
}

// Len returns how many calls the log has.
func (l *Slowlog) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// Reset empties the log.
func (l *Slowlog) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
