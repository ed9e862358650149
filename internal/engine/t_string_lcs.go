package engine

// Match is a run of bytes that two strings have in common, as offsets of the
// first and the last byte in each.
type Match struct{ FirstA, LastA, FirstB, LastB int }

// Len returns the number of bytes of the run.
func (m Match) Len() int { return m.LastA - m.FirstA + 1 }

// CommonLen returns the length of the longest common subsequence of a and b in
// O(len(a) x len(b)) time and O(len(b)) memory.
func CommonLen(a, b []byte) int {
	row := make([]uint32, len(b)+1)
	for _, c := range a {
		diagonal, left := uint32(0), uint32(0)
		for j, d := range b {
			up := row[j+1]
			best := max(up, left)
			if c == d {
				best = diagonal + 1
			}
			row[j+1] = best
			diagonal, left = up, best
		}
	}
	return int(row[len(b)])
}

// Common returns the longest common subsequence of a and b and its runs, from the last to the first. Of
// several it finds the same one as Redis: walking from the end, it skips a byte of a only if that loses less.
// It takes O(len(a) x len(b)) time and the same number of bits of memory.
func Common(a, b []byte) (seq []byte, runs []Match) {
	w := (len(b) + 63) / 64
	up := make([]uint64, len(a)*w) // a bit per cell: whether skipping a byte of a loses less
	row := make([]uint32, len(b)+1)
	for i, c := range a {
		line := up[i*w : (i+1)*w]
		diagonal, left, word := uint32(0), uint32(0), uint64(0)
		for j, d := range b {
			above := row[j+1]
			word |= (uint64(left) - uint64(above)) >> 63 << (j & 63) // 1 if above > left, without a branch
			best := max(above, left)
			if c == d {
				best = diagonal + 1
			}
			row[j+1] = best
			diagonal, left = above, best
			if j&63 == 63 {
				line[j>>6], word = word, 0
			}
		}
		if len(b)&63 != 0 {
			line[w-1] = word
		}
	}
	seq = make([]byte, row[len(b)])
	k := len(seq)
	for i, j := len(a)-1, len(b)-1; k > 0; {
		switch {
		case a[i] == b[j]:
			k--
			seq[k] = a[i]
			runs = extend(runs, i, j)
			i, j = i-1, j-1
		case up[i*w+j>>6]&(1<<(j&63)) != 0:
			i--
		default:
			j--
		}
	}
	return seq, runs
}

// extend adds a pair of equal bytes to the run that begins directly after it, or starts a new run.
func extend(runs []Match, i, j int) []Match {
	if n := len(runs); n > 0 && runs[n-1].FirstA == i+1 && runs[n-1].FirstB == j+1 {
		runs[n-1].FirstA, runs[n-1].FirstB = i, j
		return runs
	}
	return append(runs, Match{i, i, j, j})
}

// LCSFits reports whether LCS may compare strings of these lengths. Four bytes for each pair of
// bytes must not exceed MaxString, which bounds the time.
func (db *DB) LCSFits(a, b int) bool {
	return (a + 1) <= db.MaxString()/4/(b+1)
}
