package bits_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/bits"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/draw"
	"pgregory.net/rapid"
)

func newCalendar(t *testing.T, c *ebb.Conn, name string, o bits.CalendarOptions) *bits.Calendar {
	t.Helper()
	k, err := bits.NewCalendar(c, name, o)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSigningInMarksTodayOnce(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		k := newCalendar(t, b.Conn, b.Name("sign-in"), bits.CalendarOptions{Keep: 400 * 24 * time.Hour})
		today, err := k.Today(ctx)
		if err != nil {
			t.Fatal(err)
		}
		first, err := k.SignIn(ctx, "ann")
		want(t, "first", first, err, true)
		if first, err = k.SignIn(ctx, "ann"); err != nil || first && b.Virtual() {
			t.Error(first, err) // elsewhere it may be midnight
		}
		yes, err := k.Signed(ctx, "ann", today)
		want(t, "signed", yes, err, true)
		yes, err = k.Signed(ctx, "bob", today)
		want(t, "another", yes, err, false)
		ttl, err := b.TTL(ctx, fmt.Sprintf("{%s:ann}:%04d-%02d", b.Name("sign-in"), today.Year, today.Month))
		if ttl < 399*24*time.Hour || ttl > 400*24*time.Hour || err != nil {
			t.Error(ttl, err)
		}
	})
}

func TestADayBeginsWhereTheCalendarIs(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		k := newCalendar(t, b.Conn, b.Name("k"), bits.CalendarOptions{Location: time.FixedZone("east", 9*3600)})
		now := time.Now().UTC() // midnight, in a bubble
		d, err := k.Today(ctx)
		want(t, "today", d, err, bits.DayOf(now))
		b.Pass(15*time.Hour - time.Millisecond)
		d, err = k.Today(ctx)
		want(t, "just before midnight", d, err, bits.DayOf(now))
		b.Pass(time.Millisecond)
		d, err = k.Today(ctx)
		want(t, "midnight", d, err, bits.DayOf(now).Add(1))
	})
}

func TestStreaksGoAcrossMonthsAndYears(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		k := newCalendar(t, b.Conn, b.Name("k"), bits.CalendarOptions{})
		last := bits.Day{Year: 2024, Month: time.March, Day: 2}
		days, err := k.Streak(ctx, "ann", last)
		want(t, "none", days, err, 0)
		for i := range 430 { // February 2024 had 29
			if _, err := k.Mark(ctx, "ann", last.Add(-i)); err != nil {
				t.Fatal(err)
			}
		}
		days, err = k.Streak(ctx, "ann", last)
		want(t, "all", days, err, 430)
		days, err = k.Streak(ctx, "ann", last.Add(1))
		want(t, "the day may still come", days, err, 430)
		days, err = k.Streak(ctx, "ann", last.Add(2))
		want(t, "too late", days, err, 0)
		days, err = k.Streak(ctx, "ann", last.Add(-2))
		want(t, "then", days, err, 428)
		n, err := k.Count(ctx, "ann", 2024, time.February)
		want(t, "February", n, err, 29)
		n, err = k.Count(ctx, "ann", 2024, time.March)
		want(t, "March", n, err, 2)
	})
}

func TestAMonthIsDrawn(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		k := newCalendar(t, b.Conn, b.Name("k"), bits.CalendarOptions{})
		for _, d := range []int{1, 2, 14, 30} {
			if _, err := k.Mark(ctx, "ann", bits.Day{2026, time.November, d}); err != nil {
				t.Fatal(err)
			}
		}
		m, err := k.Month(ctx, "ann", 2026, time.November)
		const drawn = `       November 2026
 Mo  Tu  We  Th  Fr  Sa  Su
                         [1]
 [2]  3   4   5   6   7   8
  9  10  11  12  13 [14] 15
 16  17  18  19  20  21  22
 23  24  25  26  27  28  29
[30]
`
		if strings.TrimSpace(m.String()) != strings.TrimSpace(drawn) || err != nil || m.Count() != 4 || !m.Signed(14) || m.Signed(15) ||
			m.Signed(0) || m.Signed(32) {
			t.Errorf("\n%s%v", m, err)
		}
	})
}

func TestDaysThatAreNotAreRefused(t *testing.T) {
	k := newCalendar(t, new(ebb.Conn), "k", bits.CalendarOptions{})
	for _, d := range []bits.Day{{2026, time.February, 29}, {2026, 13, 1}, {2026, 1, 0}, {0, 1, 1}, {2026, 4, 31}} {
		if _, err := k.Mark(t.Context(), "ann", d); !errors.Is(err, ebb.ErrArgument) {
			t.Error(d, err)
		}
	}
	if _, err := bits.NewCalendar(new(ebb.Conn), "k", bits.CalendarOptions{Keep: -1}); !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
}

func TestDaysOutliveAFault(t *testing.T) {
	backends.Each(t, func(t *testing.T, b *backends.Backend) {
		ctx := b.Context()
		k := newCalendar(t, b.Conn, b.Name("k"), bits.CalendarOptions{})
		d := bits.Day{2026, time.May, 31}
		if _, err := k.Mark(ctx, "ann", d); err != nil {
			t.Fatal(err)
		}
		if !b.Fault() {
			return
		}
		b.Until("it is there again", func() bool {
			yes, err := k.Signed(ctx, "ann", d)
			return yes && err == nil
		})
	})
}

// The model of a calendar is a set of days.
func TestACalendarIsASetOfDays(t *testing.T) {
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	round := 0
	draw.Check(t, func(t *rapid.T) {
		round++
		ctx := context.Background()
		k, err := bits.NewCalendar(c, fmt.Sprint("model", round), bits.CalendarOptions{})
		if err != nil {
			t.Fatal(err)
		}
		model := map[bits.Day]bool{}
		day := func(t *rapid.T) bits.Day {
			return bits.Day{2023, time.December, 20}.Add(rapid.IntRange(0, 100).Draw(t, "day"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"mark": func(t *rapid.T) {
				from := day(t)
				for i := range rapid.IntRange(1, 30).Draw(t, "days") {
					d := from.Add(i)
					if first, err := k.Mark(ctx, "ann", d); first == model[d] || err != nil {
						t.Fatal(d, first, err)
					}
					model[d] = true
				}
			},
			"streak": func(t *rapid.T) {
				d, n := day(t), 0
				at := d
				if !model[at] {
					at = at.Add(-1)
				}
				for ; model[at]; at = at.Add(-1) {
					n++
				}
				if got, err := k.Streak(ctx, "ann", d); got != n || err != nil {
					t.Fatal(d, got, n, err)
				}
			},
		})
	})
}

func ExampleCalendar() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	k, err := bits.NewCalendar(c, "sign-in", bits.CalendarOptions{})
	if err != nil {
		panic(err)
	}
	for _, day := range []int{1, 2, 3, 5} {
		if _, err := k.Mark(ctx, "ann", bits.Day{Year: 2026, Month: time.November, Day: day}); err != nil {
			panic(err)
		}
	}
	fmt.Println(k.Count(ctx, "ann", 2026, time.November))
	fmt.Println(k.Streak(ctx, "ann", bits.Day{Year: 2026, Month: time.November, Day: 3}))
	// Output:
	// 4 <nil>
	// 3 <nil>
}
