package geohash

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactSin is the sine of x by its series, with 200 bits.
func exactSin(x *big.Float) *big.Float {
	sum, term, sq := newBig(), newBig().Set(x), newBig().Mul(x, x)
	for n := int64(1); n < 80; n += 2 {
		sum.Add(sum, term)
		term.Mul(term, sq)
		term.Quo(term, newBig().SetInt64(-(n+1)*(n+2)))
	}
	return sum
}

func newBig() *big.Float { return new(big.Float).SetPrec(200) }

// off returns by how many units in the last place got misses want.
func off(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	ulp := math.Nextafter(math.Abs(w), math.Inf(1)) - math.Abs(w)
	d, _ := newBig().Sub(newBig().SetFloat64(got), want).Float64()
	return math.Abs(d) / ulp
}

func TestSinesAreRoundedRightlyButForOneInAHundred(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	half := newBig()
	half.SetString("1.5707963267948966192313216916397514420985846996875529104874722961")
	wrong := 0
	const n = 4000
	for i := range n {
		x := (rng.Float64()*2 - 1) * math.Pi
		if i%4 == 0 {
			x *= 1e-6
		}
		if e := off(sin(x), exactSin(newBig().SetFloat64(x))); e > 0.51 {
			t.Fatalf("sin %v is off by %v", x, e)
		} else if e > 0.5 {
			wrong++
		}
		x /= 2
		if e := off(cos(x), exactSin(newBig().Sub(half, newBig().SetFloat64(math.Abs(x))))); e > 0.51 {
			t.Fatalf("cos %v is off by %v", x, e)
		}
		y := math.Abs(sin(x))
		// asin is right if sin(asin y + e) = y: e = (y - sin a) / cos a.
		a := newBig().SetFloat64(asin(y))
		e := newBig().Sub(newBig().SetFloat64(y), exactSin(a))
		e.Quo(e, exactSin(newBig().Sub(half, a)))
		if e := off(asin(y), newBig().Add(a, e)); e > 0.52 {
			t.Fatalf("asin %v is off by %v", y, e)
		}
	}
	if wrong > n/100 {
		t.Errorf("%d of %d sines are wrong in the last place", wrong, n)
	}
}

func TestAPlaceComesBackFromItsScore(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 10000 {
		lon, lat := (rng.Float64()*2-1)*180, (rng.Float64()*2-1)*MaxLat
		x, y := Decode(Encode(lon, lat))
		if d := Distance(lon, lat, x, y); d > 0.5 {
			t.Fatalf("%v %v comes back %v m away", lon, lat, d)
		}
	}
}

func TestNeighboursTouch(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 10000 {
		step := 2 + rng.IntN(MaxStep-1)
		c := cell{rng.Uint64N(1 << (2 * step)), step}
		w, s, e, n := c.edges()
		if got, _, _, _ := c.move(1, 0).edges(); got != e && got != MinLon {
			t.Fatalf("east of %v: %v", c, got)
		}
		if _, got, _, _ := c.move(0, 1).edges(); got != n && got != MinLat {
			t.Fatalf("north of %v: %v", c, got)
		}
		if c.move(1, 1).move(-1, -1) != c || c.move(-1, 1).move(1, -1) != c {
			t.Fatalf("there and back from %v", c)
		}
		_, _ = w, s
	}
}

// What a shape contains lies in its spans.
func TestACoverHoldsTheShape(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	inside := 0
	for range 2000 {
		lon, lat := (rng.Float64()*2-1)*170, (rng.Float64()*2-1)*80
		size := math.Exp(rng.Float64() * 13)
		shape := Circle(lon, lat, size)
		if rng.IntN(2) == 0 {
			shape = Box(lon, lat, size, size*rng.Float64()*2)
		}
		spans := shape.Cover(nil)
		for range 50 {
			d := size / EarthRadius / degree
			score := Encode(min(max(lon+(rng.Float64()*2-1)*d/cos(lat*degree), -180), 180), min(max(lat+(rng.Float64()*2-1)*d, MinLat), MaxLat))
			if _, ok := shape.Contains(Decode(score)); !ok {
				continue
			}
			inside++
			found := 0
			for _, s := range spans {
				if score >= s.Min && score < s.Max {
					found++
				}
			}
			if found != 1 {
				t.Fatalf("a place in %v lies in %d spans", shape, found)
			}
		}
	}
	if inside < 1000 {
		t.Errorf("only %d places inside", inside)
	}
}

func TestSearchingAllocatesNothing(t *testing.T) {
	var spans [MaxSpans]Span
	var buf [32]byte
	if n := testing.AllocsPerRun(100, func() {
		s := Circle(13.4, 52.5, 3000)
		for _, sp := range s.Cover(spans[:0]) {
			d, _ := s.Contains(Decode(sp.Min))
			AppendDistance(buf[:0], d)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkContains(b *testing.B) {
	s := Circle(13.4, 52.5, 3000)
	from, n := Encode(13.42, 52.49), uint64(0)
	for b.Loop() {
		n++
		s.Contains(Decode(from + n&0xffff))
	}
}
