package geohash

import (
	"math"
	"math/rand/v2"
	"testing"
)

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
			score := Encode(min(max(lon+(rng.Float64()*2-1)*d/math.Cos(lat*degree), -180), 180),
				min(max(lat+(rng.Float64()*2-1)*d, MinLat), MaxLat))
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
