package geohash

import "math"

// Distances are shown with four digits behind the point, and stored with all of
// theirs. So that they are the same as from a C library, whose functions are
// wrong in the last place of one result in twenty at most, these are wrong in
// one of a hundred; those of package math are in one of five.

// pi as a sum of two float64.
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

// sinPair returns sin(x+e), x from 0 to pi/2 and e below its last place, as a
// sum good to about 66 bits: by the sine and cosine of the nearest 64th of x,
// and the series of what is left, which is at most 1/128.
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

// asin returns the arcsine of y, 0 to 1; of what rounding has put above it, that
// of 1.
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

// asinPair is package math's arcsine with a step of Newton's behind it.
func asinPair(y float64) (hi, low float64) {
	hi = math.Asin(y)
	s, t := sinPair(hi, 0)
	return hi, ((y - s) - t) / math.Sqrt(1-y*y)
}
