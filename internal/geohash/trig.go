package geohash

import "math"

// Replies show distances with four digits after the point, and GEOSEARCHSTORE stores them with all
// digits. They should equal those of a C library, whose functions are wrong in the last digit of at
// most one result in twenty. The functions below are wrong in one of a hundred, and those of
// package math in one of five.

// pi and piLow are pi as a sum of two float64.
const (
	pi    = float64(math.Pi)
	piLow = 1.2246467991473532e-16
)

// sin returns the sine of x, -pi to pi.
func sin(x float64) float64 {
	a, e := math.Abs(x), 0.0
	if a > pi/2 {
		a, e = pi-a, piLow
	}
	hi, low := sinPair(a, e)
	return math.Copysign(hi+low, x)
}

// cos returns the cosine of x, -pi/2 to pi/2.
func cos(x float64) float64 {
	x = math.Abs(x)
	y := pi/2 - x
	hi, low := sinPair(y, (pi/2-y)-x+piLow/2)
	return hi + low
}

// sinPair returns sin(x+e), x from 0 to pi/2 and e below its last place, as a sum that is exact to
// about 66 bits. It uses the sine and cosine of the nearest 64th of x, and the series of the
// remainder, which is at most 1/128.
func sinPair(x, e float64) (hi, low float64) {
	k := int(x*64 + 0.5)
	t := &sines[k]
	r := x - float64(k)/64
	z := r * r
	sinLess := r * z * (-1.0/6 + z*(1.0/120-z/5040)) // sin r - r
	cosLess := z * (-1.0/2 + z*(1.0/24-z/720))       // cos r - 1
	h := t.cos * r
	low = math.FMA(t.cos, r, -h) + t.sinLow + t.cosLow*r + t.sin*cosLess + t.cos*(sinLess+e)
	hi = t.sin + h
	return hi, h - (hi - t.sin) + low
}

// asin returns the arcsine of y, 0 to 1. It treats a y above 1, which rounding may give, as 1.
func asin(y float64) float64 {
	if y <= 0.75 {
		hi, low := asinPair(y)
		return hi + low
	}
	v := max(1-y, 0) / 2
	s := math.Sqrt(v)
	if s == 0 {
		return pi / 2
	}
	a, b := asinPair(s) // asin y = pi/2 - 2 asin s
	b += math.FMA(-s, s, v) / (2 * s) / math.Sqrt(1-v)
	hi := pi/2 - 2*a
	return hi + ((pi/2 - hi) - 2*a + (piLow/2 - 2*b))
}

// asinPair returns the arcsine of package math, improved by one step of Newton's method.
func asinPair(y float64) (hi, low float64) {
	hi = math.Asin(y)
	s, t := sinPair(hi, 0)
	return hi, ((y - s) - t) / math.Sqrt(1-y*y)
}
