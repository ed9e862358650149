//go:build race || ebbpoison

package arena

// poison fills freed slots, so that a stale reference reads invalid data. It is on under the race
// detector and with the tag ebbpoison.
const poison = true
