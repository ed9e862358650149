// Package unique counts how many different things there were, in 12 KiB however
// many there are, with an error of about 0.81 % (one standard deviation).
//
//	visitors, err := unique.New(c, "visitors", unique.Options{Window: time.Hour})
//	err = visitors.Add(ctx, "ann", "bob", "ann")
//	n, err := visitors.Count(ctx)                      // 2, since ever
//	n, err = visitors.CountLast(ctx, 10*time.Minute)   // 2
//
// The counter is a HyperLogLog (Flajolet and others, 2007), the key itself. With a
// Window there is one more for each interval of time, {name}:u:<number>, which goes
// by itself when it is too old:
//
//	… │ 7 │ 8 │ 9 │ 10 │      CountLast unites those of the last minutes: an item
//	              now ─┘      in several of them is counted once
//
// Start reading at Counter.Add.
package unique
