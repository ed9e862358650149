// Package unique counts different items, in at most 12 KiB, with a standard error of about 0.81
// %.
//
//	visitors, err := unique.New(c, "visitors", unique.Options{Window: time.Hour})
//	err = visitors.Add(ctx, "ann", "bob", "ann")
//	n, err := visitors.Count(ctx)                      // 2, of all time
//	n, err = visitors.CountLast(ctx, 10*time.Minute)   // 2
//
// The counter is a HyperLogLog (Flajolet and others, 2007), the key itself. With a Window there
// is one more for each interval of time, {name}:u:<number>, which expires:
//
//	… │ 7 │ 8 │ 9 │ 10 │      CountLast merges those of the last minutes: an item
//	              now ─┘      in several of them counts once
//
// Start reading at Counter.Add.
package unique
