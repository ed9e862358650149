package geohash

// Span is the range of scores from Min to below Max.
type Span struct{ Min, Max uint64 }

// MaxSpans is the greatest number of spans that Cover returns.
const MaxSpans = 9

// around lists a cell and its neighbours in the order of the search: north, south, east, west, and
// the corners.
var around = [MaxSpans]struct{ dx, dy int }{{0, 0}, {0, 1}, {0, -1}, {1, 0}, {-1, 0}, {1, 1}, {-1, 1}, {1, -1}, {-1, -1}}

// Cover appends to dst up to MaxSpans spans that contain all scores in the shape: the cell of its
// centre, and the neighbours into which the shape may reach. The grid is as fine as possible. The
// spans are in the order in which Redis searches them, and do not overlap.
func (s *Shape) Cover(dst []Span) []Span {
	west, south, east, north := s.bounds()
	step := steps(s.reach(), s.degLat)
	mid := cellOf(s.degLon, s.degLat, step)
	if step > 1 && !mid.reaches(west, south, east, north) {
		step--
		mid = cellOf(s.degLon, s.degLat, step)
	}
	w, b, e, t := mid.edges()
	var last cell
	for i, d := range around {
		useless := step >= 2 && (d.dy < 0 && b < south || d.dy > 0 && t > north || d.dx < 0 && w < west || d.dx > 0 && e > east)
		if useless {
			continue
		}
		c := mid
		if i > 0 {
			c = mid.move(d.dx, d.dy)
		}
		// In a grid of two columns, both neighbours are the same cell.
		if c == last {
			continue
		}
		if i > 0 {
			last = c
		}
		dst = append(dst, c.span())
	}
	return dst
}

// span returns the range of scores of a cell.
func (c cell) span() Span {
	shift := 2 * (MaxStep - c.step)
	return Span{c.bits << shift, (c.bits + 1) << shift}
}

// reaches reports whether the cell and its neighbours contain the bounds.
func (c cell) reaches(west, south, east, north float64) bool {
	_, _, _, n := c.move(0, 1).edges()
	_, s, _, _ := c.move(0, -1).edges()
	_, _, e, _ := c.move(1, 0).edges()
	w, _, _, _ := c.move(-1, 0).edges()
	return n >= north && s <= south && e >= east && w <= west
}

// steps returns the finest grid, in bits per coordinate, in which a cell and its neighbours contain
// a circle at a latitude. Near the poles, where meridians are close together, cells must be larger.
func steps(radius, lat float64) int {
	const halfEquator = 20037726.37 // metres, in the projection
	if radius == 0 {
		return MaxStep
	}
	step := -1
	for ; radius < halfEquator; radius *= 2 {
		step++
	}
	if lat > 66 || lat < -66 {
		step--
		if lat > 80 || lat < -80 {
			step--
		}
	}
	return min(max(step, 1), MaxStep)
}
