package groupsim

import "testing"

func TestAResynchronisationIsPartialWhereTheLogIsABeginning(t *testing.T) {
	h := history{newest: 2}
	h.adopt(3, 8) // epoch 3 begins at 8
	for _, c := range []struct {
		name  string
		of    uint64 // of the other log
		end   uint64
		whole bool
	}{
		{"behind in the history before", 2, 7, true},
		{"equal in the history before", 2, 8, true},
		{"a tail that was never committed", 2, 9, false},
		{"of this history", 3, 12, true},
		{"ahead", 3, 13, false},
		{"of another history", 1, 3, false},
		{"empty", 0, 0, false},
	} {
		if got := h.begins(history{newest: c.of}, 12, c.end); got != c.whole {
			t.Errorf("%s: it is a beginning: %v, want %v", c.name, got, c.whole)
		}
	}
}
