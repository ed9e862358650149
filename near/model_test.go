package near

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/draw"
)

// apart is the length of a great circle, on the sphere that Redis takes the earth for.
func apart(a, b Point) float64 {
	rad := func(deg float64) float64 { return deg * math.Pi / 180 }
	u, v := math.Sin(rad(b.Lat-a.Lat)/2), math.Sin(rad(b.Lon-a.Lon)/2)
	return 2 * 6372797.560856 * math.Asin(math.Sqrt(u*u+math.Cos(rad(a.Lat))*math.Cos(rad(b.Lat))*v*v))
}

// TestModel compares both ways with a Go map, a clock and a formula, in virtual time.
func TestModel(t *testing.T) {
	for _, scripts := range []bool{false, true} {
		t.Run(fmt.Sprint("scripts=", scripts), func(t *testing.T) {
			b := ebbtest.Run(t)
			n := 0
			draw.Check(t, func(rt *rapid.T) {
				n++
				x, err := New(b.Conn, fmt.Sprint("x", n))
				if err != nil {
					rt.Fatal(err)
				}
				x.scripts = scripts
				model(rt, b, x)
			})
		})
	}
}

func model(t *rapid.T, b *ebbtest.Backend, x *Index) {
	type placed struct {
		Point
		deadline int64 // ms of the model, 0: none
	}
	ctx := context.Background()
	members, now := map[string]placed{}, int64(0)
	name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	ttls := rapid.SampledFrom([]time.Duration{0, 10 * time.Millisecond, 40 * time.Millisecond})
	place := rapid.Custom(func(t *rapid.T) Point {
		return Point{rapid.Float64Range(-170, 170).Draw(t, "lon"), rapid.Float64Range(-80, 80).Draw(t, "lat")}
	})
	t.Repeat(map[string]func(*rapid.T){
		"pass": func(t *rapid.T) {
			d := rapid.IntRange(1, 30).Draw(t, "ms")
			b.Clock.Advance(time.Duration(d) * time.Millisecond)
			now += int64(d)
			for m, p := range members {
				if p.deadline != 0 && now > p.deadline {
					delete(members, m)
				}
			}
		},
		"place": func(t *rapid.T) {
			m, p, ttl := name.Draw(t, "member"), place.Draw(t, "place"), ttls.Draw(t, "ttl")
			if err := x.Place(ctx, m, p.Lon, p.Lat, ttl); err != nil {
				t.Fatal(err)
			}
			var deadline int64
			if ttl > 0 {
				deadline = now + ttl.Milliseconds()
			}
			members[m] = placed{p, deadline}
		},
		"remove": func(t *rapid.T) {
			m := name.Draw(t, "member")
			_, there := members[m]
			if n, err := x.Remove(ctx, m); (n == 1) != there || err != nil {
				t.Fatal(n, err, there)
			}
			delete(members, m)
		},
		"nearest": func(t *rapid.T) {
			at, n := place.Draw(t, "at"), rapid.IntRange(1, 6).Draw(t, "n")
			found, err := x.Nearest(ctx, at.Lon, at.Lat, n, 3000*Kilometer)
			if err != nil {
				t.Fatal(err)
			}
			sure, perhaps := 0, 0
			for _, p := range members {
				d := apart(at, p.Point)
				if d < 2_999_000 {
					sure++
				}
				if d < 3_001_000 {
					perhaps++
				}
			}
			if len(found) < min(n, sure) || len(found) > min(n, perhaps) {
				t.Fatalf("%d found, want %d to %d", len(found), min(n, sure), min(n, perhaps))
			}
			for i, f := range found {
				p, there := members[f.Member]
				if !there || math.Abs(float64(f.Distance)-apart(at, p.Point)) > 10 || i > 0 && f.Distance < found[i-1].Distance {
					t.Fatalf("%+v, want %+v %v", found, p, there)
				}
			}
		},
		"": func(t *rapid.T) {
			if n, err := x.Len(ctx); int(n) != len(members) || err != nil {
				t.Fatal(n, err)
			}
			for m, p := range members {
				want := ebb.Forever
				if p.deadline != 0 {
					want = time.Duration(p.deadline-now) * time.Millisecond
				}
				if d, ok, err := x.TTL(ctx, m); d != want || !ok || err != nil {
					t.Fatal(m, d, ok, err, want)
				}
				if at, ok, err := x.Position(ctx, m); !ok || err != nil || apart(at, p.Point) > 2 {
					t.Fatal(m, at, ok, err, p)
				}
			}
		},
	})
}
