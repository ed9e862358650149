package console

import (
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// These are the bounds of tries to log in. Times are in us.
const (
	freeTries         = 5 // failures in a row before a try has to wait
	firstPause  int64 = 2_000_000
	longPause   int64 = 60_000_000
	forgetAfter       = 15 * 60e6 // without a failure
	triesASec         = 50        // of all clients
	maxThrottle       = 10_000    // names of users and addresses that it remembers
)

// throttle slows down guesses of passwords, in memory alone. After five failures in a row from an address, or
// for a user, one try is allowed after 2 s, then after 4, 8 ... 60 s. A success ends the count of the user
// and not that of the address, because an attacker may have a user too.
type throttle struct {
	mu     sync.Mutex // guards what follows
	second int64      // us: when the present second began
	tries  int        // in it
	by     map[string]*failures
}

// failures are those of one address or one user.
type failures struct {
	n    int
	last int64 // us
	next int64 // us: when the next try is allowed
}

// byAddress returns the name under which an address is counted: for IPv6 its network, of which a client
// has as many addresses as it likes.
func byAddress(host string) string {
	if a, err := netip.ParseAddr(host); err == nil && a.Unmap().Is6() {
		if p, err := a.WithZone("").Prefix(64); err == nil {
			host = p.String()
		}
	}
	return "a" + host
}

// byUser returns the name under which a user is counted.
func byUser(name string) string { return "u" + name }

// try counts a try at now, and returns how long the caller must wait instead, in us; 0: it may try.
func (t *throttle) try(now int64, host, user string) (wait int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now-t.second >= 1e6 {
		t.second, t.tries = now, 0
	}
	if t.tries >= triesASec {
		return t.second + 1e6 - now
	}
	for _, name := range []string{byAddress(host), byUser(user)} {
		if f := t.by[name]; f != nil {
			wait = max(wait, f.next-now)
		}
	}
	if wait > 0 {
		return wait
	}
	t.tries++
	// Tries at the same time count as failures until they have succeeded: else many could begin at once.
	t.fail(now, byAddress(host))
	t.fail(now, byUser(user))
	return 0
}

// fail counts a failure. The caller holds the lock.
func (t *throttle) fail(now int64, name string) {
	f := t.by[name]
	if f == nil {
		if len(t.by) >= maxThrottle {
			t.forget(now)
		}
		f = &failures{}
		if t.by == nil {
			t.by = map[string]*failures{}
		}
		t.by[name] = f
	}
	if now-f.last > forgetAfter {
		f.n = 0
	}
	f.n, f.last = f.n+1, now
	if over := f.n - freeTries; over >= 0 {
		f.next = now + min(firstPause<<min(over, 10), longPause)
	}
}

// forget removes what no longer counts, and else the older half. The caller holds the lock.
func (t *throttle) forget(now int64) {
	lasts := make([]int64, 0, len(t.by))
	for _, f := range t.by {
		lasts = append(lasts, f.last)
	}
	slices.Sort(lasts)
	limit := max(lasts[len(lasts)/2], now-forgetAfter)
	maps.DeleteFunc(t.by, func(_ string, f *failures) bool { return f.last <= limit })
}

// succeeded ends what try has begun: the user's count ends, and the try does not count for the address.
func (t *throttle) succeeded(host, user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.by, byUser(user))
	if f := t.by[byAddress(host)]; f != nil {
		f.n--
		if f.n < freeTries {
			f.next = 0
		}
	}
}
