package console

import (
	"crypto/sha256"
	"maps"
	"net/netip"
	"slices"
	"sync"
)

// The bounds of login attempts. Times are in us.
const (
	freeTries         = 5 // failures in a row before an attempt has to wait
	firstPause  int64 = 2_000_000
	longPause   int64 = 60_000_000
	forgetAfter       = 15 * 60e6 // without a failure
	triesASec         = 50        // in all
	maxThrottle       = 10_000    // names of each kind that it remembers
)

// throttle slows down the guessing of passwords. Its state is in memory only. After five failures in a row of
// an address, of a user, or of a user at an address, one attempt is allowed after 2 s, then after 4, 8 ... 60
// s. In all, 50 attempts per second are allowed. If the user has logged in before at an address, only the
// failures of that user at that address count there: a program that guesses elsewhere does not exclude that
// user. One address adds at most five failures to a user's count.
type throttle struct {
	mu     sync.Mutex // guards the fields below
	by     map[string]*failures
	known  map[string]int64 // the last success of a user at an address
	second int64            // us: the beginning of the current second
	tries  int              // attempts in that second
}

// failures counts the failures of an address, of a user, or of a user at an address.
type failures struct {
	n    int
	last int64 // us
	next int64 // us: the instant from which the next attempt is allowed
}

// byAddress returns the name under which the failures of an address are counted. For IPv6 it is that of the
// network, because a client can use any number of its addresses.
func byAddress(host string) string {
	if a, err := netip.ParseAddr(host); err == nil && a.Unmap().Is6() {
		if p, err := a.WithZone("").Prefix(64); err == nil {
			host = p.String()
		}
	}
	return "a" + host
}

// byUser returns the name under which the failures of a user are counted.
func byUser(name string) string { return "u" + short(name) }

// byBoth returns the name under which the failures of a user at an address are counted.
func byBoth(host, user string) string { return byAddress(host) + " " + short(user) }

// short returns a name, or the hash of a long one: a client without a login can choose the name. A name that
// it returns unchanged never has the length of a hash.
func short(name string) string {
	if len(name) < sha256.Size {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return string(sum[:])
}

// try counts an attempt at now. It returns 0 if the attempt is allowed, otherwise the time that the caller
// must wait, in us.
func (t *throttle) try(now int64, host, user string) (wait int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	both := byBoth(host, user)
	wait = t.wait(now, both)
	if _, known := t.known[both]; known {
		if wait <= 0 {
			t.fail(now, both)
		}
		return max(wait, 0)
	}
	wait = max(wait, t.wait(now, byUser(user)), t.wait(now, byAddress(host)))
	if now-t.second >= 1e6 {
		t.second, t.tries = now, 0
	}
	if t.tries >= triesASec {
		wait = max(wait, t.second+1e6-now)
	}
	if wait > 0 {
		return wait
	}
	t.tries++
	// Concurrent attempts count as failures until they have succeeded: otherwise many could begin at once.
	t.fail(now, byAddress(host))
	if t.fail(now, both) <= freeTries {
		t.fail(now, byUser(user))
	}
	return 0
}

// wait returns the time that a name has to wait, in us. The caller holds the lock.
func (t *throttle) wait(now int64, name string) int64 {
	if f := t.by[name]; f != nil {
		return f.next - now
	}
	return 0
}

// of returns the failures of a name. The caller holds the lock.
func (t *throttle) of(now int64, name string) *failures {
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
	return f
}

// fail counts a failure and returns the number of failures; the first freeTries cause no pause. The caller
// holds the lock.
func (t *throttle) fail(now int64, name string) int {
	f := t.of(now, name)
	if now-f.last > forgetAfter {
		f.n = 0
	}
	f.n, f.last = f.n+1, now
	if over := f.n - freeTries; over >= 0 {
		f.next = now + min(firstPause<<min(over, 10), longPause)
	}
	return f.n
}

// forget removes expired failures, or, if there are none, the older half. The caller holds the lock.
func (t *throttle) forget(now int64) {
	lasts := make([]int64, 0, len(t.by))
	for _, f := range t.by {
		lasts = append(lasts, f.last)
	}
	limit := max(median(lasts), now-forgetAfter)
	maps.DeleteFunc(t.by, func(_ string, f *failures) bool { return f.last <= limit })
}

// median returns the middle value of times, which it sorts.
func median(times []int64) int64 {
	slices.Sort(times)
	return times[len(times)/2]
}

// succeeded ends the attempt that try has begun. The count of the user at the address ends, and the attempt
// counts neither for the user nor for the address. Their other failures stay, so that a client with its own
// password cannot clear them.
func (t *throttle) succeeded(now int64, host, user string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	both := byBoth(host, user)
	f := t.by[both]
	delete(t.by, both)
	if t.known == nil {
		t.known = map[string]int64{}
	}
	if _, known := t.known[both]; !known {
		t.takeBack(byAddress(host))
		if f != nil && f.n <= freeTries {
			t.takeBack(byUser(user))
		}
		if len(t.known) >= maxThrottle {
			limit := median(slices.Collect(maps.Values(t.known)))
			maps.DeleteFunc(t.known, func(_ string, at int64) bool { return at <= limit })
		}
	}
	t.known[both] = now
}

// takeBack removes a failure that try counted in advance, and its pause. The caller holds the lock.
func (t *throttle) takeBack(name string) {
	if f := t.by[name]; f != nil {
		f.n, f.next = max(f.n-1, 0), 0
	}
}
