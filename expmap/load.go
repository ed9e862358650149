package expmap

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// load is a GetOrLoad that runs in this process.
type load[V any] struct {
	done   chan struct{} // closed when the other fields are set
	value  V
	err    error
	failed bool // err is the error of the loader
	left   bool // the context of the loading call has ended
}

// GetOrLoad returns the value of an entry. If there is none, it calls loader, sets the result with ttl, and
// returns it. Of all goroutines and programs that request a key at that time, one calls its loader, and the
// others wait for its value until their contexts end. If a loader fails, its caller and the waiting calls of
// the same process get the error; a waiting call in another process runs its own loader. If the program of
// the loader dies, the next call tries after Options.LoadLease. If a loader panics, the next call tries, and
// the panic reaches the caller. If the map is full, GetOrLoad returns the value without storing it.
//
// The result of a loader may overwrite an entry that was set or deleted while the loader ran.
func (m *Map[K, V]) GetOrLoad(ctx context.Context, key K, ttl time.Duration,
	loader func(ctx context.Context, key K) (V, error)) (V, error) {
	if err := kit.Callable(loader != nil, "loader"); err != nil {
		var none V
		return none, m.failed("load", err)
	}
	for {
		if v, ok, err := m.get(ctx, key); ok || err != nil {
			return v, m.failed("get", err)
		}
		m.mu.Lock()
		l, waits := m.loads[key]
		if !waits {
			l = &load[V]{done: make(chan struct{})}
			if m.loads == nil {
				m.loads = map[K]*load[V]{}
			}
			m.loads[key] = l
		}
		m.mu.Unlock()
		if !waits {
			m.lead(ctx, l, key, ttl, loader)
			return l.value, m.failed("load", l.err)
		}
		select {
		case <-l.done:
			if !l.left {
				return l.value, m.failed("load", l.err)
			}
			// This call's context may still live: another call leads.
		case <-ctx.Done():
			var none V
			return none, m.failed("wait for a loader", ctx.Err())
		}
	}
}

// lead loads the value for all calls of this process.
func (m *Map[K, V]) lead(ctx context.Context, l *load[V], key K, ttl time.Duration, loader func(ctx context.Context, key K) (V, error)) {
	finished := false
	defer func() {
		if !finished {
			l.err = fmt.Errorf("the loader panicked")
		}
		m.mu.Lock()
		delete(m.loads, key)
		m.mu.Unlock()
		close(l.done)
	}()
	l.value, l.err = m.loadOnce(ctx, l, key, ttl, loader)
	// A call may end some ms before the deadline of its context.
	l.left = l.err != nil && (ctx.Err() != nil || ended(l.err) && !l.failed)
	finished = true
}

const (
	// The pauses between two reads of a value that another process loads.
	firstLook, lastLook = 2 * time.Millisecond, 50 * time.Millisecond
)

// loadOnce loads the value, or waits for the value that another process loads.
func (m *Map[K, V]) loadOnce(ctx context.Context, l *load[V], key K, ttl time.Duration,
	loader func(ctx context.Context, key K) (V, error)) (value V,
	err error) {
	f, err := m.o.Keys.Encode(key)
	if err != nil {
		return value, err
	}
	marker, token := m.marker(string(f)), kit.ID()
	for attempt := 0; ; attempt++ {
		mine, err := m.c.SetNX(ctx, marker, token, m.o.LoadLease)
		if err != nil {
			m.release(ctx, marker, token, err) // the backend may have set the marker
			return value, err
		}
		if mine {
			break
		}
		if err := kit.Sleep(ctx, kit.Backoff(firstLook, lastLook, attempt)); err != nil {
			return value, fmt.Errorf("wait for the loader of another program: %w", err)
		}
		if v, ok, err := m.get(ctx, key); ok || err != nil {
			return v, err
		}
	}
	// Another program may have finished between the first read and the marker.
	v, ok, err := m.get(ctx, key)
	if ok || err != nil {
		m.release(ctx, marker, token, nil)
		return v, err
	}
	if value, err = m.hold(ctx, marker, token, key, loader); err != nil {
		l.failed = true
		return value, err
	}
	return value, m.finish(ctx, marker, token, key, value, ttl)
}

// hold calls the loader, and renews the marker while it runs. If the loader fails or panics, hold removes the marker.
func (m *Map[K, V]) hold(ctx context.Context, marker, token string, key K,
	loader func(ctx context.Context, key K) (V, error)) (value V, err error) {
	stop := make(chan struct{})
	var renewer sync.WaitGroup
	renewer.Go(func() {
		tick := time.NewTicker(max(m.o.LoadLease/3, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				// If that fails, the marker may expire, and another program may load too.
				_, _ = m.c.Script(ctx, renewScript, []string{marker}, token, kit.Millis(m.o.LoadLease))
			}
		}
	})
	kept := false
	defer func() {
		close(stop)
		renewer.Wait()
		if !kept {
			m.release(ctx, marker, token, nil)
		}
	}()
	value, err = loader(ctx, key)
	kept = err == nil
	return value, err
}

// finish sets the value and removes the marker in one step, if this call still has the marker.
func (m *Map[K, V]) finish(ctx context.Context, marker, token string, key K, value V, ttl time.Duration) error {
	f, v, ms, err := m.encode(key, value, ttl)
	if err == nil {
		err = m.begin(ctx, true)
	}
	if err != nil {
		m.release(ctx, marker, token, nil)
		return err
	}
	defer m.changed()
	if _, err = kit.Number(m.runEvicting(ctx, m.layout().finish, marker, f, v, ms, false, token)); err != nil {
		m.release(ctx, marker, token, nil)
	}
	return err
}

// marker returns the key of the marker that a field is being loaded. In a family, a colon precedes the name
// of the map, because no name of a map begins with a colon.
func (m *Map[K, V]) marker(f string) string {
	if m.sub == "" {
		return kit.Key(m.key, "load:"+f)
	}
	return kit.Key(m.home, ":load:"+m.sub+":"+f)
}

var (
	// renewScript extends the marker KEYS[1] of the token ARGV[1]; releaseScript removes it.
	renewScript   = conn.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
	releaseScript = conn.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

// release removes a marker, even if the context has ended. If that fails, the marker expires. failed is the error of the call that may have
// set it, nil for none.
func (m *Map[K, V]) release(ctx context.Context, marker, token string, failed error) {
	_ = kit.Release(ctx, failed, conn.Temporary, func(ctx context.Context) error {
		_, err := m.c.Script(ctx, releaseScript, []string{marker}, token)
		return err
	})
}
