package bloom

import "math"

// Config configures a filter.
type Config struct {
	// Error is the greatest rate of false positives: items that were never added and are found all
	// the same. It is from MinError to below 1.
	Error float64
	// Capacity is the number of items, with a Window the number of items that live at a time: 1 to
	// MaxCapacity.
	Capacity int64
	// Expansion is the ratio of the sizes of the next layer and the last one, 1 to MaxExpansion. 0:
	// the filter does not grow, and is full with Capacity items.
	Expansion int64
	// Window is the time, in ms, for which items are found after they were added, up to MaxWindow;
	// 0: for ever.
	Window int64
	// Generations is the number of steps in which items of a Window are forgotten: 1 to
	// MaxGenerations, and at most Window. It is 0 without a Window.
	Generations int64
}

// These are the bounds.
const (
	// MinError is far above the error that 64 bits of hash for each item add.
	MinError       = 1e-12
	MaxCapacity    = 1 << 30 // as in RedisBloom
	MaxExpansion   = 1 << 15 // as in RedisBloom
	MaxWindow      = 1 << 45 // ms, a thousand years
	MaxGenerations = 64      // a lookup reads each of them
	// MaxBytes bounds the bits of all layers, in bytes. A larger key would be too much load for one
	// shard.
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

// layer returns the capacity and the error rate of the n-th layer of a generation; last is the
// capacity of the layer before.
//
// A filter that may not grow has one layer, with all of the rate. With a Window each generation has
// its share of rate and items; and because items may come in bursts, its layers grow even if the
// filter does not.
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

// number returns the generation of an instant: the largest one that does not begin later, which is
// the largest j with j < (ms+1)·Generations/Window.
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
