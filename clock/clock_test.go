package clock

import (
	"testing"
	"time"
)

// clockAt returns a clock that reads mono, 0 at first, and wall, us.
func clockAt(mono, wall *int64) *System {
	c := &System{start: time.Now(), suspend: suspended(), read: func() (int64, int64) { return *mono, *wall }}
	c.line.Store(&line{engine: *wall, check: checkEvery})
	return c
}

// However long the clock has not been looked at, engine time is the wall's: within a
// look's noise where the wall drifts as under NTP, and after a while of looks where it
// was off by more.
func TestEngineTimeFollowsADriftingWall(t *testing.T) {
	for _, ppm := range []int64{-400, -30, -1, 0, 1, 24, 300, 499} {
		wall, mono, before := int64(1e15), int64(0), int64(0)
		c := clockAt(&mono, &wall)
		pauses := []int64{100e3, 100e3, 150e3, 5e6, 100e3, 3600e6, 100e3, 120e3, 60e6, 100e3, 100e3, 100e3, 86400e6, 100e3}
		for i, pause := range pauses {
			mono += pause
			wall += pause + pause*ppm/1e6
			now := c.look()
			if now < before+pause*98/100 {
				t.Fatalf("%d ppm, look %d: engine time went from %d to %d in %d us", ppm, i, before, now, pause)
			}
			before = now
			late := wall - now // a slower wall is approached by 1 % of the time
			if limit := max(2, -ppm*pause/1e6+2); late > 2 || late < -limit && i < 2 {
				t.Errorf("%d ppm, look %d: the wall leads by %d us", ppm, i, late)
			}
		}
	}
}

// A wall clock that steps is approached by 1 %, and not beyond.
func TestAStepOfTheWallIsSlewed(t *testing.T) {
	for _, step := range []int64{-3600e6, -400e3, -10, 300e3, 3600e6} {
		wall, mono := int64(1e15), int64(0)
		c := clockAt(&mono, &wall)
		wall += step
		for range 100 {
			mono += checkEvery
			wall += checkEvery
			before, now := c.line.Load().at(mono-checkEvery), c.look()
			if d := now - before; d < checkEvery*99/100 || d > checkEvery*101/100+1 {
				t.Fatalf("step %d: engine time advanced by %d us in %d", step, d, checkEvery)
			}
		}
		lead, steps := c.Offset()
		want := step - min(max(step, -99*checkEvery/100), 99*checkEvery/100)
		if lead.Microseconds() != want || steps != b2i(step > stepSize || step < -stepSize) {
			t.Errorf("step %d: after 10 s the wall leads by %v, want %d us; %d steps", step, lead, want, steps)
		}
		// No look for an hour: the rest of the step does not grow.
		mono += 3600e6
		wall += 3600e6
		if now := c.look(); max(wall-now, now-wall) > max(want, -want) {
			t.Errorf("step %d: after an hour of sleep engine time is off by %d us, before it was %d", step, wall-now, want)
		}
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
