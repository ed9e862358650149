package geohash

import "math"

// EarthRadius is the radius, in metres, of the sphere on which distances are measured.
const EarthRadius = 6372797.560856

// degree is one degree in radians: pi is rounded before it is divided, as in
// Redis.
const degree = float64(math.Pi) / 180

// Distance returns the great-circle distance between two places, in metres, by the haversine
// formula.
func Distance(lon1, lat1, lon2, lat2 float64) float64 {
	p := newPoint(lon1, lat1)
	return p.distance(lon2, lat2)
}

// point is a place from which distances are measured.
type point struct{ lon, lat, cos float64 } // in radians, and the latitude's cosine

func newPoint(lon, lat float64) point {
	return point{lon * degree, lat * degree, cos(lat * degree)}
}

func (p *point) distance(lon, lat float64) float64 {
	v := sin((lon*degree - p.lon) / 2)
	if v == 0 {
		return EarthRadius * math.Abs(lat*degree-p.lat)
	}
	return 2 * EarthRadius * asin(math.Sqrt(p.haversine(v, lat*degree)))
}

// haversine returns the square of the sine of half the angle between p and the latitude lat
// (radians), v being the sine of half the difference in longitude. The conversions keep compilers
// from fusing operations, which would round differently from Redis.
func (p *point) haversine(v, lat float64) float64 {
	u := sin((lat - p.lat) / 2)
	return float64(u*u) + float64(float64(float64(p.cos*cos(lat))*v)*v)
}

// Shape is a circle or a box around a place. Circle and Box return one.
type Shape struct {
	point
	degLon, degLat float64
	box            bool
	radius         float64 // of a circle, in metres
	height, width  float64 // half of a box's, in metres; the radius of a circle
	limit          float64 // the haversine of a circle's rim, a little more than exact
}

// slack is a generous upper bound of the relative rounding error of a distance. Places that are
// farther out need no exact check.
const slack = 1e-9

// Circle returns the shape of all places within radius metres of a valid place.
func Circle(lon, lat, radius float64) Shape {
	s := Shape{point: newPoint(lon, lat), degLon: lon, degLat: lat, radius: radius, height: radius, width: radius}
	s.limit = 1
	if half := radius / (2 * EarthRadius); half < math.Pi/2 {
		sin := math.Sin(half) * (1 + slack)
		s.limit = sin * sin
	}
	return s
}

// Box returns the shape of all places at most width/2 metres east or west, along their own
// parallel, and height/2 metres north or south of a valid place.
func Box(lon, lat, width, height float64) Shape {
	return Shape{point: newPoint(lon, lat), degLon: lon, degLat: lat, box: true, width: width / 2, height: height / 2}
}

// Contains reports whether a place is inside the shape. If it is, Contains returns its distance
// from the centre in metres.
func (s *Shape) Contains(lon, lat float64) (distance float64, ok bool) {
	north := EarthRadius * math.Abs(lat*degree-s.lat)
	if s.box {
		return s.inBox(lon, lat, north)
	}
	if north > s.radius*(1+slack) {
		return 0, false
	}
	v := sin((lon*degree - s.lon) / 2)
	if v == 0 {
		return north, north <= s.radius
	}
	a := s.haversine(v, lat*degree)
	if a > s.limit {
		return 0, false
	}
	d := 2 * EarthRadius * asin(math.Sqrt(a))
	return d, d <= s.radius
}

func (s *Shape) inBox(lon, lat, north float64) (distance float64, ok bool) {
	if north > s.height {
		return 0, false
	}
	if Distance(lon, lat, s.degLon, lat) > s.width {
		return 0, false
	}
	return s.distance(lon, lat), true
}

// bounds returns the limits of the shape in degrees; at the poles and the date
// line they may lie beyond the map's.
func (s *Shape) bounds() (west, south, east, north float64) {
	dy := s.height / EarthRadius / degree
	wide := s.degLat + dy // a parallel is shortest, in metres, at the end nearer to a pole
	if s.degLat < 0 {
		wide = s.degLat - dy
	}
	dx := s.width / EarthRadius / math.Cos(wide*degree) / degree
	return s.degLon - dx, s.degLat - dy, s.degLon + dx, s.degLat + dy
}

// reach returns the radius in metres of the circle around the shape.
func (s *Shape) reach() float64 {
	if s.box {
		return math.Sqrt(float64(s.width*s.width) + float64(s.height*s.height))
	}
	return s.radius
}
