// Package near finds the members near a point, and removes the members that were not placed
// again in time: the drivers seen in the last minute, for instance.
//
//	drivers, err := near.New(c, "drivers")
//	err = drivers.Place(ctx, "ann", 13.3777, 52.5163, time.Minute)
//	found, err := drivers.Nearest(ctx, 13.3889, 52.5170, 5, 2*near.Kilometer)
//
// An index is a geospatial index as GEOADD makes it: a sorted set by geohashes of 52
// bits. On ebb its members have deadlines (ZPEXPIRE); elsewhere a sorted set beside it
// holds them, and a script for each operation removes some of the dead first.
//
// Invariants: a member lives up to and including the millisecond of its deadline, by
// the server's clock, and is then never found, measured or counted. A place is kept to
// within 0.6 m.
//
// Start reading at Index.
package near
