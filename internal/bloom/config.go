package bloom

import "math"

// Config says what a filter is made for.
type Config struct {
	// Error is the largest share of items that were never added and are found all
	// the same: from MinError to below 1.
	Error float64
	// Capacity is how many items the filter is made for, with a Window how many
	// that live at a time: 1 to MaxCapacity.
	Capacity int64
	// Expansion is how many times as large as the last the next layer is, 1 to
	// MaxExpansion. 0: the filter does not grow, but is full with Capacity items.
	Expansion int64
	// Window is how long items are found after they were added, in ms, up to
	// MaxWindow; 0 is for ever.
	Window int64
	// Generations is in how many steps items of a Window go: 1 to MaxGenerations,
	// and not more than Window. 0 without a Window.
	Generations int64
}

// The bounds.
const (
	// MinError leaves what 64 bits of hash for each item add to it far below.
	MinError       = 1e-12
	MaxCapacity    = 1 << 30 // as RedisBloom
	MaxExpansion   = 1 << 15 // as RedisBloom
	MaxWindow      = 1 << 45 // ms, a thousand years
	MaxGenerations = 64      // a lookup asks each of them
	// MaxBytes bounds the bits of all layers: beyond, one key is too much of a
	// burden for one shard.
	MaxBytes = 4 << 30

	maxLayers = 64
)

// Check verifies the bounds. Errors: ErrConfig, ErrTooLarge.
func (c *Config) Check() error {
	switch {
	case !(c.Error >= MinError && c.Error < 1),
		c.Capacity < 1 || c.Capacity > MaxCapacity,
		c.Expansion < 0 || c.Expansion > MaxExpansion,
		c.Window < 0 || c.Window > MaxWindow,
		c.Window == 0 && c.Generations != 0,
		c.Window != 0 && (c.Generations < 1 || c.Generations > min(c.Window, MaxGenerations)):
		return ErrConfig
	}
	var l layer
	l.shape(c.layer(0, 0))
	if l.bytes() > MaxBytes/(c.Generations+1) {
		return ErrTooLarge
	}
	return nil
}

// layer returns what the n-th layer of a generation is made for, where the last
// one was made for so many items.
//
// A filter that may not grow has one layer, with all of the rate. With a Window
// each generation has its share of rate and items; and because items may come in
// bursts its layers grow also where the filter does not.
func (c *Config) layer(n int, last int64) (capacity int64, rate float64) {
	grows := max(c.Expansion, 2)
	rate = c.Error
	if c.Window != 0 {
		rate /= float64(c.Generations + 1)
	} else if c.Expansion != 0 {
		grows = c.Expansion
	}
	if c.Window != 0 || c.Expansion != 0 {
		rate = math.Ldexp(rate, -n-1)
	}
	if n > 0 {
		return last * grows, rate
	}
	return max(1, (c.Capacity+max(c.Generations, 1)-1)/max(c.Generations, 1)), rate
}

// begins returns when a generation begins, in ms since 1970.
func (c *Config) begins(number int64) int64 {
	q, r := floorDiv(number, c.Generations)
	return q*c.Window + r*c.Window/c.Generations // floor(number·Window/Generations)
}

// number returns the generation of an instant: the largest that begins no later,
// so the largest j with j < (ms+1)·Generations/Window.
func (c *Config) number(ms int64) int64 {
	q, r := floorDiv(ms, c.Window)
	return q*c.Generations + ((r+1)*c.Generations-1)/c.Window
}

// floorDiv returns quotient and remainder, which is not negative.
func floorDiv(a, b int64) (q, r int64) {
	q, r = a/b, a%b
	if r < 0 {
		q, r = q-1, r+b
	}
	return q, r
}
