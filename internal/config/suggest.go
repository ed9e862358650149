package config

// nearest returns the directive whose name differs from name in the fewest letters, "" if
// all differ in more than a third of them and in more than two: two swapped letters are
// two differences. It runs once, before an error.
func nearest(name string) string {
	if len(name) < 3 || len(name) > 64 {
		return ""
	}
	best, distance := "", max(2, len(name)/3)+1
	for _, d := range directives {
		for _, known := range []string{d.Name, d.Alias} {
			if known == "" || d.Hidden {
				continue
			}
			if n := edits(name, known); n < distance {
				best, distance = known, n
			}
		}
	}
	return best
}

// edits returns the Levenshtein distance: insertions, deletions and replacements that turn
// a into b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
