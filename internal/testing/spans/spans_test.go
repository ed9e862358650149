package spans

import "testing"

func TestMostIn(t *testing.T) {
	for name, x := range map[string]struct {
		all  []Span
		want int
	}{
		"none":                         {nil, 0},
		"at the edges of the window":   {[]Span{{10, 10}, {0, 0}}, 2},
		"one ends behind it":           {[]Span{{0, 1}, {5, 11}, {9, 10}}, 2},
		"the most are in the middle":   {[]Span{{0, 0}, {20, 21}, {22, 23}, {24, 30}, {50, 50}}, 3},
		"one longer than the window":   {[]Span{{0, 11}}, 0},
		"a long one does not end many": {[]Span{{0, 100}, {1, 2}, {3, 4}}, 2},
	} {
		if got := MostIn(x.all, 10); got != x.want {
			t.Errorf("%s: %d, want %d", name, got, x.want)
		}
	}
}
