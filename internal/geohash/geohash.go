// Package geohash encodes coordinates as numbers, so that close places mostly have close numbers.
// It searches circles and boxes as ranges of such numbers.
//
//	longitude ──> 26 bits ─┐                52 bits, an exact float64:
//	                       ├─ interleaved ─> the score of a geo set's member
//	latitude  ──> 26 bits ─┘
//
//	Shape ─ Cover ──> up to 9 Spans of scores (a cell and its neighbours)
//	                     └─ each score in them ─ Shape.Contains ─> distance
//
// The numbers are those of Redis, so that scores and the order of results are the same: latitudes
// end at the limits of the web Mercator projection, and the earth is a sphere. Decode returns a
// place within 0.3 m of the encoded one.
//
// All functions are pure arithmetic. Start reading at Encode, then Shape.Cover.
package geohash

// These are the limits of the coordinates, in degrees: EPSG:900913.
const (
	MinLon = -180.0
	MaxLon = 180.0
	MinLat = -85.05112878
	MaxLat = 85.05112878
)

// MaxStep is the number of bits of each coordinate in a score: a float64 represents twice 26 bits
// exactly.
const MaxStep = 26

// Valid reports whether Encode accepts the coordinates. It does not accept NaN.
func Valid(lon, lat float64) bool {
	return lon >= MinLon && lon <= MaxLon && lat >= MinLat && lat <= MaxLat
}

// Encode returns the score of a valid place: 52 bits.
func Encode(lon, lat float64) uint64 {
	return cellOf(lon, lat, MaxStep).bits
}

// Decode returns the centre of the cell of a score, clamped to the limits of the map.
func Decode(score uint64) (lon, lat float64) {
	return middle(score, MinLat, MaxLat)
}

// middle is Decode for a given range of latitudes.
func middle(score uint64, minLat, maxLat float64) (lon, lat float64) {
	y, x := squash(score), squash(score>>1)
	const cells = 1 << MaxStep
	lon0 := MinLon + float64(float64(x)/cells*(MaxLon-MinLon))
	lon1 := MinLon + float64(float64(x+1)/cells*(MaxLon-MinLon))
	lat0 := minLat + float64(float64(y)/cells*(maxLat-minLat))
	lat1 := minLat + float64(float64(y+1)/cells*(maxLat-minLat))
	lon, lat = (lon0+lon1)/2, (lat0+lat1)/2
	return min(max(lon, MinLon), MaxLon), min(max(lat, minLat), maxLat)
}

// alphabet has the base-32 digits of geohash.org.
const alphabet = "0123456789bcdefghjkmnpqrstuvwxyz"

// AppendString appends the 11 characters of a score's standard geohash, which
// counts latitudes from -90 to 90. The 52 bits fill ten of them; the last is 0.
func AppendString(dst []byte, score uint64) []byte {
	lon, lat := Decode(score)
	bits := spread(offset(lon, MinLon, MaxLon, MaxStep))<<1 | spread(offset(lat, -90, 90, MaxStep))
	for i := 47; i > 0; i -= 5 {
		dst = append(dst, alphabet[bits>>i&31])
	}
	return append(dst, alphabet[0])
}

// cell is a rectangle of the grid that has 2^step columns and rows: the lower 2*step bits select
// the cell, with the row's bits at the even positions.
type cell struct {
	bits uint64
	step int // 0: no cell
}

func cellOf(lon, lat float64, step int) cell {
	x, y := offset(lon, MinLon, MaxLon, step), offset(lat, MinLat, MaxLat, step)
	return cell{spread(x)<<1 | spread(y), step}
}

// offset returns in which of the 2^step parts of a range v lies. The upper limit itself is in a
// part after the last one, whose number has one bit more. Redis's scores are the same.
func offset(v, lo, hi float64, step int) uint32 {
	return uint32((v - lo) / (hi - lo) * float64(uint64(1)<<step))
}

// edges returns the limits of a cell in degrees.
func (c cell) edges() (west, south, east, north float64) {
	y, x, n := squash(c.bits), squash(c.bits>>1), float64(uint64(1)<<c.step)
	west = MinLon + float64(float64(x)/n*(MaxLon-MinLon))
	east = MinLon + float64(float64(x+1)/n*(MaxLon-MinLon))
	south = MinLat + float64(float64(y)/n*(MaxLat-MinLat))
	north = MinLat + float64(float64(y+1)/n*(MaxLat-MinLat))
	return west, south, east, north
}

const (
	rows    = 0x5555555555555555
	columns = rows << 1
)

// move returns the cell dx columns and dy rows away, each -1, 0 or 1. At an edge of the map it
// continues at the opposite edge.
func (c cell) move(dx, dy int) cell {
	mask := uint64(1)<<(2*c.step) - 1
	x, y := c.bits&columns, c.bits&rows
	switch { // so that carries pass the other coordinate's bits: all 1 for +1, all 0 for -1
	case dx > 0:
		x = (x | rows&mask) + 1
	case dx < 0:
		x -= 2
	}
	switch {
	case dy > 0:
		y = (y | columns&mask) + 1
	case dy < 0:
		y--
	}
	if dx != 0 {
		x &= columns & mask
	}
	if dy != 0 {
		y &= rows & mask
	}
	return cell{x | y, c.step}
}

// spread moves the bits of v to the even positions.
func spread(v uint32) uint64 {
	x := uint64(v)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & rows
}

// squash collects the bits of the even positions.
func squash(x uint64) uint32 {
	x &= rows
	x = (x | x>>1) & 0x3333333333333333
	x = (x | x>>2) & 0x0f0f0f0f0f0f0f0f
	x = (x | x>>4) & 0x00ff00ff00ff00ff
	x = (x | x>>8) & 0x0000ffff0000ffff
	return uint32(x | x>>16)
}
