package near

import (
	"fmt"
	"strconv"
)

// Distance is a distance in meters.
type Distance float64

// The units of the commands: 2*Kilometer is a Distance, d.In(Mile) is a number.
const (
	Meter     Distance = 1
	Kilometer Distance = 1000
	Foot      Distance = 0.3048
	Mile      Distance = 1609.34
)

// In returns the distance as a number of units.
func (d Distance) In(unit Distance) float64 { return float64(d / unit) }

// String returns the distance in meters, or in kilometers from one kilometer on: "870 m", "12.4
// km".
func (d Distance) String() string {
	if d < Kilometer {
		return strconv.FormatFloat(float64(d), 'f', 0, 64) + " m"
	}
	return fmt.Sprintf("%.1f km", d.In(Kilometer))
}

// Point is a position on the earth in degrees: longitudes from -180 to 180, latitudes from
// -85.05112878 to 85.05112878, where the projection ends.
type Point struct {
	Lon, Lat float64
}

// Found is a member that a search has found.
type Found struct {
	Member string
	Point
	// Distance is the distance from the centre of the search.
	Distance Distance
}
