package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/fresh"
	"github.com/ebbdb/ebb/internal/kit"
)

// Loader makes the value of a key, or returns ErrAbsent if there is none.
type Loader[K comparable, V any] func(ctx context.Context, key K) (V, error)

// request is a call of Get.
type request[K comparable, V any] struct {
	k       K
	key     string // k's name at the backend
	load    Loader[K, V]
	backend fresh.Backend
}

// Get returns the value of a key. Of all goroutines and programs that call it, at most one calls its loader
// at a time:
//
//   - a fresh value, or absence that is remembered, is returned at once;
//   - a stale value is returned at once, too; if no program loads the key, this one does so in the
//     background, with a context that has the values of ctx and ends with Close; if its loader returns ErrAbsent, the value is removed;
//   - if there is no value, the call loads it, or waits for the program that does until ctx ends.
//
// A value that the codec cannot read, of an older type or of another program, counts as missing, and the
// loaded value replaces it.
//
// A call never returns a value older than a Set or Delete that had returned before the call. With
// Options.Local this holds for the writes of this Cache. Writes of other programs count once the backend
// reports them: at once, or after up to 45 s if the connection loses messages. Without reports
// they count after a tenth of Fresh.
//
// If a loader fails, its call and the calls of the same process that wait for it get the error; a waiting
// call in another process runs its own loader. If a loader panics, another call loads, and the panic reaches
// the caller of Get; in the background it ends the program. A value that a loader returns after the end of
// ctx is stored too, and the lease is renewed until then. Errors: ErrAbsent; the loader's error; and the
// backend's, unless Options.Alone is set.
func (x *Cache[K, V]) Get(ctx context.Context, k K, load Loader[K, V]) (v V, err error) {
	if err := kit.Callable(load != nil, "load"); err != nil {
		return v, x.wrap("get", err)
	}
	key, err := x.key(k)
	if err != nil {
		return v, x.wrap("get", err)
	}
	if v, ok, err := x.kept(key); ok {
		return v, err
	}
	r := request[K, V]{k, key, load, x.backend()}
	if x.away.Load() {
		return x.loadAlone(ctx, r)
	}
	for discarded := 0; ; {
		e, err := x.read(ctx, r)
		if err != nil {
			return x.withoutBackend(ctx, r, err)
		}
		if e.State != fresh.Absent {
			v, err := x.decode(e.Body)
			switch {
			case readable(err):
				return x.hit(ctx, r, &e, v, err)
			case e.Token != "": // this call loads the next value
			case discarded == maxDiscards:
				return v, x.wrap("get", err)
			default:
				discarded++
				if err := x.discard(ctx, r, &e, err); err != nil {
					return x.withoutBackend(ctx, r, err)
				}
				continue
			}
		}
		f, leads := x.join(key, e.Token != "")
		if leads {
			x.runFlight(ctx, f, key, func() (V, bool, error) { return x.loadOrWait(ctx, r, e, f) })
			if f.err == errUnreadable {
				continue
			}
			return f.value, x.wrap("get", f.err)
		}
		x.waited.Add(1)
		select {
		case <-f.done:
			if !f.retry {
				return f.value, x.wrap("get", f.err)
			}
		case <-ctx.Done():
			return v, x.wrap("wait for a loader", ctx.Err())
		}
	}
}

// kept returns the value of a key from this process; ok is false if there is none, or none that can be read.
func (x *Cache[K, V]) kept(key string) (v V, ok bool, err error) {
	if x.near == nil {
		return v, false, nil
	}
	body, ok := x.near.Get(key, "")
	if !ok {
		return v, false, nil
	}
	if v, err = x.decode(body); !readable(err) {
		x.changed(key)
		return v, false, nil
	}
	x.fresh.Add(1)
	x.local.Add(1)
	return v, true, err
}

// maxDiscards is the number of values that a call discards because it cannot read them, while another program
// keeps storing them.
const maxDiscards = 3

// errUnreadable is the error of a call that has waited for a value that it cannot read.
var errUnreadable = errors.New("the value cannot be read")

// readable reports, by the error of decode, whether the cache can use an entry: it has a value, or records
// the absence of one. Another program or an older codec may have stored an entry that it cannot read; it
// loads such a value again.
func readable(err error) bool { return err == nil || err == ErrAbsent }

// discard removes an entry that cannot be read for the reason why, unless it has changed.
func (x *Cache[K, V]) discard(ctx context.Context, r request[K, V], e *fresh.Entry, why error) error {
	if x.o.Logger != nil {
		x.o.Logger.Warn("cache: a value that cannot be read is loaded again", "cache", x.name, "key", r.key, "error", why)
	}
	defer x.changed(r.key)
	return r.backend.Discard(ctx, r.key, e.Body)
}

// localShare is the part of Fresh for which a value is kept in the process if there are no reports of
// changes: a tenth.
const localShare = 10

// read reads the entry of a request, and keeps it in the process while it is fresh.
func (x *Cache[K, V]) read(ctx context.Context, r request[K, V]) (e fresh.Entry, err error) {
	if x.near == nil {
		return r.backend.Look(ctx, r.key, x.o.Lease, 1)
	}
	reading := x.near.Begin(r.key)
	defer func() {
		x.near.End(reading, err == nil && e.State == fresh.Fresh, "", e.Body, e.Left, x.o.Fresh/localShare)
	}()
	return r.backend.Look(ctx, r.key, x.o.Lease, 1)
}

// hit returns the value v of an entry, or ErrAbsent, and begins to load the next one if the backend elected this call.
func (x *Cache[K, V]) hit(ctx context.Context, r request[K, V], e *fresh.Entry, v V, err error) (V, error) {
	if e.State == fresh.Fresh {
		x.fresh.Add(1)
		return v, err
	}
	x.stale.Add(1)
	if e.Token != "" {
		x.refresh(ctx, r, *e)
	}
	return v, err
}

// refresh loads, in the background, the value that replaces an entry.
func (x *Cache[K, V]) refresh(ctx context.Context, r request[K, V], e fresh.Entry) {
	started := x.inBackground(ctx, func(inner context.Context) {
		if _, _, err := x.load(inner, r, e, nil); err != nil && err != ErrAbsent && x.o.Logger != nil && x.ctx.Err() == nil {
			x.o.Logger.Warn("cache: a load in the background failed", "cache", x.name, "error", err)
		}
	})
	if !started {
		x.giveBack(ctx, r, e.Token)
	}
}

// join returns this process's flight of a key, and whether the caller leads it. An elected caller always
// leads.
func (x *Cache[K, V]) join(key string, elected bool) (f *flight[V], leads bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f := x.flights[key]; f != nil && !elected {
		f.joined = true
		return f, false
	}
	f = &flight[V]{done: make(chan struct{})}
	x.flights[key] = f
	return f, true
}

// closeFlight ends the time in which calls can join a flight, and reports whether one has joined. The value
// that a flight returns must be the key's value at an instant after each of these calls began: a value may be
// invalidated while it is on its way, and a call that begins after that must not get it. So the leader closes
// the flight before it sends the request that confirms its value. f may be nil.
func (x *Cache[K, V]) closeFlight(key string, f *flight[V]) (joined bool) {
	if f == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.flights[key] == f {
		delete(x.flights, key)
	}
	return f.joined
}

// runFlight runs do for the calls of this process that wait for the flight. current is false if the value may
// be older than an invalidation: the leader may return it, because its call began before the invalidation,
// but the other calls read again.
func (x *Cache[K, V]) runFlight(ctx context.Context, f *flight[V], key string, do func() (v V, current bool, err error)) {
	f.err, f.retry = errors.New("the loader panicked"), true
	defer func() {
		x.closeFlight(key, f)
		close(f.done)
	}()
	v, current, err := do()
	f.value, f.err, f.retry = v, err, !current || err != nil && ctx.Err() != nil
}

// loadOrWait loads if this call was elected, and otherwise waits for a value or for its election. e is the
// entry that it has read.
func (x *Cache[K, V]) loadOrWait(ctx context.Context, r request[K, V], e fresh.Entry, f *flight[V]) (v V, current bool, err error) {
	for n := 0; e.Token == "" && e.State == fresh.Absent; n++ {
		if n == 0 {
			x.waited.Add(1)
		}
		if e, err = r.backend.Await(ctx, r.key, x.o.Lease, n); err != nil {
			if x.lost(ctx, r, err) {
				x.alone.Add(1)
				v, err = x.call(ctx, r)
				return v, true, err
			}
			return v, true, fmt.Errorf("wait for the loader of another program: %w", err)
		}
	}
	if e.State == fresh.Absent {
		return x.load(ctx, r, e, f)
	}
	if v, err = x.decode(e.Body); !readable(err) {
		if e.Token != "" {
			return x.load(ctx, r, e, f)
		}
		return v, false, errUnreadable
	}
	if e.Token != "" {
		x.refresh(ctx, r, e)
	}
	current = true
	if x.closeFlight(r.key, f) {
		again, failed := r.backend.Look(ctx, r.key, 0, 1)
		if current = failed == nil && again.State != fresh.Absent; current {
			if v, err = x.decode(again.Body); !readable(err) {
				return v, false, errUnreadable
			}
		}
	}
	return v, current, err
}

// load calls the loader under the lease of e, and stores its value, in place of the value of e if there is
// one. current reports whether the token was still the key's when the value was stored.
func (x *Cache[K, V]) load(ctx context.Context, r request[K, V], e fresh.Entry, f *flight[V]) (v V, current bool, err error) {
	token, settled := e.Token, false
	defer func() {
		if !settled {
			x.soon(ctx, func(ctx context.Context) { x.giveBack(ctx, r, token) })
		}
	}()
	if v, err = x.callUnderLease(ctx, r, token); err != nil && err != ErrAbsent {
		return v, true, err
	}
	storing, end := kit.Outlive(ctx, kit.GraceAfterEnd) // the next calls need the value, even if this one's caller has left
	defer end()
	body, span, ttl := "", x.o.AbsentTTL, x.o.AbsentTTL+time.Millisecond
	switch {
	case err == nil:
		data, bad := x.o.Codec.Encode(v)
		if bad != nil {
			return v, true, bad
		}
		body = string(flagValue) + string(data)
		span, ttl = x.spans()
	case x.o.AbsentTTL > 0:
		body = string(flagAbsent)
	default:
		if x.closeFlight(r.key, f) {
			current, _ = r.backend.Renew(storing, r.key, token, x.o.Lease)
		}
		if e.State != fresh.Absent { // the stale value no longer exists at the source
			defer x.changed(r.key)
			if failed := r.backend.Discard(storing, r.key, e.Body); failed != nil && !x.o.Alone {
				return v, current, failed
			}
		}
		return v, current, err
	}
	x.closeFlight(r.key, f)
	settled = true
	var ok bool
	var failed error
	inTime := x.soon(storing, func(ctx context.Context) {
		if ok, failed = x.keep(ctx, r, token, body, span, ttl); failed != nil {
			x.lost(ctx, r, failed)
			x.giveBack(ctx, r, token)
		}
	})
	switch {
	case !inTime:
		return v, false, err
	case failed != nil && !x.o.Alone && err == nil:
		return v, true, failed
	}
	return v, failed == nil && ok, err
}

// keep stores a value that was loaded under a lease. ok is false if the key has changed meanwhile.
func (x *Cache[K, V]) keep(ctx context.Context, r request[K, V], token, body string, span, ttl time.Duration) (ok bool, err error) {
	defer x.changed(r.key)
	if ok, err = r.backend.Set(ctx, r.key, body, token, span, ttl); err == nil && !ok {
		x.superseded.Add(1)
	}
	return ok, err
}

// callUnderLease calls the loader, and renews the lease until it returns, even if ctx ends before.
func (x *Cache[K, V]) callUnderLease(ctx context.Context, r request[K, V], token string) (v V, err error) {
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var renewer sync.WaitGroup
	renewer.Go(func() {
		for kit.Sleep(renewing, max(x.o.Lease/3, time.Millisecond)) == nil {
			if mine, err := r.backend.Renew(renewing, r.key, token, x.o.Lease); err == nil && !mine {
				return // the key has changed: the loaded value will not be stored
			}
		}
	})
	defer renewer.Wait()
	defer stop()
	return x.call(ctx, r)
}

// call calls the loader, and counts it.
func (x *Cache[K, V]) call(ctx context.Context, r request[K, V]) (V, error) {
	x.loads.Add(1)
	v, err := r.load(ctx, r.k)
	if errors.Is(err, ErrAbsent) {
		err = ErrAbsent
	}
	if err != nil && err != ErrAbsent {
		x.failed.Add(1)
	}
	return v, err
}

// giveBack releases a lease, so that another program can get the lease at once.
func (x *Cache[K, V]) giveBack(ctx context.Context, r request[K, V], token string) {
	if token != "" {
		_ = kit.Release(ctx, nil, conn.Temporary, func(ctx context.Context) error { return r.backend.Release(ctx, r.key, token) })
	}
}

// withoutBackend returns the backend's error, or with Options.Alone loads without the backend.
func (x *Cache[K, V]) withoutBackend(ctx context.Context, r request[K, V], why error) (v V, err error) {
	if !x.lost(ctx, r, why) {
		return v, x.wrap("get", why)
	}
	return x.loadAlone(ctx, r)
}

// loadAlone loads without the backend, once for each key of this process.
func (x *Cache[K, V]) loadAlone(ctx context.Context, r request[K, V]) (v V, err error) {
	for {
		f, leads := x.join(r.key, false)
		if leads {
			x.alone.Add(1)
			x.runFlight(ctx, f, r.key, func() (V, bool, error) {
				v, err := x.call(ctx, r)
				return v, true, err
			})
			return f.value, x.wrap("load without the backend", f.err)
		}
		x.waited.Add(1)
		select {
		case <-f.done:
			if !f.retry {
				return f.value, x.wrap("load without the backend", f.err)
			}
		case <-ctx.Done():
			return v, x.wrap("wait for a loader", ctx.Err())
		}
	}
}
