package commands

import (
	"math"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// lifetime holds the expiry options of a command: EX, PX, EXAT, PXAT, KEEPTTL, PERSIST, and our own
// JITTER, SLIDE and SPAN (the form of SLIDE in the log). Every command with such options reads them
// here.
type lifetime struct {
	deadline int64 // ms since 1970; 0: no deadline was given
	span     int64 // ms; above 0: the deadline slides
	keep     bool  // KEEPTTL
	persist  bool  // PERSIST
	exact    int64 // the deadline without JITTER

	unit    timeUnit
	arg     []byte
	jitter  int64 // percent
	slide   bool
	spanArg []byte
}

// timeUnit is the unit of a time argument. The units unixSeconds and unixMillis are absolute.
type timeUnit uint8

const (
	noTime timeUnit = iota
	seconds
	millis
	unixSeconds
	unixMillis
)

func (u timeUnit) absolute() bool { return u >= unixSeconds }

// option tries to read the option at args[i] and returns how many arguments it took: 0 if the option is not
// one of lifetime's. keepTTL and persist report whether the command has these two options.
func (l *lifetime) option(args [][]byte, i int, keepTTL, persist bool) (int, error) {
	var unit timeUnit
	switch a := args[i]; {
	case command.EqualFold(a, "EX"):
		unit = seconds
	case command.EqualFold(a, "PX"):
		unit = millis
	case command.EqualFold(a, "EXAT"):
		unit = unixSeconds
	case command.EqualFold(a, "PXAT"):
		unit = unixMillis
	case keepTTL && command.EqualFold(a, "KEEPTTL"):
		if l.unit != noTime || l.persist {
			return 0, command.ErrSyntax
		}
		l.keep = true
		return 1, nil
	case persist && command.EqualFold(a, "PERSIST"):
		if l.unit != noTime || l.keep {
			return 0, command.ErrSyntax
		}
		l.persist = true
		return 1, nil
	default:
		return l.modifier(args, i)
	}
	// The same option may be given again, and the last one counts, as in Redis.
	if l.unit != noTime && l.unit != unit || l.keep || l.persist || i+1 >= len(args) {
		return 0, command.ErrSyntax
	}
	l.unit, l.arg = unit, args[i+1]
	return 2, nil
}

// modifier reads JITTER, SLIDE or SPAN.
func (l *lifetime) modifier(args [][]byte, i int) (int, error) {
	switch a := args[i]; {
	case command.EqualFold(a, "SLIDE"):
		l.slide = true
		return 1, nil
	case command.EqualFold(a, "JITTER"):
		if i+1 >= len(args) {
			return 0, command.ErrSyntax
		}
		n, ok := numeral.ParseInt(args[i+1])
		if !ok || n < 0 || n > 100 {
			return 0, command.ReplyError("ERR JITTER must be a percentage from 0 to 100")
		}
		l.jitter = n
		return 2, nil
	case command.EqualFold(a, "SPAN"):
		if i+1 >= len(args) {
			return 0, command.ErrSyntax
		}
		l.spanArg = args[i+1]
		return 2, nil
	}
	return 0, nil
}

// resolve turns the options into an absolute deadline, once, at the command's instant. With
// positive it refuses a time that is not above zero, as SET does; for EXPIRE such a time is in the
// past.
func (l *lifetime) resolve(c *command.Ctx, positive bool) error {
	if l.unit == noTime {
		if l.slide || l.jitter > 0 || l.spanArg != nil {
			return command.ReplyError("ERR JITTER and SLIDE need an expire time: EX, PX, EXAT or PXAT")
		}
		return nil
	}
	t, ok := numeral.ParseInt(l.arg)
	if !ok {
		return command.ErrNotInteger
	}
	now := c.Now() / 1000
	ms, ok := toDeadline(t, l.unit, now)
	if !ok || positive && t <= 0 {
		return errExpireTime(c.Spec)
	}
	if l.exact = ms; l.jitter > 0 && ms > now {
		ms = now + min(engine.Jitter(ms-now, l.jitter), math.MaxInt64-now)
	}
	switch {
	case l.spanArg != nil:
		if l.span, ok = numeral.ParseInt(l.spanArg); !ok || l.span <= 0 {
			return command.ErrNotInteger
		}
	case l.slide && ms > now:
		l.span = min(ms-now, engine.MaxDeadline)
	}
	l.deadline = ms
	if ms == 0 {
		l.deadline = -1 // because 0 means no deadline
	}
	return nil
}

// fresh reads the span of FRESH, and returns the fresh deadline in ms since 1970. JITTER makes both deadlines
// later by one share.
func (l *lifetime) fresh(c *command.Ctx, arg []byte) (ms int64, err error) {
	span, ok := numeral.ParseInt(arg)
	now := c.Now() / 1000
	switch {
	case l.unit == noTime:
		return 0, errFreshAlone
	case l.slide || l.spanArg != nil:
		return 0, errFreshSlides
	case !ok:
		return 0, command.ErrNotInteger
	case span <= 0:
		return 0, errFreshSpan
	}
	if l.unit == seconds || l.unit == unixSeconds {
		if span > engine.MaxDeadline/1000 {
			return 0, errFreshLate
		}
		span *= 1000
	}
	if span >= l.exact-now {
		return 0, errFreshLate
	}
	if l.deadline != l.exact {
		span = int64(float64(span) * (float64(l.deadline-now) / float64(l.exact-now)))
	}
	return min(now+span, l.deadline-1), nil
}

func errExpireTime(s *command.Spec) error {
	return command.ReplyError("ERR invalid expire time in '" + s.Name + "' command")
}

// toDeadline returns t as ms since 1970; ok is false if that does not fit.
func toDeadline(t int64, unit timeUnit, now int64) (ms int64, ok bool) {
	if unit == seconds || unit == unixSeconds {
		if t > math.MaxInt64/1000 || t < math.MinInt64/1000 {
			return 0, false
		}
		t *= 1000
	}
	if !unit.absolute() {
		if t > math.MaxInt64-now {
			return 0, false
		}
		t += now
	}
	return t, true
}
