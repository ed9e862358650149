package command

import (
	"math"
	"strconv"

	"github.com/ebbdb/ebb/engine"
	"github.com/ebbdb/ebb/internal/geohash"
	"github.com/ebbdb/ebb/resp"
)

var geoSpecs = []*Spec{&specGeoAdd, &specGeoPos, &specGeoDist, &specGeoHash, &specGeoSearch, &specGeoSearchStore,
	&specGeoRadius, &specGeoRadiusRO, &specGeoRadiusByMember, &specGeoRadiusByMemberRO}

const errUnit = ReplyError("ERR unsupported unit provided. please use M, KM, FT, MI")

// unitArg is the grammar of a unit of length.
func unitArg() Arg { return OneOf("unit", Token("M"), Token("KM"), Token("FT"), Token("MI")) }

// place reads a longitude and a latitude.
func placeArgs(args [][]byte) (lon, lat float64, err error) {
	lon, ok := resp.ParseDouble(args[0])
	lat, also := resp.ParseDouble(args[1])
	switch {
	case !ok || !also:
		return 0, 0, ErrNotFloat
	case !geohash.Valid(lon, lat):
		return 0, 0, ReplyError("ERR invalid longitude,latitude pair " + sixDigits(lon) + "," + sixDigits(lat))
	}
	return lon, lat, nil
}

// sixDigits is a number as C's %f prints it.
func sixDigits(f float64) string {
	if math.IsInf(f, 0) {
		return string(resp.AppendDouble(nil, f))
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

// placeOf is the place that a score stands for.
func placeOf(score float64) (lon, lat float64) { return geohash.Decode(geoBits(score)) }

// geoBits is a score as a number. Those that are no places wrap, below zero, or
// are the first place, beyond 2^64.
func geoBits(score float64) uint64 {
	switch {
	case score < 0:
		return uint64(int64(score))
	case score >= 1<<64:
		return 0
	}
	return uint64(score)
}

// position replies a place.
func (c *Ctx) position(score float64) {
	lon, lat := placeOf(score)
	c.Out.Array(2)
	c.Out.Double(lon)
	c.Out.Double(lat)
}

// distance replies a distance.
func (c *Ctx) distance(d float64) {
	var text [32]byte
	c.Out.Bulk(geohash.AppendDistance(text[:0], d))
}

var specGeoAdd = Spec{
	Name: "geoadd", Group: GroupGeo, Since: "3.2.0",
	Complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
	Summary:    "Adds one or more members to a geospatial index. The key is created if it doesn't exist.",
	Flags:      Write | DenyOOM,
	Args: []Arg{Key("key", Update), Opt(OneOf("condition", Token("NX"), Token("XX"))).Since("6.2.0"), Opt(Token("CH").As("change")).Since("6.2.0"),
		Repeat(Block("longitude_latitude_member", Double("longitude"), Double("latitude"), Str("member")))},
	History: []Change{{"6.2.0", "Added the `CH`, `NX` and `XX` options."}},
	Replies: "The number of members added, with CH of those added or moved. The index is a sorted set, whose scores are geohashes of 52 bits.",
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin 2.3522 48.8566 Paris
(integer) 2
> GEODIST g Berlin Paris km
"877.7111"
`,
	Keys: zaddKeys,
	Run:  runGeoAdd,
}

func runGeoAdd(c *Ctx) error {
	var o engine.ZAddOptions
	ch, i := false, 2
options:
	for ; i < len(c.Args); i++ {
		switch a := c.Args[i]; {
		case EqualFold(a, "NX"):
			o.IfAbsent = true
		case EqualFold(a, "XX"):
			o.IfExists = true
		case EqualFold(a, "CH"):
			ch = true
		default:
			break options
		}
	}
	places := c.Args[i:]
	if len(places)%3 != 0 || o.IfAbsent && o.IfExists {
		return ErrSyntax
	}
	if err := c.longMembers(len(places) / 3); err != nil {
		return err
	}
	var few [8]engine.Scored // as many as fit on the stack
	items := few[:0]
	for ; len(places) > 0; places = places[3:] {
		lon, lat, err := placeArgs(places)
		if err != nil {
			return err
		}
		items = append(items, engine.Scored{Score: float64(geohash.Encode(lon, lat)), Member: places[2]})
	}
	if len(items) == 0 {
		return ErrSyntax
	}

	added, updated, err := c.Tx.ZAdd(c.Args[1], items, o)
	if err != nil {
		return err
	}

	if ch {
		added += updated
	}
	c.Out.Int(int64(added))
	return nil
}

var specGeoPos = Spec{
	Name: "geopos", Group: GroupGeo, Since: "3.2.0", Complexity: "O(N) where N is the number of members requested.",
	Summary:       "Returns the longitude and latitude of members from a geospatial index.",
	Flags:         ReadOnly,
	Args:          []Arg{Key("key", Read), Many("member")},
	ArityOverride: -2, ArityReason: "as in Redis, no member at all is answered as well",
	Replies: "For each member an array of longitude and latitude, at most 0.3 m from where it was added, or nil.",
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin
(integer) 1
> GEOPOS g Berlin other (differs: shortest-coordinates)
1) 1) "13.405002057552338"
   2) "52.51999907056681"
2) (nil)
`,
	Run: runGeoPos,
}

func runGeoPos(c *Ctx) error {
	return c.eachMember(func(score float64, ok bool) {
		if ok {
			c.position(score)
		} else {
			c.Out.NullArray()
		}
	})
}

var specGeoHash = Spec{
	Name: "geohash", Group: GroupGeo, Since: "3.2.0", Complexity: "O(log(N)) for each member requested, where N is the number of elements in the sorted set.",
	Summary:       "Returns members from a geospatial index as geohash strings.",
	Flags:         ReadOnly,
	Args:          []Arg{Key("key", Read), Many("member")},
	ArityOverride: -2, ArityReason: "as in Redis, no member at all is answered as well",
	Replies: "For each member 11 characters as geohash.org spells them, or nil.",
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin
(integer) 1
> GEOHASH g Berlin other
1) "u33dc0cppj0"
2) (nil)
`,
	Run: runGeoHash,
}

func runGeoHash(c *Ctx) error {
	return c.eachMember(func(score float64, ok bool) {
		var text [16]byte
		c.bulkOrNull(geohash.AppendString(text[:0], geoBits(score)), ok)
	})
}

var specGeoDist = Spec{
	Name: "geodist", Group: GroupGeo, Since: "3.2.0", Complexity: "O(1)",
	Summary: "Returns the distance between two members of a geospatial index.",
	Flags:   ReadOnly,
	Args:    []Arg{Key("key", Read), Str("member1"), Str("member2"), Opt(unitArg())},
	Replies: "The distance on a sphere of the earth's size, in metres or the unit given; nil if a member is missing.",
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin 2.3522 48.8566 Paris
(integer) 2
> GEODIST g Berlin Paris
"877711.1349"
> GEODIST g Berlin Paris MI
"545.3858"
`,
	Run: runGeoDist,
}

func runGeoDist(c *Ctx) error {
	unit := 1.0
	if len(c.Args) == 5 {
		var ok bool
		if unit, ok = geohash.Unit(c.Args[4]); !ok {
			return errUnit
		}
	}
	if len(c.Args) > 5 {
		return ErrSyntax
	}

	z, err := c.Tx.ZSet(c.Args[1], false)
	if err != nil {
		return err
	}
	a, ok := z.Score(c.Args[2])
	b, also := z.Score(c.Args[3])

	if !ok || !also {
		c.Out.Null()
		return nil
	}
	lon1, lat1 := placeOf(a)
	lon2, lat2 := placeOf(b)
	c.distance(geohash.Distance(lon1, lat1, lon2, lat2) / unit)
	return nil
}
