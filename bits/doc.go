// Package bits implements bitmaps: one bit for each number from 0 on, 8 bits in a byte.
//
//	today, err := bits.New(c, "active:2026-11-22")
//	was, err := today.Set(ctx, userID, true)
//	n, err := today.Count(ctx)
//
// Bitmap sets, counts, searches and combines bits. Field reads and writes neighbouring bits as
// a number. Calendar stores the days on which users signed in.
//
//	bit   0 1 2 3 4 5 6 7   8 9 …
//	byte  └──── 0 ─────┘   └─ 1 …    bit 0 is the highest of byte 0
//
// The package uses Redis's commands on every backend: SETBIT, BITCOUNT, BITFIELD and so on. The
// length of a bitmap depends on its highest bit that was set. It is at most 512 MiB, which a
// single bit at the end takes too.
//
// Start reading at Bitmap, then calendar.go.
package bits
