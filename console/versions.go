package console

import (
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/engine"
)

// versions number the states of keys. A page compares the number of the state that it shows with the number
// in its stream, and reads the key again if they differ. The engine reports each change of a key to a watch,
// so that a number costs the same whatever the size of the value: a checksum would read the whole value, each
// second for each stream.
//
// A new number means that a key may have changed, and reveals nothing about its value. Numbers are valid for
// this run of the server.
type versions struct {
	db *engine.DB

	mu   sync.Mutex // guards the fields below
	last int64
	all  map[keyName]*version
	idle []keyName // those that no stream follows, the oldest first
}

// keyName is a key of a database.
type keyName struct {
	db  int
	key string
}

// version is the number of one key.
type version struct {
	watch *engine.Watch // nil: not watched yet
	n     int64
	refs  int // the number of streams that follow the key
}

// A page reads its key before it opens its stream. idleVersions is the number of keys without a stream that
// keep a number, and idleNames the number of bytes of their names.
const (
	idleVersions = 32
	idleNames    = 1 << 20
)

// of returns the number of a key. The caller must read the key afterwards: any later change gives the key
// another number.
func (x *versions) of(db int, key string) int64 {
	name := keyName{db, key}
	x.mu.Lock()
	v := x.all[name]
	if v == nil {
		v = x.add(name)
		x.idle = append(x.idle, name)
	}
	switch {
	case v.watch == nil:
		if w := x.db.NewWatch(); w.TryAdd(db, []byte(key)) {
			v.watch = w
		}
		x.last++ // the next call returns another number if a transaction has held the key
		v.n = x.last
	case v.watch.Changed():
		x.last++
		v.n = x.last
	}
	n := v.n
	over := x.forget(idleVersions)
	x.mu.Unlock()
	unwatch(over)
	return n
}

// follow keeps the number of a key for a stream. The stream calls leave at its end.
func (x *versions) follow(db int, key string) {
	name := keyName{db, key}
	x.mu.Lock()
	defer x.mu.Unlock()
	v := x.all[name]
	if v == nil {
		v = x.add(name)
	}
	if v.refs++; v.refs == 1 {
		x.idle = slices.DeleteFunc(x.idle, func(k keyName) bool { return k == name })
	}
}

func (x *versions) leave(db int, key string) {
	name := keyName{db, key}
	x.mu.Lock()
	v := x.all[name]
	if v.refs--; v.refs == 0 {
		x.idle = append(x.idle, name)
	}
	over := x.forget(idleVersions)
	x.mu.Unlock()
	unwatch(over)
}

// close forgets all keys. No stream is left.
func (x *versions) close() {
	x.mu.Lock()
	over := x.forget(0)
	x.mu.Unlock()
	unwatch(over)
}

// add creates the number of a key. The caller holds x.mu.
func (x *versions) add(name keyName) *version {
	if x.all == nil {
		x.all = map[keyName]*version{}
	}
	v := &version{}
	x.all[name] = v
	return v
}

// forget removes the oldest idle keys until at most limit are left, with at most idleNames bytes of names,
// and returns their watches. The caller holds x.mu, and must end the watches without it, because that waits
// for the keys' shards.
func (x *versions) forget(limit int) (over []*engine.Watch) {
	room := idleNames
	for _, name := range x.idle {
		room -= len(name.key)
	}
	for len(x.idle) > limit || len(x.idle) > 0 && room < 0 {
		oldest := x.idle[0]
		v := x.all[oldest]
		delete(x.all, oldest)
		x.idle, room = slices.Delete(x.idle, 0, 1), room+len(oldest.key)
		if v.watch != nil {
			over = append(over, v.watch)
		}
	}
	return over
}

// unwatch ends watches.
func unwatch(all []*engine.Watch) {
	for _, w := range all {
		w.Clear(nil)
	}
}
