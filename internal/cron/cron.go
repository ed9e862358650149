// Package cron computes the instants at which a cron expression is due in a time zone.
//
//	sec min hour day month weekday     bit sets, read by github.com/robfig/cron
//	        |
//	wall time ──zone segment──▶ instant (a segment is a span with one offset to UTC)
//
// The computation goes from segment to segment. Within a segment wall time and UTC differ by a
// constant, so a wall time has one instant. At the border of two segments the clock jumps:
//
//   - forward: the wall times of the gap do not exist. If one of them matches, the expression is due
//     once, at the first instant after the gap.
//   - back: the wall times between the two come twice. The expression is due the first time only.
//
// An expression that allows every hour means elapsed time: its instants are those whose wall time
// matches, in both passes of a repeated hour, and none for a gap.
//
// Time is an argument, in seconds since 1970. Start reading at Expr.Next.
package cron

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // the zones are the same on machines without a table of their own

	robfig "github.com/robfig/cron/v3"
)

// MaxLen is the greatest length of an expression, in bytes. A longer one lists values that a range
// or a step would name.
const MaxLen = 255

// horizon is the span, in seconds, in which Next looks for an instant: between two leap days there
// are at most eight years.
const horizon = (8*365 + 3) * day

const (
	minute = 60
	hour   = 60 * minute
	day    = 24 * hour
)

// ErrZone is the error for the name of a time zone that the table of zones does not have.
var ErrZone = errors.New("unknown time zone")

// Expr is a cron expression in a time zone. It is safe for concurrent use.
type Expr struct {
	second, minute, hour, dom, month, dow uint64
	anyDay                                bool // day of month or weekday is unrestricted: both must match, else one of them
	everyHour                             bool
	zone                                  *time.Location
}

// star marks a field that was given as * or ?.
const star = 1 << 63

var parser = robfig.NewParser(robfig.SecondOptional | robfig.Minute | robfig.Hour | robfig.Dom | robfig.Month |
	robfig.Dow | robfig.Descriptor)

// Parse reads an expression of five fields (minute, hour, day of month, month, day of week), of six
// with the second in front, or one of @yearly, @monthly, @weekly, @daily and @hourly. Fields have
// lists, ranges, steps, and English names of months and days; Sunday is 0. If both days are
// restricted, one of them has to match (crontab(5)). zone is an IANA name; "" is UTC. Errors: ErrZone,
// and others that name the wrong field and quote it.
func Parse(text, zone string) (*Expr, error) {
	if len(text) > MaxLen {
		return nil, fmt.Errorf("the expression has %d bytes, at most %d are allowed", len(text), MaxLen)
	}
	if strings.Contains(text, "=") {
		return nil, fmt.Errorf("%q: an expression cannot contain a time zone. Give it as TZ", text)
	}
	if strings.HasPrefix(text, "@every") {
		return nil, fmt.Errorf("%q: a span between occurrences is not an expression, use EVERY", text)
	}
	schedule, err := parser.Parse(text)
	if err != nil {
		return nil, inField(text, err)
	}
	s, ok := schedule.(*robfig.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("%q is not a cron expression", text)
	}
	if zone == "Local" { // it would depend on the machine
		return nil, ErrZone
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, ErrZone
	}
	const all = 1<<24 - 1
	return &Expr{
		second: s.Second &^ star, minute: s.Minute &^ star, hour: s.Hour &^ star, dom: s.Dom &^ star, month: s.Month &^ star, dow: s.Dow &^ star,
		anyDay: (s.Dom|s.Dow)&star != 0, everyHour: s.Hour&all == all, zone: loc,
	}, nil
}

// fieldNames are the fields of an expression, in their order.
var fieldNames = [...]string{"second", "minute", "hour", "day of month", "month", "day of week"}

// inField returns the error of an expression with the name of the first wrong field, or why if no field is wrong by itself.
func inField(text string, why error) error {
	fields := strings.Fields(text)
	skipped := len(fieldNames) - len(fields) // 1 without the second
	if skipped != 0 && skipped != 1 {
		return why
	}
	for i, field := range fields {
		alone := slices.Repeat([]string{"*"}, len(fieldNames))
		alone[i+skipped] = field
		if _, err := parser.Parse(strings.Join(alone, " ")); err != nil {
			return fmt.Errorf("the %s is %q: %w", fieldNames[i+skipped], field, err)
		}
	}
	return why
}

// segment is a span of UTC with one offset, in seconds: start <= t < end. before is the offset
// before start.
type segment struct {
	start, end       int64
	hasStart, hasEnd bool
	offset, before   int64
}

// segmentAt returns the segment that holds t.
func (e *Expr) segmentAt(t int64) (s segment) {
	at := time.Unix(t, 0).In(e.zone)
	_, offset := at.Zone()
	s.offset = int64(offset)
	from, to := at.ZoneBounds()
	if !to.IsZero() {
		s.end, s.hasEnd = to.Unix(), true
	}
	if from.IsZero() {
		return s
	}
	s.start, s.hasStart = from.Unix(), true
	_, before := time.Unix(s.start-1, 0).In(e.zone).Zone()
	s.before = int64(before)
	return s
}

// gap returns the wall times that do not exist before the segment: from <= wall < to.
func (s *segment) gap() (from, to int64) {
	if s.hasStart && s.offset > s.before {
		return s.start + s.before, s.start + s.offset
	}
	return 0, 0
}

// firstNewWall returns the first wall time of the segment that the segment before it did not have.
func (s *segment) firstNewWall() int64 {
	return s.start + max(s.offset, s.before)
}

// Next returns the first instant after t at which the expression is due; 0 if there is none within
// eight years. It costs some microseconds, and up to a millisecond for a rare date.
func (e *Expr) Next(t int64) int64 {
	for last := t + horizon; ; {
		t++
		s := e.segmentAt(t)
		wall := t + s.offset
		if !e.everyHour && s.hasStart {
			if from, to := s.gap(); t == s.start && from < to {
				if w, ok := e.nextWall(from, to); ok && w < to {
					return t
				}
			}
			wall = max(wall, s.firstNewWall())
		}
		end := last + s.offset + 1
		if s.hasEnd {
			end = min(end, s.end+s.offset)
		}
		if w, ok := e.nextWall(wall, end); ok {
			return w - s.offset
		}
		if !s.hasEnd || s.end > last {
			return 0
		}
		t = s.end - 1
	}
}

// Count returns the number of instants t with after < t <= through at which the expression is due.
// It costs O(days between them).
func (e *Expr) Count(after, through int64) (n int64) {
	for t := after + 1; t <= through; {
		s := e.segmentAt(t)
		wall, end := t+s.offset, through+s.offset+1
		if s.hasEnd {
			end = min(end, s.end+s.offset)
		}
		if !e.everyHour && s.hasStart {
			from, to := s.gap()
			if t == s.start && from < to && e.countWalls(from, to) > 0 && e.countWalls(to, to+1) == 0 {
				n++
			}
			wall = max(wall, s.firstNewWall())
		}
		n += e.countWalls(wall, end)
		if !s.hasEnd {
			break
		}
		t = s.end
	}
	return n
}

// Last returns the last instant at which the expression was due, after < t <= through; 0 if there is
// none. It costs O(days between them) for each bit of their distance.
func (e *Expr) Last(after, through int64) int64 {
	if e.Count(after, through) == 0 {
		return 0
	}
	lo, hi := after, through // Count(lo, through) > 0, Count(hi, through) == 0
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		if e.Count(mid, through) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// A wall time is the number of seconds from 1970-01-01 00:00:00 to the time that a clock on the wall
// shows. date and clock split it.

func date(wall int64) (days, clock int64) {
	days = wall / day
	if wall < days*day {
		days--
	}
	return days, wall - days*day
}

// onDay reports whether a day, counted from 1970-01-01, matches.
func (e *Expr) onDay(days int64) bool {
	at := time.Unix(days*day, 0).UTC()
	_, m, d := at.Date()
	if e.month>>uint(m)&1 == 0 {
		return false
	}
	dom, dow := e.dom>>uint(d)&1 == 1, e.dow>>uint(at.Weekday())&1 == 1
	if e.anyDay {
		return dom && dow
	}
	return dom || dow
}

// nextWall returns the first wall time that matches, from <= wall < end.
func (e *Expr) nextWall(from, end int64) (wall int64, ok bool) {
	for days, clock := date(from); days*day < end; days, clock = days+1, 0 {
		if !e.onDay(days) {
			continue
		}
		if c, ok := e.nextClock(clock); ok {
			wall = days*day + c
			return wall, wall < end
		}
	}
	return 0, false
}

// nextClock returns the first time of a day that matches, in seconds, from clock on.
func (e *Expr) nextClock(clock int64) (int64, bool) {
	h, m, s := clock/hour, clock%hour/minute, clock%minute
	if e.hour>>h&1 == 1 {
		if e.minute>>m&1 == 1 {
			if s, ok := from(e.second, s); ok {
				return h*hour + m*minute + s, true
			}
		}
		if m, ok := from(e.minute, m+1); ok {
			return h*hour + m*minute + first(e.second), true
		}
	}
	if h, ok := from(e.hour, h+1); ok {
		return h*hour + first(e.minute)*minute + first(e.second), true
	}
	return 0, false
}

// from returns the least element of a set that is at least n.
func from(set uint64, n int64) (int64, bool) {
	set = set >> n << n
	return first(set), set != 0
}

func first(set uint64) int64 { return int64(bits.TrailingZeros64(set)) }

// countWalls returns the number of wall times that match, from <= wall < end.
func (e *Expr) countWalls(from, end int64) (n int64) {
	if from >= end {
		return 0
	}
	firstDay, clock := date(from)
	lastDay, until := date(end)
	whole := e.countClocks(day)
	for d := firstDay; d <= lastDay; d++ {
		if !e.onDay(d) {
			continue
		}
		k := whole
		if d == lastDay {
			k = e.countClocks(until)
		}
		if d == firstDay {
			k -= e.countClocks(clock)
		}
		n += k
	}
	return n
}

// countClocks returns the number of times of a day that match, before clock.
func (e *Expr) countClocks(clock int64) int64 {
	h, m, s := clock/hour, clock%hour/minute, clock%minute
	minutes, seconds := size(e.minute), size(e.second)
	n := below(e.hour, h) * minutes * seconds
	if h < 24 && e.hour>>h&1 == 1 {
		n += below(e.minute, m) * seconds
		if e.minute>>m&1 == 1 {
			n += below(e.second, s)
		}
	}
	return n
}

// below returns the number of elements of a set that are less than n.
func below(set uint64, n int64) int64 { return size(set & (1<<n - 1)) }

func size(set uint64) int64 { return int64(bits.OnesCount64(set)) }
