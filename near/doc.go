// Package near finds members near a point, and removes members that were not placed again in
// time: for instance the drivers that reported in the last minute.
//
//	drivers, err := near.New(c, "drivers")
//	err = drivers.Place(ctx, "ann", 13.3777, 52.5163, time.Minute)
//	found, err := drivers.Nearest(ctx, 13.3889, 52.5170, 5, 2*near.Kilometer)
//
// An index is a geospatial index as GEOADD makes it: a sorted set whose scores are geohashes of
// 52 bits. On ebb its members have deadlines (ZPEXPIRE). On other servers a second sorted set
// holds the deadlines, and a script for each operation first removes some expired members.
//
// Invariants: a member lives up to and including the millisecond of its deadline, by the
// server's clock. Afterwards no operation finds, measures or counts it. A stored position is
// exact to 0.6 m.
//
// Start reading at Index.
package near
