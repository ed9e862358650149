package expiries

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

const (
	// OnTheWay is the number of expired items that a script removes in addition to its own
	// work, in about 100 us.
	OnTheWay = 100
	// AtOnce is the number of expired items that a script removes when that is its only
	// work, in about 500 us.
	AtOnce = 500
	// Longest is the longest time to live: a hundred years. The greatest deadline of a hash
	// field is in the year 4199.
	Longest = 100 * 365 * 24 * time.Hour
	// defaultEvents is the default of MaxEvents. These entries take about 20 MB.
	defaultEvents = 100_000
)

// Bounds holds the options that objects with expiries share.
type Bounds struct {
	MaxLen    int64 // 0: no limit
	Jitter    int   // percent
	MaxEvents int64 // 0: defaultEvents
}

// Check fills in the defaults, and returns a text about the first invalid option, "" if
// all are valid.
func (b *Bounds) Check() (wrong string) {
	switch {
	case b.MaxLen < 0:
		return fmt.Sprintf("MaxLen is %d: 0 (no limit) or more", b.MaxLen)
	case b.Jitter < 0 || b.Jitter > 100:
		return fmt.Sprintf("Jitter is %d percent: from 0 to 100", b.Jitter)
	case b.MaxEvents < 0:
		return fmt.Sprintf("MaxEvents is %d: 0 (100,000) or more", b.MaxEvents)
	case b.MaxEvents == 0:
		b.MaxEvents = defaultEvents
	}
	return ""
}

// Millis checks a time to live, 0 for no end, and adds the jitter. The error wraps
// ebb.ErrArgument.
func (b *Bounds) Millis(ttl time.Duration) (int64, error) {
	if ttl < 0 || ttl > Longest {
		return 0, fmt.Errorf("%w: the time to live is %v, want 0 (no end) to 100 years", conn.ErrArgument, ttl)
	}
	ms := kit.Millis(ttl)
	if limit := ms * int64(b.Jitter) / 100; limit > 0 {
		ms += rand.Int64N(limit + 1)
	}
	return ms, nil
}
