// Package bloom implements Bloom filters: a filter stores a few bits for each value. It always
// finds a value that was added, and finds other values with a probability that the program
// chooses.
//
//	seen, err := bloom.New(c, "seen", bloom.Options[string]{Capacity: 1_000_000, Error: 0.001})
//	isNew, err := seen.Add(ctx, "https://example.org/")
//	maybe, err := seen.Contains(ctx, "https://example.org/") // true; false would be certain
//
// There are three kinds:
//
//	Options{}                 grows from Capacity on; Error holds throughout
//	Options{Fixed: true}      does not grow: at Capacity values it is full (ErrFull)
//	Options{Window: 24h}      finds values for at least the window after they were last added,
//	                          and at most a generation longer
//
// On ebb a filter uses BF.INSERT, BF.MEXISTS and BF.CARD. On other servers it is a hash, the
// key itself, with the configuration, and bitmaps {name}:<generation slot>:<layer>, which one
// Lua script reads and writes; this package computes the bits of a value (see shape and
// places). The two layouts are incompatible, and a key has one of them.
//
// A third layout is Redisson's: redisson.BloomFilter, in the module redisson.
//
// Start reading at Filter.Add, then layout.go.
package bloom
