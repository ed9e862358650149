// Package bits implements bitmaps: a bit for each number from 0 on, 8 of them in a byte.
//
//	today, err := bits.New(c, "active:2026-11-22")
//	was, err := today.Set(ctx, userID, true)
//	n, err := today.Count(ctx)
//
// Bitmap has the bits one by one, counted, searched and combined; Field reads some
// next to each other as a number; Calendar keeps the days on which users signed in.
//
//	bit   0 1 2 3 4 5 6 7   8 9 …
//	byte  └──── 0 ─────┘   └─ 1 …    bit 0 is the highest of byte 0
//
// All is Redis's own commands, on every backend: SETBIT, BITCOUNT, BITFIELD and so
// on. A bitmap is as long as its highest bit that was set needs: 512 MiB at most,
// and a single bit at the end takes them all.
//
// Start reading at Bitmap, then calendar.go.
package bits
