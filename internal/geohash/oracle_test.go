package geohash_test

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/ebbdb/ebb/internal/geohash"
	"github.com/ebbdb/ebb/internal/numeral"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// oracle is a real redis-server.
type oracle struct {
	t testing.TB
	c net.Conn
	r *bufio.Reader
}

func newOracle(t testing.TB) *oracle {
	c, err := net.Dial("tcp", realserver.Start(t, "redis-server"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &oracle{t, c, bufio.NewReader(c)}
}

func (o *oracle) ask(args ...string) resp.Value {
	o.t.Helper()
	if _, err := o.c.Write(wire.AppendCommand(nil, args...)); err != nil {
		o.t.Fatal(err)
	}
	v, err := wire.ReadValue(o.r)
	if err != nil {
		o.t.Fatal(err)
	}
	return v
}

// place is a member of the geo set under test.
type place struct {
	name  string
	score uint64
}

// world is places in a few clusters, at the poles, on the date line, and all
// over, in the order of their scores, as redis-server stores them.
func world(o *oracle, rng *rand.Rand, n int) []place {
	args := []string{"GEOADD", "g"}
	all := make([]place, n)
	for i := range all {
		lon, lat := somewhere(rng)
		all[i] = place{fmt.Sprintf("m%05d", i), geohash.Encode(lon, lat)}
		args = append(args, float(lon), float(lat), all[i].name)
	}
	if v := o.ask(args...); v.Int != int64(n) {
		o.t.Fatalf("GEOADD: %v", v)
	}
	slices.SortFunc(all, func(a, b place) int {
		if a.score != b.score {
			return int(int64(a.score - b.score))
		}
		return slices.Compare([]byte(a.name), []byte(b.name))
	})
	return all
}

func somewhere(rng *rand.Rand) (lon, lat float64) {
	near := func(at, by float64) float64 { return at + (rng.Float64()*2-1)*by }
	switch rng.IntN(6) {
	case 0: // a town
		return near(13.4, 0.2), near(52.5, 0.1)
	case 1: // the date line
		lon = near(180, 3)
		if lon > 180 {
			lon -= 360
		}
		return lon, near(0, 80)
	case 2: // the poles, as far as the map goes
		lat = near(84, 1)
		if rng.IntN(2) == 0 {
			lat = -lat
		}
		return near(0, 180), lat
	case 3: // corners and edges
		return []float64{-180, 180, 0, 90}[rng.IntN(4)], []float64{geohash.MinLat, geohash.MaxLat, 0, -45}[rng.IntN(4)]
	}
	return near(0, 180), near(0, 85)
}

func float(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func TestScoresAndHashesAreRedis(t *testing.T) {
	o := newOracle(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range world(o, rng, 3000) {
		if got := o.ask("ZSCORE", "g", p.name); got.Str != string(numeral.AppendDouble(nil, float64(p.score))) {
			t.Fatalf("%s: score %d, redis %s", p.name, p.score, got.Str)
		}
		if got := o.ask("GEOHASH", "g", p.name).Elems[0].Str; got != string(geohash.AppendString(nil, p.score)) {
			t.Fatalf("%s: hash %s, redis %s", p.name, geohash.AppendString(nil, p.score), got)
		}
		lon, lat := geohash.Decode(uint64(float64(p.score)))
		pos := o.ask("GEOPOS", "g", p.name).Elems[0].Elems
		if x, y := parse(pos[0].Str), parse(pos[1].Str); math.Abs(x-lon) > 1e-17 || math.Abs(y-lat) > 1e-17 { // 17 digits behind the point
			t.Fatalf("%s: at %v %v, redis %v %v", p.name, lon, lat, x, y)
		}
	}
}

func parse(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64)
	return f
}

// The same members, in the same order, which is that of the spans, at the same
// distances.
func TestSearchesAreRedis(t *testing.T) {
	o := newOracle(t)
	rng := rand.New(rand.NewPCG(3, 4))
	all := world(o, rng, 5000)
	hits := 0
	for range 1000 {
		lon, lat := somewhere(rng)
		from := []string{"GEOSEARCH", "g", "FROMLONLAT", float(lon), float(lat)}
		size := func() float64 { // from a metre to more than the earth
			return float64(int64(1)<<rng.IntN(26)) * (1 + rng.Float64())
		}
		w, h := size(), size()
		if rng.IntN(20) == 0 {
			w = 0
		}
		shape := geohash.Circle(lon, lat, w)
		by := []string{"BYRADIUS", float(w), "m", "WITHDIST"}
		if rng.IntN(2) == 0 {
			shape = geohash.Box(lon, lat, w, h)
			by = []string{"BYBOX", float(w), float(h), "m", "WITHDIST"}
		}
		var got []string
		for _, span := range shape.Cover(nil) {
			for _, p := range all {
				if s := uint64(float64(p.score)); s >= span.Min && s < span.Max {
					if d, ok := shape.Contains(geohash.Decode(s)); ok {
						got = append(got, p.name+" "+string(geohash.AppendDistance(nil, d)))
					}
				}
			}
		}
		var want []string
		for _, e := range o.ask(append(from, by...)...).Elems {
			want = append(want, e.Elems[0].Str+" "+e.Elems[1].Str)
		}
		if hits += len(got); !slices.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("%v %v: %d and %d, differing from %d on\n ours  %.300q\n redis %.300q", from, by, len(got), len(want), at, got[at:], want[at:])
		}
	}
	if hits < 3000 {
		t.Errorf("only %d hits", hits)
	}
}

// How often the last bit of a distance differs from that of the C library.
func TestDistancesAreWithinAUnitInTheLastPlace(t *testing.T) {
	o := newOracle(t)
	rng := rand.New(rand.NewPCG(5, 6))
	world(o, rng, 5000)
	o.ask("GEOSEARCHSTORE", "d", "g", "FROMLONLAT", "13", "52", "BYRADIUS", "20000", "km", "STOREDIST")
	same, all := 0, 0
	for _, m := range o.ask("ZRANGE", "g", "0", "-1").Elems {
		want := o.ask("ZSCORE", "d", m.Str)
		if want.IsNull() {
			continue
		}
		lon, lat := geohash.Decode(uint64(parse(o.ask("ZSCORE", "g", m.Str).Str)))
		all++
		if got := geohash.Distance(13, 52, lon, lat) / 1000; got == parse(want.Str) {
			same++
		} else if e := got/parse(want.Str) - 1; e > 1e-15 || e < -1e-15 {
			t.Errorf("%s: %v, redis %s", m.Str, got, want.Str)
		}
	}
	t.Logf("%d of %d are the same to the last bit", same, all)
}
