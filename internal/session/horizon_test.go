package session_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/testing/services"
	"github.com/ebbdb/ebb/internal/wire"
)

// The clock of these tests, us, and the limits by max-clock-ahead.
const (
	testNow   = 1_700_000_000_000_000
	testAhead = "1700003600000000"
	farAhead  = "1700003600000001"
)

// Effects whose instants and tokens are beyond the horizon are refused, and change neither the time of their
// shard nor later tokens.
func TestEffectsBeyondTheClockAreRefused(t *testing.T) {
	for _, line := range []string{
		"DQ.ADD q * p NOW 9223372036854775807", "DQ.ADD q * p NOW " + farAhead, "DQ.ADD q * p TOKEN 9223372036854775807 NOW 1700000000000000",
		"DQ.ADD q a p NOW -1", "DQ.ADD q a p NOW x",
		"DQ.STEP q TAKE a 9223372036854775807 1700000001000", "DQ.STEP q TAKE a 0 1700000001000", "DQ.STEP q LAPSE a NOW 9223372036854775807",
		"LOCK.ACQUIRE k me 1000 TOKEN 9223372036854775807 NOW 1700000000000000", "LOCK.ACQUIRE k me 1000 TOKEN 5 NOW " + farAhead,
		"LOCK.RENEW k me 5 1000 NOW " + farAhead, "SEM.ACQUIRE m me 2 1000 TOKEN 9223372036854775807 NOW 1700000000000000",
		"SEM.ACQUIRE m me 2 1000 TOKEN 5 NOW " + farAhead,
		"RL.TAKE r 1 1000 NOW " + farAhead, "RL.TAKE r 1 1000 ALGO window NOW 9223372036854775807",
		"RL.TAKE r 1 1000 ALGO log NOW -9223372036854775808",
		"RL.RESERVE r 1 1000 COST 1 TOKEN 9223372036854775807 NOW 1700000000000000", "RL.RESERVE r 1 1000 COST 1 TOKEN 5 NOW " + farAhead,
	} {
		t.Run(line, func(t *testing.T) {
			s := services.Start(t)
			replay := func(line string) error {
				return s.Replay([]engine.Effect{{Seq: 1, Args: bytes.Fields([]byte(line))}})
			}
			if strings.HasPrefix(line, "DQ.STEP") {
				if err := replay("DQ.ADD q a p NOW 1700000000000000"); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := replay(line); err == nil || !strings.Contains(err.Error(), "out of range") && !strings.Contains(err.Error(), "integer") {
					t.Fatalf("got %v", err)
				}
			}
			tx := s.DB.BeginAll(0)
			if tx.Now() != testNow {
				t.Errorf("the time is %d", tx.Now())
			}
			if a, b := tx.NextToken(), tx.NextToken(); a < testNow || b <= a || b > testNow+10 {
				t.Errorf("tokens %d, %d", a, b)
			}
			tx.Commit()
			if ahead := strings.Replace(line, farAhead, testAhead, 1); ahead != line {
				if err := replay(ahead); err != nil && !strings.Contains(err.Error(), "LOST") {
					t.Errorf("what the clock allows is refused: %v", err)
				}
			}
		})
	}
}

// max-clock-ahead sets how far ahead an effect may be.
func TestMaxClockAheadIsConfigured(t *testing.T) {
	s := services.Start(t, "--max-clock-ahead", "10")
	take := func(us string) error {
		return s.Replay([]engine.Effect{{Seq: 1, Args: bytes.Fields([]byte("RL.TAKE r 1 1000 NOW " + us))}})
	}
	if err := take("1700000010000001"); err == nil || !strings.Contains(err.Error(), "max-clock-ahead") {
		t.Errorf("got %v", err)
	}
	c := s.NewSession(nil)
	defer c.Closed(nil)
	c.Do(bytes.Fields([]byte("CONFIG SET max-clock-ahead 86400"))...)
	if err := take("1700086400000000"); err != nil {
		t.Error(err)
	}
}

// The error of a start names the file and the offset of an instant beyond the horizon. If the files
// legitimately have a later time, which --accept-clock declares, the horizon counts from the files' time.
func TestAStartNamesTheOffsetOfAnImpossibleInstant(t *testing.T) {
	for _, c := range []struct{ written, instant string }{
		{"2023-11-14", "1700003700000000"}, // an hour and more ahead of the clock
		{"2023-11-14", "9223372036854775807"},
		{"2033-11-14", "2017000000000000"}, // one changed digit, and an hour beyond the files
	} {
		f := newFileLife(t)
		f.write("SET a 1\nRL.TAKE r 1 1000 NOW 1700000000000000\n")
		before, err := os.ReadFile(f.increment())
		if err != nil {
			t.Fatal(err)
		}
		size := int64(len(before)) + f.appendTo("RL.TAKE r 1 1000 NOW "+c.instant+"\nSET b 1\n")
		f.setTime(c.written)
		f.open()
		err = f.s.Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), f.increment()) || !strings.Contains(err.Error(), "offset ") ||
			!strings.Contains(err.Error(), c.instant) {
			t.Errorf("%+v: %v (%d bytes)", c, err, size)
		}
		f.end()
	}
	f := newFileLife(t)
	f.write("RL.TAKE r 1 1000 NOW 2015000000000000\n")
	f.setTime("2033-11-14")
	f.start() // with AcceptClock
	f.end()
	f.options = append(f.options, "--max-clock-ahead", "1")
	f.setTime("2023-11-14")
	f.open()
	if err := f.s.Load(t.Context()); err == nil {
		t.Error("ten years ahead of the clock and of the files are taken")
	}
	f.end()
}

// appendTo appends commands to the increment.
func (f *fileLife) appendTo(lines string) (n int64) {
	f.t.Helper()
	out, err := os.OpenFile(f.increment(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		f.t.Fatal(err)
	}
	defer out.Close()
	for line := range strings.Lines(lines) {
		b := wire.AppendCommand(nil, strings.Fields(line)...)
		if _, err := out.Write(b); err != nil {
			f.t.Fatal(err)
		}
		n += int64(len(b))
	}
	return n
}

// setTime sets the day of the files.
func (f *fileLife) setTime(day string) {
	f.t.Helper()
	at, err := time.Parse(time.DateOnly, day)
	if err != nil {
		f.t.Fatal(err)
	}
	names, err := os.ReadDir(f.dir + "/appendonlydir")
	if err != nil {
		f.t.Fatal(err)
	}
	for _, n := range names {
		if err := os.Chtimes(f.dir+"/appendonlydir/"+n.Name(), at, at); err != nil {
			f.t.Fatal(err)
		}
	}
}
