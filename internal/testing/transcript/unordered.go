package transcript

import (
	"regexp"
	"slices"
	"strings"
)

var index = regexp.MustCompile(`^ *[0-9]+([)~#]) `)

// sameElements compares two printed aggregates whose elements have no order. An
// element begins at a number that is not indented further than the first.
func sameElements(want, got []string) bool {
	a, b := elements(want), elements(got)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func elements(lines []string) (all []string) {
	if len(lines) == 0 {
		return nil
	}
	width := len(index.FindString(lines[0]))
	for _, line := range lines {
		head := index.FindString(line)
		if len(all) > 0 && (head == "" || len(head) != width) {
			all[len(all)-1] += "\n" + strings.TrimLeft(line, " ")
			continue
		}
		all = append(all, line[len(head):])
	}
	return all
}
