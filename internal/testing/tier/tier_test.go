package tier

import (
	"testing"
	"time"
)

func TestTheFullTierIsAskedFor(t *testing.T) {
	t.Setenv("EBB_FULL", "")
	if !Short() {
		t.Error("without EBB_FULL the tests are the full tier")
	}
	t.Setenv("EBB_FULL", "1")
	if Short() != testing.Short() {
		t.Errorf("with EBB_FULL=1 and -short %v, Short is %v", testing.Short(), Short())
	}
}

func TestATestOfOneGoroutineIsLeftOutOfShortRaces(t *testing.T) {
	ran := false
	t.Run("sequential", func(t *testing.T) {
		Sequential(t)
		ran = true
	})
	if left := raced && testing.Short(); ran == left {
		t.Errorf("with the race detector %v and -short %v the test ran: %v", raced, testing.Short(), ran)
	}
}

func TestASlowMachineHasMorePatience(t *testing.T) {
	for text, want := range map[string]float64{"": 1, "x": 1, "0.5": 1, "1": 1, "3": 3, "2.5": 2.5} {
		t.Setenv("EBB_SLOW", text)
		if got := slow(); got != want {
			t.Errorf("EBB_SLOW=%q: %v, want %v", text, got, want)
		}
	}
}

func TestThreeWaitsEndBeforeTheLimitOfAPackage(t *testing.T) {
	for text, want := range map[string]time.Duration{"": time.Minute, "2.5": 150 * time.Second, "5": mostPatience, "1e300": mostPatience} {
		t.Setenv("EBB_SLOW", text)
		if got := patience(); got != want || 3*got >= 12*time.Minute {
			t.Errorf("EBB_SLOW=%q: %v, want %v, and three of them below 12 minutes", text, got, want)
		}
	}
}
