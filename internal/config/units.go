package config

import (
	"errors"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// units are the suffixes of sizes: a bare letter counts in thousands, one with
// a b in powers of two.
var units = []struct {
	name string
	mul  uint64
}{{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"b", 1}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}}

// ParseMemory reads a size such as 100mb, without regard to case. An empty string is 0,
// and a size above 2^64-1 bytes becomes 2^64-1. It refuses a unit without a number.
func ParseMemory(s string) (n uint64, ok bool) {
	if s == "" {
		return 0, true
	}
	digits, mul := strings.ToLower(s), uint64(1)
	for _, u := range units {
		if d, found := strings.CutSuffix(digits, u.name); found {
			digits, mul = d, u.mul
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	high, low := bits.Mul64(n, mul)
	if high != 0 {
		low = math.MaxUint64
	}
	return low, true
}

// formatMemory returns the shortest exact size for a file: 1gb, not 1073741824.
func formatMemory(n uint64) string {
	for _, u := range []int{2, 1, 0} {
		if n > 0 && n%units[u].mul == 0 {
			return strconv.FormatUint(n/units[u].mul, 10) + units[u].name
		}
	}
	return strconv.FormatUint(n, 10)
}

// EventClasses are the flags of notify-keyspace-events.
type EventClasses uint32

const (
	EventKeyspace EventClasses = 1 << iota // K: publish to __keyspace@<db>__:<key>
	EventKeyevent                          // E: publish to __keyevent@<db>__:<event>
	EventGeneric                           // g
	EventString                            // $
	EventList                              // l
	EventSet                               // s
	EventHash                              // h
	EventZset                              // z
	EventExpired                           // x
	EventEvicted                           // e
	EventStream                            // t
	EventModule                            // d
	EventNew                               // n: a key came into being
	EventKeyMiss                           // m: a read found nothing

	// EventAll is A. It does not contain n and m.
	EventAll = EventGeneric | EventString | EventList | EventSet | EventHash | EventZset | EventExpired |
		EventEvicted | EventStream | EventModule
)

// eventLetters are all letters, in the order Redis's message has them.
const eventLetters = "Ag$lshzxeKEtmdn"

var eventBits = [len(eventLetters)]EventClasses{EventAll, EventGeneric, EventString, EventList, EventSet,
	EventHash, EventZset, EventExpired,
	EventEvicted, EventKeyspace, EventKeyevent, EventStream, EventKeyMiss, EventModule, EventNew}

// ParseEventClasses reads letters such as "KEA"; ok is false if one is unknown.
func ParseEventClasses(s string) (e EventClasses, ok bool) {
	for i := range len(s) {
		at := strings.IndexByte(eventLetters, s[i])
		if at < 0 {
			return 0, false
		}
		e |= eventBits[at]
	}
	return e, true
}

// String returns the canonical spelling, as CONFIG GET prints it: the classes (A for all),
// n, then K, E and m.
func (e EventClasses) String() string {
	order := "g$lshzxetdnKEm"
	var b strings.Builder
	if e&EventAll == EventAll {
		b.WriteByte('A')
		order = "nKEm"
	}
	for i := range len(order) {
		if e&eventBits[strings.IndexByte(eventLetters, order[i])] != 0 {
			b.WriteByte(order[i])
		}
	}
	return b.String()
}
