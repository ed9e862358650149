package servercmd

import "testing"

// The expected values are the times for which DEBUG SLEEP of redis-server 7.0.15 sleeps.
func TestALeadingNumberIsWhatCReadsOfIt(t *testing.T) {
	for text, want := range map[string]float64{
		"": 0, "x": 0, "nan": 0, "-": 0, "1": 1, "0.5": 0.5, "0.1x": 0.1, " \t0.25 s": 0.25, "1e-2": 0.01, "1e": 1, "0x1p-4": 0.0625,
		"-1z": -1, "+2": 2, "1,5": 1,
	} {
		if got := leadingNumber([]byte(text)); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
