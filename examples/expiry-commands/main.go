// Command expiry-commands is the desk of a lending library: a loan is a key, its
// due date the key's deadline, and each expiry command is something that readers ask
// for. At the end a book is put aside, for a moment short enough to wait for.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

const day = 24 * time.Hour

// desk runs commands and prints them, with the time that is left of the loan.
type desk struct {
	c *ebb.Conn
	w io.Writer
}

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	d := desk{c, w}
	now, err := d.time(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "The library's clock, TIME: %s\n", now.UTC().Format(time.DateTime+".000"))
	year := now.Add(365 * day).Truncate(time.Second)
	for _, step := range []struct {
		why string
		cmd string // fill replaces the braces: {28d,s} is a duration of 28 days in seconds, {year} an instant
	}{
		{"A book goes out for 28 days.", "SET loan:atlas ann EX {28d,s}"},
		{"The same in two steps, and the second in milliseconds.", "SET loan:atlas ann"},
		{"", "EXPIRE loan:atlas {28d,s}"},
		{"", "PEXPIRE loan:atlas {28d}"},
		{"How long has she got? In seconds, in ms, and until when.", "TTL loan:atlas"},
		{"", "PTTL loan:atlas"},
		{"", "PEXPIRETIME loan:atlas"},
		{"", "EXPIRETIME loan:atlas"},
		{"A note on the loan: SET takes the deadline away, KEEPTTL keeps it.", "SET loan:atlas ann,damaged KEEPTTL"},
		{"Renewed for 56 days, which may only make it longer ...", "PEXPIRE loan:atlas {56d} GT"},
		{"", "PEXPIRE loan:atlas {7d} GT"},
		{"... and recalled: in 7 days, if it would be longer.", "PEXPIRE loan:atlas {7d} LT"},
		{"", "PEXPIRE loan:atlas {14d} LT"},
		{"A date only for loans that have none, and only for those that have one.", "PEXPIRE loan:atlas {99d} NX"},
		{"", "PEXPIRE loan:atlas {10d} XX"},
		{"A reader who looks at it keeps it for 14 days from now.", "GETEX loan:atlas PX {14d}"},
		{"It is given to the reading room for good.", "PERSIST loan:atlas"},
		{"", "PTTL loan:atlas"},
		{"Nothing is longer than for ever, so GT refuses; LT does not.", "PEXPIRE loan:atlas {28d} GT"},
		{"", "PEXPIRE loan:atlas {28d} LT"},
		{"Everything is due at the end of the year: an instant, not a span.", "PEXPIREAT loan:atlas {year}"},
		{"The same in seconds.", "EXPIREAT loan:atlas {year,s}"},
		{"SET takes an instant too, or a span. SETEX and PSETEX are older words for it.", "SET loan:novel bob PXAT {year}"},
		{"", "SET loan:novel bob EXAT {year,s}"},
		{"", "SET loan:novel bob EX {3d,s}"},
		{"", "SETEX loan:novel {3d,s} bob"},
		{"", "PSETEX loan:novel {3d} bob"},
		{"A date in the past is a return: the key is deleted.", "PEXPIRE loan:atlas -1"},
		{"", "PTTL loan:atlas"},
	} {
		if step.why != "" {
			fmt.Fprintf(w, "%s\n", step.why)
		}
		if err := d.do(ctx, fill(step.cmd, year)); err != nil {
			return err
		}
	}
	return d.aside(ctx)
}

// fill replaces the spans and instants of a command.
func fill(cmd string, year time.Time) []any {
	var args []any
	for _, word := range strings.Fields(cmd) {
		var days int64
		_, _ = fmt.Sscanf(word, "{%d", &days)
		switch {
		case strings.HasSuffix(word, "d}"):
			args = append(args, days*day.Milliseconds())
		case strings.HasSuffix(word, "d,s}"):
			args = append(args, days*int64(day/time.Second))
		case word == "{year}":
			args = append(args, year.UnixMilli())
		case word == "{year,s}":
			args = append(args, year.Unix())
		case word == "{3d,s}":
			args = append(args, 3600)
		default:
			args = append(args, word)
		}
	}
	return args
}

// time requests the server's time: the server's clock decides what has expired.
func (d desk) time(ctx context.Context) (time.Time, error) {
	v, err := d.c.Do(ctx, "TIME")
	if err != nil {
		return time.Time{}, err
	}
	var part [2]int64
	for i, e := range v.Elems {
		if part[i], err = e.AsInt(); err != nil {
			return time.Time{}, err
		}
	}
	return time.Unix(part[0], part[1]*1000), nil
}

// do runs a command, and prints its reply and the time that is left.
func (d desk) do(ctx context.Context, args []any) error {
	v, err := d.c.Do(ctx, args...)
	if err != nil {
		return err
	}
	left, err := d.c.TTL(ctx, args[1].(string))
	var date string
	switch {
	case err == ebb.ErrNil:
		date = "no such loan"
	case err != nil:
		return err
	case left == ebb.Forever:
		date = "for ever"
	case left < time.Second:
		date = fmt.Sprintf("%d ms", left.Milliseconds())
	default:
		date = fmt.Sprintf("%d days", (left+day/2)/day)
	}
	cmd, reply := strings.TrimSuffix(fmt.Sprintln(args...), "\n"), v.String()
	if v.IsNull() {
		reply = "(nil)"
	}
	fmt.Fprintf(d.w, "  > %-39s %-14s left: %s\n", cmd, reply, date)
	return nil
}

// aside puts a book aside, and reads it before and after its deadline.
func (d desk) aside(ctx context.Context) error {
	fmt.Fprintln(d.w, "A book is put aside for 300 ms. 100 ms pass, and another 250:")
	if err := d.do(ctx, []any{"SET", "aside:poems", "carol", "PX", 300}); err != nil {
		return err
	}
	for _, pause := range []time.Duration{100 * time.Millisecond, 250 * time.Millisecond} {
		if err := example.Sleep(ctx, pause); err != nil {
			return err
		}
		if err := d.do(ctx, []any{"GET", "aside:poems"}); err != nil {
			return err
		}
	}
	_, err := d.c.Del(ctx, "loan:atlas", "loan:novel")
	return err
}
