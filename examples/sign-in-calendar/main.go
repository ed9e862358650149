// Command sign-in-calendar stores the days on which users signed in, four bytes per user
// and month, and the users that were active on a day, one bit per user.
package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bits"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	if err := month(ctx, c, w); err != nil {
		return err
	}
	if err := activeUsers(ctx, c, w); err != nil {
		return err
	}
	return badge(ctx, c, w)
}

// month is the calendar of one user.
func month(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	k, err := bits.NewCalendar(c, "example:sign-in", bits.CalendarOptions{Keep: 400 * 24 * time.Hour})
	if err != nil {
		return err
	}
	today, err := k.Today(ctx) // the backend's day, so that all programs agree
	if err != nil {
		return err
	}
	if err := k.Delete(ctx, "visitor", today, today); err != nil { // in case the program ran before
		return err
	}
	defer func() { _ = k.Delete(context.WithoutCancel(ctx), "visitor", today, today) }()
	first, err := k.SignIn(ctx, "visitor")
	if err != nil {
		return err
	}
	again, err := k.SignIn(ctx, "visitor")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "today, %s, the visitor signs in: the first time today? %v; and once more: %v\n\n", today, first, again)

	day := bits.Day{Year: 2026, Month: time.November, Day: 22}
	if err := k.Delete(ctx, "ann", day.Add(-30), day); err != nil {
		return err
	}
	defer func() { _ = k.Delete(context.WithoutCancel(ctx), "ann", day.Add(-30), day) }()
	for _, ago := range []int{0, 1, 2, 3, 4, 7, 8, 12, 20, 21, 22, 23, 24, 30} {
		if _, err := k.Mark(ctx, "ann", day.Add(-ago)); err != nil {
			return err
		}
	}
	m, err := k.Month(ctx, "ann", 2026, time.November)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s\n", m)
	streak, err := k.Streak(ctx, "ann", day)
	if err != nil {
		return err
	}
	over, err := k.Streak(ctx, "ann", day.Add(-20))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "ann signed in on %d days of November; %d in a row up to %s,\nand %d up to %s, which began in October\n\n", m.Count(),
		streak, day, over, day.Add(-20))
	return nil
}

// activeUsers shows a bitmap for each day, with a bit for each user.
func activeUsers(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	days := make([]*bits.Bitmap, 3)
	for i := range days {
		var err error
		if days[i], err = bits.New(c, fmt.Sprintf("{example:active}:day-%d", i+1)); err != nil {
			return err
		}
		if err := days[i].Delete(ctx); err != nil {
			return err
		}
		defer func() { _ = days[i].Delete(context.WithoutCancel(ctx)) }()
		var users []int64
		for u := int64(0); u < 3000; u += int64(i) + 1 { // every user, every second one, every third one
			users = append(users, u)
		}
		if _, err := days[i].SetMany(ctx, users...); err != nil {
			return err
		}
		n, err := days[i].Count(ctx)
		if err != nil {
			return err
		}
		size, err := days[i].Len(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "day %d: %d active, in %d bytes\n", i+1, n, size/8)
	}
	out, err := bits.New(c, "{example:active}:result")
	if err != nil {
		return err
	}
	for _, op := range []struct {
		what string
		op   bits.Op
	}{{"on every day", bits.And}, {"on any day", bits.Or}} {
		if _, err := out.Op(ctx, op.op, days...); err != nil {
			return err
		}
		n, err := out.Count(ctx)
		if err != nil {
			return err
		}
		first, err := out.Pos(ctx, true, 1)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %d; the first after user 0 is user %d\n", op.what, n, first)
	}
	return out.Delete(ctx)
}

// badge packs a level and a score of each user into a field.
func badge(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	all, err := bits.New(c, "example:levels")
	if err != nil {
		return err
	}
	if err := all.Delete(ctx); err != nil {
		return err
	}
	defer func() { _ = all.Delete(context.WithoutCancel(ctx)) }()
	const user, width = 42, 4
	level, err := all.Field(bits.Uint(width), user*width)
	if err != nil {
		return err
	}
	for range 20 {
		if _, err := level.Add(ctx, 1, bits.Saturate); err != nil {
			return err
		}
	}
	n, err := level.Get(ctx)
	fmt.Fprintf(w, "\nuser %d earned 20 badges; the field of %d bits stays at %d\n", user, width, n)
	return err
}
