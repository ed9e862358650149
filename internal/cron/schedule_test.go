package cron

import (
	"errors"
	"testing"
)

// TestScheduleOfAnUnknownZoneLooksForIt loads a schedule that a machine with another table of zones has accepted: its
// known occurrence runs, then it looks for the zone once a minute, and what it finds after that is due at its times.
func TestScheduleOfAnUnknownZoneLooksForIt(t *testing.T) {
	const noon = int64(1_700_049_600_000)
	s := &Schedule{Name: []byte("n"), Next: noon, Rule: Rule{Cron: "0 12 * * *", Zone: "Mars/Olympus", Until: noon + 10*lookSpan}}
	if err := s.Parse(); !errors.Is(err, ErrZone) {
		t.Fatal(err)
	}
	if err := s.Load(); err != nil || !s.Parsed() {
		t.Fatal(err, s.Parsed())
	}
	o := s.Tick(noon+2500, false)
	if want := (Occurrence{Due: noon, Next: noon + 2000 + lookSpan + lookMark}); o != want {
		t.Fatal(o, want)
	}
	if busy := s.Tick(noon+2500, true); busy.Due != 0 || busy.Skipped != 1 {
		t.Fatal(busy)
	}
	s = s.Ticked(o)
	o = s.Tick(s.Next, false)
	if want := (Occurrence{Next: s.Next - lookMark + lookSpan + lookMark}); o != want {
		t.Fatal(o, want)
	}
	if end := s.Tick(noon+10*lookSpan, false); end != (Occurrence{}) {
		t.Fatal("it looks for the zone after its end:", end)
	}

	s = s.Ticked(o)
	s.Zone, s.Until = "Europe/Berlin", 0 // the table has the zone: 12:00 there is 11:00 UTC
	s = s.Ticked(o)
	const day, eleven = int64(86_400_000), noon - 3_600_000
	if o = s.Tick(o.Next, false); o != (Occurrence{Next: eleven + day}) {
		t.Fatal(o, eleven+day)
	}
	if o = s.Tick(eleven+3*day+5, false); o != (Occurrence{Due: eleven + 3*day, Next: eleven + 4*day, Skipped: 2}) {
		t.Fatal(o)
	}
}

// TestLoadRefusesAnExpression says that Load forgives an unknown zone only.
func TestLoadRefusesAnExpression(t *testing.T) {
	s := &Schedule{Rule: Rule{Cron: "61 * * * *", Zone: "Mars/Olympus"}}
	if err := s.Load(); err == nil || s.Parsed() {
		t.Fatal(err, s.Parsed())
	}
}
