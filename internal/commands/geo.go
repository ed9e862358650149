package commands

import (
	"math"
	"strconv"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/geohash"
	"github.com/ebbdb/ebb/internal/numeral"
)

var geoSpecs = []*command.Spec{&specGeoAdd, &specGeoPos, &specGeoDist, &specGeoHash, &specGeoSearch, &specGeoSearchStore,
	&specGeoRadius, &specGeoRadiusRO, &specGeoRadiusByMember, &specGeoRadiusByMemberRO}

const errUnit = command.ReplyError("ERR unsupported unit provided. please use M, KM, FT, MI")

// unitArg is the grammar of a unit of length.
func unitArg() command.Arg {
	return command.OneOf("unit", command.Token("M"), command.Token("KM"), command.Token("FT"), command.Token("MI"))
}

// placeArgs reads a longitude and a latitude.
func placeArgs(args [][]byte) (lon, lat float64, err error) {
	lon, ok := numeral.ParseDouble(args[0])
	lat, also := numeral.ParseDouble(args[1])
	switch {
	case !ok || !also:
		return 0, 0, command.ErrNotFloat
	case !geohash.Valid(lon, lat):
		return 0, 0, command.ReplyError("ERR invalid longitude,latitude pair " + sixDigits(lon) + "," + sixDigits(lat))
	}
	return lon, lat, nil
}

// sixDigits formats a number as C's %f does.
func sixDigits(f float64) string {
	if math.IsInf(f, 0) {
		return string(numeral.AppendDouble(nil, f))
	}
	return strconv.FormatFloat(f, 'f', 6, 64)
}

// placeOf returns the place that a score encodes.
func placeOf(score float64) (lon, lat float64) { return geohash.Decode(geoBits(score)) }

// geoBits returns a score as an integer. Scores that encode no place wrap if they are below zero,
// and are the first place if they are 2^64 or more.
func geoBits(score float64) uint64 {
	switch {
	case score < 0:
		return uint64(int64(score))
	case score >= 1<<64:
		return 0
	}
	return uint64(score)
}

// position replies with a place.
func position(c *command.Ctx, score float64) {
	lon, lat := placeOf(score)
	c.Out.Array(2)
	c.Out.Double(lon)
	c.Out.Double(lat)
}

// distance replies with a distance.
func distance(c *command.Ctx, d float64) {
	var text [32]byte
	c.Out.Bulk(geohash.AppendDistance(text[:0], d))
}

var specGeoAdd = command.Spec{
	Name: "geoadd", Group: command.GroupGeo, Since: "3.2.0",
	Complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
	Summary:    "Adds one or more members to a geospatial index. The key is created if it doesn't exist.",
	Flags:      command.Write | command.DenyOOM,
	Args: []command.Arg{command.Key("key", command.Update),
		command.Opt(command.OneOf("condition", command.Token("NX"), command.Token("XX"))).Since("6.2.0"),
		command.Opt(command.Token("CH").As("change")).Since("6.2.0"),
		command.Repeat(command.Block("longitude_latitude_member", command.Double("longitude"), command.Double("latitude"),
			command.Str("member")))},
	History: []command.Change{{Since: "6.2.0", Text: "Added the `CH`, `NX` and `XX` options."}},
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

func runGeoAdd(c *command.Ctx) error {
	var o engine.ZAddOptions
	ch, i := false, 2
options:
	for ; i < len(c.Args); i++ {
		switch a := c.Args[i]; {
		case command.EqualFold(a, "NX"):
			o.IfAbsent = true
		case command.EqualFold(a, "XX"):
			o.IfExists = true
		case command.EqualFold(a, "CH"):
			ch = true
		default:
			break options
		}
	}
	places := c.Args[i:]
	if len(places)%3 != 0 || o.IfAbsent && o.IfExists {
		return command.ErrSyntax
	}
	if err := longMembers(c, len(places)/3); err != nil {
		return err
	}
	var few [8]engine.Scored // the number that fits on the stack
	items := few[:0]
	for ; len(places) > 0; places = places[3:] {
		lon, lat, err := placeArgs(places)
		if err != nil {
			return err
		}
		items = append(items, engine.Scored{Score: float64(geohash.Encode(lon, lat)), Member: places[2]})
	}
	if len(items) == 0 {
		return command.ErrSyntax
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

var specGeoPos = command.Spec{
	Name: "geopos", Group: command.GroupGeo, Since: "3.2.0", Complexity: "O(N) where N is the number of members requested.",
	Summary:       "Returns the longitude and latitude of members from a geospatial index.",
	Flags:         command.ReadOnly,
	Args:          []command.Arg{command.Key("key", command.Read), command.Many("member")},
	ArityOverride: -2, ArityReason: "as in Redis, a call without members gets a reply as well",
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

func runGeoPos(c *command.Ctx) error {
	return eachMember(c, func(score float64, ok bool) {
		if ok {
			position(c, score)
		} else {
			c.Out.NullArray()
		}
	})
}

var specGeoHash = command.Spec{
	Name: "geohash", Group: command.GroupGeo, Since: "3.2.0",
	Complexity:    "O(log(N)) for each member requested, where N is the number of elements in the sorted set.",
	Summary:       "Returns members from a geospatial index as geohash strings.",
	Flags:         command.ReadOnly,
	Args:          []command.Arg{command.Key("key", command.Read), command.Many("member")},
	ArityOverride: -2, ArityReason: "as in Redis, a call without members gets a reply as well",
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

func runGeoHash(c *command.Ctx) error {
	return eachMember(c, func(score float64, ok bool) {
		var text [16]byte
		bulkOrNull(c, geohash.AppendString(text[:0], geoBits(score)), ok)
	})
}

var specGeoDist = command.Spec{
	Name: "geodist", Group: command.GroupGeo, Since: "3.2.0", Complexity: "O(1)",
	Summary: "Returns the distance between two members of a geospatial index.",
	Flags:   command.ReadOnly,
	Args:    []command.Arg{command.Key("key", command.Read), command.Str("member1"), command.Str("member2"), command.Opt(unitArg())},
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

func runGeoDist(c *command.Ctx) error {
	unit := 1.0
	if len(c.Args) == 5 {
		var ok bool
		if unit, ok = geohash.Unit(c.Args[4]); !ok {
			return errUnit
		}
	}
	if len(c.Args) > 5 {
		return command.ErrSyntax
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
	distance(c, geohash.Distance(lon1, lat1, lon2, lat2)/unit)
	return nil
}
