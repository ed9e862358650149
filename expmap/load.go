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
	done  chan struct{} // closed when what follows is there
	value V
	err   error
	sour  bool // err is the loader's
	left  bool // the context of the call that loaded has ended
}

// GetOrLoad returns the value of an entry. If there is none, it calls loader, sets the result
// with ttl, and returns it. Of all goroutines and programs that request a key at that time, one
// calls its loader, and the others wait for its value until their contexts end. If a loader
// fails, its caller and the waiting calls of the same process get the error; in another process
// the next call runs its loader. If the program of the loader dies, the next call tries after
// Options.LoadLease. If a loader panics, the next call tries, and the panic reaches the caller.
// If the map is full, GetOrLoad returns the value and does not store it.
//
// The result of a loader may overwrite an entry that was set or deleted while the loader ran.
func (m *Map[K, V]) GetOrLoad(ctx context.Context, key K, ttl time.Duration, loader func(ctx context.Context, key K) (V, error)) (V, error) {
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
			// Ours has not, perhaps: another call leads.
		case <-ctx.Done():
			var none V
			return none, m.failed("wait for a loader", ctx.Err())
		}
	}
}

// lead loads for this process.
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
	l.left = l.err != nil && (ctx.Err() != nil || ended(l.err) && !l.sour)
	finished = true
}

const (
	// The pauses in which a value is looked for that another process loads.
	firstLook, lastLook = 2 * time.Millisecond, 50 * time.Millisecond
)

// loadOnce loads unless another process does, for whose value it waits.
func (m *Map[K, V]) loadOnce(ctx context.Context, l *load[V], key K, ttl time.Duration, loader func(ctx context.Context, key K) (V, error)) (value V,
	err error) {
	f, err := m.o.Keys.Encode(key)
	if err != nil {
		return value, err
	}
	marker, token := m.marker(string(f)), kit.ID()
	for attempt := 0; ; attempt++ {
		mine, err := m.c.SetNX(ctx, marker, token, m.o.LoadLease)
		if err != nil {
			m.release(ctx, marker, token, err) // it may be ours without our knowing
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
	// Between our look and the marker another program may have finished.
	v, ok, err := m.get(ctx, key)
	if ok || err != nil {
		m.release(ctx, marker, token, nil)
		return v, err
	}
	if value, err = m.hold(ctx, marker, token, key, loader); err != nil {
		l.sour = true
		return value, err
	}
	return value, m.finish(ctx, marker, token, key, value, ttl)
}

// hold calls the loader and keeps the marker while it runs. The marker goes if the
// loader fails or panics.
func (m *Map[K, V]) hold(ctx context.Context, marker, token string, key K, loader func(ctx context.Context, key K) (V, error)) (value V, err error) {
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
				// If that fails the marker may end, and another program load as well.
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

// finish sets the value and takes the marker away in one step, if it is still ours.
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
	if _, err = number(m.runEvicting(ctx, m.layout().finish, marker, f, v, ms, false, token)); err != nil {
		m.release(ctx, marker, token, nil)
	}
	return err
}

// marker is the key that says that a call loads a field. In a family it begins with
// a colon, which no map of it does.
func (m *Map[K, V]) marker(f string) string {
	if m.sub == "" {
		return kit.Key(m.key, "load:"+f)
	}
	return kit.Key(m.home, ":load:"+m.sub+":"+f)
}

var (
	// renewScript lets the marker KEYS[1] of the token ARGV[1] live on; releaseScript
	// takes it away.
	renewScript   = conn.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)
	releaseScript = conn.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
)

// release gives a marker back, also if the context has ended. If it fails the marker
// ends by itself. failed is the error of the call that may have set it, nil for none.
func (m *Map[K, V]) release(ctx context.Context, marker, token string, failed error) {
	_ = kit.Release(ctx, failed, conn.Temporary, func(ctx context.Context) error {
		_, err := m.c.Script(ctx, releaseScript, []string{marker}, token)
		return err
	})
}
