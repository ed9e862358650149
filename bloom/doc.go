// Package bloom remembers which values it has seen, in a few bits for each: what was
// added is always found, and what was not is found with a probability that is
// chosen beforehand.
//
//	seen, err := bloom.New(c, "seen", bloom.Options[string]{Capacity: 1_000_000, Error: 0.001})
//	isNew, err := seen.Add(ctx, "https://example.org/")
//	maybe, err := seen.Contains(ctx, "https://example.org/") // true; false would be certain
//
// There are three kinds:
//
//	Options{}                 grows: Capacity is where it begins, Error holds throughout
//	Options{Fixed: true}      does not: it is full with Capacity values (ErrFull)
//	Options{Window: 24h}      forgets: values are found for at least the window after
//	                          they were last added, and at most a generation longer
//
// On ebb that is BF.INSERT, BF.MEXISTS, BF.CARD. Elsewhere it is a hash, the key
// itself, that says how the filter was made, and bitmaps beside it, {name}:<generation
// slot>:<layer>, which one Lua script reads and writes. Which bits belong to a value
// is worked out here, in Go: see shape and places. The two layouts have nothing in
// common: the filter of a key is of one kind or the other.
//
// RedissonFilter is a third layout, Redisson's.
//
// Start reading at Filter.Add, then layout.go.
package bloom
