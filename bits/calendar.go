package bits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	mathbits "math/bits"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// streakMonths is the number of months that Streak reads at a time.
const streakMonths = 12

// Day is a date.
type Day struct {
	Year  int
	Month time.Month
	Day   int
}

// DayOf returns the day of an instant in its own location.
func DayOf(t time.Time) Day {
	y, m, d := t.Date()
	return Day{y, m, d}
}

// Add returns the date that is days later.
func (d Day) Add(days int) Day {
	return DayOf(time.Date(d.Year, d.Month, d.Day+days, 0, 0, 0, 0, time.UTC))
}

// String returns the date as 2026-11-22.
func (d Day) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// days returns the number of days of the month.
func (d Day) days() int { return time.Date(d.Year, d.Month+1, 0, 0, 0, 0, 0, time.UTC).Day() }

// CalendarOptions configures a calendar. The zero value keeps days without an end, in UTC.
type CalendarOptions struct {
	// Location is the time zone in which days begin and end; nil: UTC.
	Location *time.Location
	// Keep is the time for which a month is kept after the last Mark in it; 0: no end.
	Keep time.Duration
}

// Calendar stores the days on which users signed in: four bytes for a user and month, the key
// {name:<user>}:2026-11, whose bit 0 is the first day. The methods are safe for concurrent use.
type Calendar struct {
	c    *conn.Conn
	name string
	o    CalendarOptions
}

// NewCalendar returns the calendar of that name. It sends nothing to the backend. Errors:
// ebb.ErrArgument.
func NewCalendar(c *conn.Conn, name string, opts ...CalendarOptions) (*Calendar, error) {
	name, o, err := kit.Make(c, "bits: calendar", name, opts)
	if err != nil {
		return nil, err
	}
	if o.Keep < 0 {
		return nil, kit.Argument("bits: calendar", name, "Keep is %v; it must be positive, or 0 for ever", o.Keep)
	}
	o.Location = cmp.Or(o.Location, time.UTC)
	return &Calendar{c, name, o}, nil
}

// Today returns the current day by the backend's clock, in the calendar's location.
func (k *Calendar) Today(ctx context.Context) (Day, error) {
	v, err := k.c.Do(ctx, "TIME")
	if err != nil {
		return Day{}, k.failed("today", err)
	}
	if len(v.Elems) == 2 {
		if s, err := v.Elems[0].AsInt(); err == nil {
			return DayOf(time.Unix(s, 0).In(k.o.Location)), nil
		}
	}
	return Day{}, k.failed("today", fmt.Errorf("%w: TIME replied %s; want the seconds and microseconds", conn.ErrValue, v))
}

// SignIn marks today, and reports whether it is the first time today.
func (k *Calendar) SignIn(ctx context.Context, user string) (first bool, err error) {
	d, err := k.Today(ctx)
	if err != nil {
		return false, err
	}
	return k.Mark(ctx, user, d)
}

// Mark marks a day, and reports whether it was unmarked before. Errors: ebb.ErrArgument.
func (k *Calendar) Mark(ctx context.Context, user string, d Day) (first bool, err error) {
	if err := k.check(d); err != nil {
		return false, err
	}
	var b conn.Batch
	b.Do("SETBIT", k.key(user, d), d.Day-1, 1)
	if k.o.Keep > 0 {
		b.Do("PEXPIRE", k.key(user, d), kit.Millis(k.o.Keep))
	}
	r, err := k.c.Tx(ctx, &b)
	for _, v := range r {
		err = errors.Join(err, v.Err())
	}
	if err != nil {
		return false, k.failed("mark "+d.String(), err)
	}
	return r[0].Int == 0, nil
}

// Signed reports whether a day is marked. Errors: ebb.ErrArgument.
func (k *Calendar) Signed(ctx context.Context, user string, d Day) (bool, error) {
	if err := k.check(d); err != nil {
		return false, err
	}
	return (&Bitmap{k.c, k.key(user, d)}).Get(ctx, int64(d.Day-1))
}

// Count returns the number of marked days of a month.
func (k *Calendar) Count(ctx context.Context, user string, year int, month time.Month) (int, error) {
	m, err := k.Month(ctx, user, year, month)
	return m.Count(), err
}

// Month returns the marked days of a month. One command.
func (k *Calendar) Month(ctx context.Context, user string, year int, month time.Month) (Month, error) {
	d := Day{year, month, 1}
	if err := k.check(d); err != nil {
		return Month{}, err
	}
	all, err := k.months(ctx, user, d, 1)
	if err != nil {
		return Month{}, err
	}
	return Month{year, month, all[0]}, nil
}

// Streak returns the number of days in a row, up to a day, on which the user signed in. If the
// day itself is not marked, the streak up to the day before counts. Streak costs one call for
// each year that it goes back.
func (k *Calendar) Streak(ctx context.Context, user string, upTo Day) (days int, err error) {
	if err := k.check(upTo); err != nil {
		return 0, err
	}
	for at := upTo; ; {
		all, err := k.months(ctx, user, at, streakMonths)
		if err != nil {
			return 0, err
		}
		for _, m := range all {
			for ; at.Day > 0; at.Day-- {
				if m>>(at.Day-1)&1 == 1 {
					days++
				} else if at != upTo {
					return days, nil
				}
			}
			if at = (Day{at.Year, at.Month, 1}).Add(-1); at.Year < 1 {
				return days, nil
			}
		}
	}
}

// months returns n months, from that of a day back: bit 0 is the first day.
func (k *Calendar) months(ctx context.Context, user string, d Day, n int) ([]uint32, error) {
	var b conn.Batch
	for at, i := (Day{d.Year, d.Month, 1}), 0; i < n; i++ {
		b.Do("BITFIELD_RO", k.key(user, at), "GET", "u32", 0)
		last := at.Add(-1)
		at = Day{last.Year, last.Month, 1}
	}
	r, err := k.c.Pipeline(ctx, &b)
	if err != nil {
		return nil, k.failed("read", err)
	}
	all := make([]uint32, len(r))
	for i, v := range r {
		if err := v.Err(); err != nil {
			return nil, k.failed("read", err)
		}
		if len(v.Elems) != 1 {
			return nil, k.failed("read", fmt.Errorf("%w: %s", conn.ErrValue, v))
		}
		all[i] = mathbits.Reverse32(uint32(v.Elems[0].Int))
	}
	return all, nil
}

// Delete removes the months of a user, from the month of one day to that of another, both
// included. The backend has no list of the months or users of a calendar; with Keep the months
// expire. Delete costs a command for each month, in one round trip for each year. Errors:
// ebb.ErrArgument.
func (k *Calendar) Delete(ctx context.Context, user string, from, to Day) error {
	if err := errors.Join(k.check(from), k.check(to)); err != nil {
		return err
	}
	for at, last := (Day{from.Year, from.Month, 1}), (Day{to.Year, to.Month, 1}); !last.before(at); {
		var b conn.Batch
		for ; b.Len() < streakMonths && !last.before(at); at = at.Add(at.days()) {
			b.Do("DEL", k.key(user, at))
		}
		r, err := k.c.Pipeline(ctx, &b)
		for _, v := range r {
			err = errors.Join(err, v.Err())
		}
		if err != nil {
			return k.failed("delete", err)
		}
	}
	return nil
}

// before reports whether a day comes before another.
func (d Day) before(o Day) bool {
	return cmp.Or(cmp.Compare(d.Year, o.Year), cmp.Compare(d.Month, o.Month), cmp.Compare(d.Day, o.Day)) < 0
}

// key returns the key of the month of a day.
func (k *Calendar) key(user string, d Day) string {
	return kit.Key(k.name+":"+user, fmt.Sprintf("%04d-%02d", d.Year, d.Month))
}

var errDay = errors.New("there is no such day")

func (k *Calendar) check(d Day) error {
	if d.Year < 1 || d.Year > 9999 || d.Month < 1 || d.Month > 12 || d.Day < 1 || d.Day > d.days() {
		return k.failed(d.String(), fmt.Errorf("%w: %w", conn.ErrArgument, errDay))
	}
	return nil
}

// String returns a description for logs, with the name.
func (k *Calendar) String() string { return fmt.Sprintf("calendar %q (%s)", k.name, k.o.Location) }

func (k *Calendar) failed(doing string, err error) error {
	return fmt.Errorf("bits: calendar %q: %s: %w", k.name, doing, err)
}

// Month is the set of marked days of one user in one month.
type Month struct {
	Year  int
	Month time.Month
	bits  uint32
}

// Signed reports whether a day of the month, 1 to 31, is marked.
func (m Month) Signed(day int) bool { return day >= 1 && day <= 31 && m.bits>>(day-1)&1 == 1 }

// Count returns the number of marked days.
func (m Month) Count() int { return mathbits.OnesCount32(m.bits) }

// String draws the month, with the marked days in brackets:
//
//	     November 2026
//	Mo  Tu  We  Th  Fr  Sa  Su
//	                         1
//	[2] [3]  4   5 …
func (m Month) String() string {
	var b strings.Builder
	title := fmt.Sprintf("%s %d", m.Month, m.Year)
	fmt.Fprintf(&b, "%*s\n Mo  Tu  We  Th  Fr  Sa  Su\n", 14+len(title)/2, title)
	first := time.Date(m.Year, m.Month, 1, 0, 0, 0, 0, time.UTC)
	column := (int(first.Weekday()) + 6) % 7
	line := strings.Repeat("    ", column)
	for day := 1; day <= (Day{m.Year, m.Month, 1}).days(); day++ {
		cell := fmt.Sprintf(" %2d ", day)
		if m.Signed(day) {
			cell = fmt.Sprintf("%4s", fmt.Sprintf("[%d]", day))
		}
		line += cell
		if column = (column + 1) % 7; column == 0 {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = ""
		}
	}
	if line != "" {
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
