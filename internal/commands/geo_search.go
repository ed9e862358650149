package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/geohash"
	"github.com/ebbdb/ebb/internal/numeral"
)

const (
	errGeoMember = command.ReplyError("ERR could not decode requested zset member")
	errGeoRadius = command.ReplyError("ERR need numeric radius")
	errGeoBelow  = command.ReplyError("ERR radius cannot be negative")
	errGeoWidth  = command.ReplyError("ERR need numeric width")
	errGeoHeight = command.ReplyError("ERR need numeric height")
	errGeoSides  = command.ReplyError("ERR height or width cannot be negative")
	errGeoCount  = command.ReplyError("ERR COUNT must be > 0")
	errGeoAny    = command.ReplyError("ERR the ANY argument requires COUNT argument")
	errGeoStore  = command.ReplyError("ERR STORE option in GEORADIUS is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
	errGeoStores = command.ReplyError("ERR GEOSEARCHSTORE is not compatible with WITHDIST, WITHHASH and WITHCOORD options")
)

const geoSearchComplexity = "O(N+log(M)) where N is the number of elements in the grid-aligned bounding box area around " +
	"the shape provided as the filter and M is the number of items inside the shape"

// geoShape returns the grammar of GEOSEARCH up to its options.
func geoShape() []command.Arg {
	return []command.Arg{
		command.OneOf("from", command.TokenArg("FROMMEMBER", command.Str("member")),
			command.TokenArg("FROMLONLAT", command.Block("longitude_latitude", command.Double("longitude"), command.Double("latitude")))),
		command.OneOf("by", command.Block("circle", command.TokenArg("BYRADIUS", command.Double("radius")), unitArg()),
			command.Block("box", command.TokenArg("BYBOX", command.Double("width")), command.Double("height"), unitArg()))}
}

func geoOrder() command.Arg {
	return command.Opt(command.OneOf("order", command.Token("ASC"), command.Token("DESC")))
}

func geoCount(anySince string) command.Arg {
	a := command.Opt(command.Token("ANY"))
	if anySince != "" {
		a = a.Since(anySince)
	}
	return command.Opt(command.Block("count", command.TokenArg("COUNT", command.Int("count")), a))
}

func geoWith() []command.Arg {
	return []command.Arg{command.Opt(command.Token("WITHCOORD")), command.Opt(command.Token("WITHDIST")),
		command.Opt(command.Token("WITHHASH"))}
}

func concat(parts ...[]command.Arg) (all []command.Arg) {
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

var unitHistory = []command.Change{{Since: "7.0.0", Text: "Added support for uppercase unit names."}}

var specGeoSearch = command.Spec{
	Name: "geosearch", Group: command.GroupGeo, Since: "6.2.0", Complexity: geoSearchComplexity,
	Summary: "Queries a geospatial index for members inside an area of a box or a circle.",
	Flags:   command.ReadOnly,
	Args:    concat([]command.Arg{command.Key("key", command.Read)}, geoShape(), []command.Arg{geoOrder(), geoCount("")}, geoWith()),
	History: unitHistory,
	Replies: "An array of members; with WITHDIST, WITHHASH or WITHCOORD of arrays of the member, its distance from " +
		"the middle in the unit given, its score and its place.",
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin 2.3522 48.8566 Paris 9.9937 53.5511 Hamburg
(integer) 3
> GEOSEARCH g FROMLONLAT 13 52 BYRADIUS 300 km ASC WITHDIST
1) 1) "Berlin"
   2) "64.0732"
2) 1) "Hamburg"
   2) "265.8190"
> GEOSEARCH g FROMMEMBER Paris BYBOX 2000 200 km COUNT 1
1) "Paris"
`,
	Run: runGeoSearch,
}

var specGeoSearchStore = command.Spec{
	Name: "geosearchstore", Group: command.GroupGeo, Since: "6.2.0", Complexity: geoSearchComplexity,
	Summary: "Queries a geospatial index for members inside an area of a box or a circle, and stores the result.",
	Flags:   command.Write | command.DenyOOM,
	Args: concat([]command.Arg{command.Key("destination", command.Overwrite), command.Key("source", command.Read)}, geoShape(),
		[]command.Arg{geoOrder(), geoCount(""), command.Opt(command.Token("STOREDIST"))}),
	History: unitHistory,
	Replies: "The number of members stored: a geospatial index, or with STOREDIST a sorted set by distance in the unit given. " +
		"They have no deadlines there. None at all deletes the destination.",
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin 2.3522 48.8566 Paris
(integer) 2
> GEOSEARCHSTORE near g FROMLONLAT 13 52 BYRADIUS 300 km
(integer) 1
> GEOHASH near Berlin
1) "u33dc0cppj0"
`,
	Run: runGeoSearchStore,
}

const geoRadiusComplexity = "O(N+log(M)) where N is the number of elements inside the bounding box of the circular " +
	"area delimited by center and radius and M is the number of items inside the index."

// geoRadius returns the grammar of GEORADIUS and its variants after the centre.
func geoRadius(anySince string, more ...command.Arg) []command.Arg {
	return concat([]command.Arg{command.Double("radius"), unitArg()}, geoWith(), []command.Arg{geoCount(anySince), geoOrder()}, more)
}

func geoLonLat() []command.Arg {
	return []command.Arg{command.Key("key", command.Read), command.Double("longitude"), command.Double("latitude")}
}
func geoMember() []command.Arg {
	return []command.Arg{command.Key("key", command.Read), command.Str("member")}
}

func geoStoring() []command.Arg {
	return []command.Arg{command.Opt(command.TokenArg("STORE", command.Key("key", command.Overwrite))),
		command.Opt(command.TokenArg("STOREDIST", command.Key("key", command.Overwrite)))}
}

const geoRadiusReplies = "As GEOSEARCH; with STORE or STOREDIST as GEOSEARCHSTORE."

var specGeoRadius = command.Spec{
	Name: "georadius", Group: command.GroupGeo, Since: "3.2.0", Complexity: geoRadiusComplexity,
	Summary:    "Queries a geospatial index for members within a distance from a coordinate, and stores the result where asked.",
	Flags:      command.Write | command.DenyOOM,
	Args:       concat(geoLonLat(), geoRadius("6.2.0", geoStoring()...)),
	KeyOptions: geoRadiusKeys(6),
	History:    []command.Change{{Since: "6.2.0", Text: "Added the `ANY` option for `COUNT`."}, unitHistory[0]},
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` argument"},
	Replies:    geoRadiusReplies,
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin 2.3522 48.8566 Paris
(integer) 2
> GEORADIUS g 13 52 300 km
1) "Berlin"
> GEORADIUS g 13 52 300 km STOREDIST d
(integer) 1
`,
	Run: func(c *command.Ctx) error { return runGeoRadiusAs(c, true, 4) },
}

var specGeoRadiusRO = command.Spec{
	Name: "georadius_ro", Group: command.GroupGeo, Since: "3.2.10", Complexity: geoRadiusComplexity,
	Summary:    "Queries a geospatial index for members within a distance from a coordinate.",
	Flags:      command.ReadOnly,
	Args:       concat(geoLonLat(), geoRadius("6.2.0")),
	History:    []command.Change{{Since: "6.2.0", Text: "Added the `ANY` option for `COUNT`."}},
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`GEOSEARCH` with the `BYRADIUS` argument"},
	Replies:    geoRadiusReplies,
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin 2.3522 48.8566 Paris
(integer) 2
> GEORADIUS_RO g 13 52 300 km
1) "Berlin"
`,
	Run: func(c *command.Ctx) error { return runGeoRadiusAs(c, false, 4) },
}

var specGeoRadiusByMember = command.Spec{
	Name: "georadiusbymember", Group: command.GroupGeo, Since: "3.2.0", Complexity: geoRadiusComplexity,
	Summary:    "Queries a geospatial index for members within a distance from a member, and stores the result where asked.",
	Flags:      command.Write | command.DenyOOM,
	Args:       concat(geoMember(), geoRadius("", geoStoring()...)),
	KeyOptions: geoRadiusKeys(5),
	History:    unitHistory,
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`GEOSEARCH` and `GEOSEARCHSTORE` with the `BYRADIUS` " +
		"and `FROMMEMBER` arguments"},
	Replies: geoRadiusReplies,
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin 2.3522 48.8566 Paris
(integer) 2
> GEORADIUSBYMEMBER g Paris 1000 km WITHDIST COUNT 5 DESC
1) 1) "Berlin"
   2) "877.7111"
2) 1) "Paris"
   2) "0.0000"
`,
	Run: func(c *command.Ctx) error { return runGeoRadiusAs(c, true, 3) },
}

var specGeoRadiusByMemberRO = command.Spec{
	Name: "georadiusbymember_ro", Group: command.GroupGeo, Since: "3.2.10", Complexity: geoRadiusComplexity,
	Summary:    "Queries a geospatial index for members within a distance from a member.",
	Flags:      command.ReadOnly,
	Args:       concat(geoMember(), geoRadius("")),
	Deprecated: &command.Deprecation{Since: "6.2.0", ReplacedBy: "`GEOSEARCH` with the `BYRADIUS` and `FROMMEMBER` arguments"},
	Replies:    geoRadiusReplies,
	Examples: `
> GEOADD g 13.4050 52.5200 Berlin 2.3522 48.8566 Paris
(integer) 2
> GEORADIUSBYMEMBER_RO g Paris 10 m
1) "Paris"
`,
	Run: func(c *command.Ctx) error { return runGeoRadiusAs(c, false, 3) },
}

// geoRadiusKeys describes where a request has its keys: the index comes first, others follow the options
// STORE and STOREDIST. The options begin at argument number from.
func geoRadiusKeys(from int) *command.KeyOptions {
	return &command.KeyOptions{First: command.KeyRef{Pos: 1, Flags: command.Read}, From: from, Options: []command.KeyOption{
		{Word: "STORE", Args: 1, Key: command.Overwrite}, {Word: "STOREDIST", Args: 1, Key: command.Overwrite}, {Word: "COUNT", Args: 1}}}
}

// geoArgs holds the arguments of a search.
type geoArgs struct {
	z                engine.ZSetView
	there            bool // the index exists
	from, by         geoForm
	lon, lat         float64
	radius           float64 // m, like all lengths here
	width, height    float64
	unit             float64
	count            int64
	order            engine.GeoOrder
	any              bool
	hash, dist, spot bool // WITHHASH, WITHDIST, WITHCOORD
	store            []byte
	storeDist        bool
}

// geoForm is the form in which a request gives the centre or the area.
type geoForm uint8

const (
	geoNone geoForm = iota
	geoByMember
	geoByLonLat
	geoByRadius
	geoByBox
)

// look finds the index; Redis does so before it checks other arguments.
func (g *geoArgs) look(c *command.Ctx, key []byte) (err error) {
	g.unit = 1
	g.z, err = c.Tx.ZSet(key, false)
	g.there = g.z.Len() > 0
	return err
}

func (g *geoArgs) member(name []byte) error {
	g.from = geoByMember
	if !g.there {
		return nil
	}
	score, ok := g.z.Score(name)
	if !ok {
		return errGeoMember
	}
	g.lon, g.lat = placeOf(score)
	return nil
}

func (g *geoArgs) lonLat(args [][]byte) (err error) {
	g.from = geoByLonLat
	g.lon, g.lat, err = placeArgs(args)
	return err
}

// circle reads "radius unit".
func (g *geoArgs) circle(args [][]byte) error {
	g.by = geoByRadius
	r, ok := numeral.ParseDouble(args[0])
	switch {
	case !ok:
		return errGeoRadius
	case r < 0:
		return errGeoBelow
	}
	if g.unit, ok = geohash.Unit(args[1]); !ok {
		return errUnit
	}
	g.radius = r * g.unit
	return nil
}

// box reads "width height unit".
func (g *geoArgs) box(args [][]byte) error {
	g.by = geoByBox
	w, ok := numeral.ParseDouble(args[0])
	if !ok {
		return errGeoWidth
	}
	h, ok := numeral.ParseDouble(args[1])
	switch {
	case !ok:
		return errGeoHeight
	case w < 0 || h < 0:
		return errGeoSides
	}
	if g.unit, ok = geohash.Unit(args[2]); !ok {
		return errUnit
	}
	g.width, g.height = w*g.unit, h*g.unit
	return nil
}

// option reads one of the options that all searches have, and returns how many arguments it took, 0
// if it is none of them.
func (g *geoArgs) option(args [][]byte) (n int, err error) {
	switch a := args[0]; {
	case command.EqualFold(a, "WITHDIST"):
		g.dist = true
	case command.EqualFold(a, "WITHHASH"):
		g.hash = true
	case command.EqualFold(a, "WITHCOORD"):
		g.spot = true
	case command.EqualFold(a, "ANY"):
		g.any = true
	case command.EqualFold(a, "ASC"):
		g.order = engine.Nearest
	case command.EqualFold(a, "DESC"):
		g.order = engine.Farthest
	case command.EqualFold(a, "COUNT") && len(args) > 1:
		n, ok := numeral.ParseInt(args[1])
		switch {
		case !ok:
			return 0, command.ErrNotInteger
		case n <= 0:
			return 0, errGeoCount
		}
		g.count = n
		return 2, nil
	default:
		return 0, nil
	}
	return 1, nil
}

// searchOptions reads the arguments of GEOSEARCH after its key.
func (g *geoArgs) searchOptions(args [][]byte, store bool) error {
	for len(args) > 0 {
		n, err := g.option(args)
		if n == 0 && err == nil {
			n, err = g.searchOption(args, store)
		}
		if err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

func (g *geoArgs) searchOption(args [][]byte, store bool) (n int, err error) {
	switch a := args[0]; {
	case command.EqualFold(a, "FROMMEMBER") && len(args) > 1 && g.from != geoByLonLat:
		return 2, g.member(args[1])
	case command.EqualFold(a, "FROMLONLAT") && len(args) > 2 && g.from != geoByMember:
		return 3, g.lonLat(args[1:])
	case command.EqualFold(a, "BYRADIUS") && len(args) > 2 && g.by != geoByBox:
		return 3, g.circle(args[1:])
	case command.EqualFold(a, "BYBOX") && len(args) > 3 && g.by != geoByRadius:
		return 4, g.box(args[1:])
	case store && command.EqualFold(a, "STOREDIST"):
		g.storeDist = true
		return 1, nil
	}
	return 0, command.ErrSyntax
}

// radiusOptions reads the options of GEORADIUS and its variants.
func (g *geoArgs) radiusOptions(args [][]byte, store bool) error {
	for len(args) > 0 {
		n, err := g.option(args)
		if n == 0 && err == nil {
			dist := command.EqualFold(args[0], "STOREDIST")
			if !store || len(args) < 2 || !dist && !command.EqualFold(args[0], "STORE") {
				return command.ErrSyntax
			}
			g.store, g.storeDist, n = args[1], dist, 2
		}
		if err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

func (g *geoArgs) shape() geohash.Shape {
	if g.by == geoByBox {
		return geohash.Box(g.lon, g.lat, g.width, g.height)
	}
	return geohash.Circle(g.lon, g.lat, g.radius)
}

func runGeoSearch(c *command.Ctx) error {
	var g geoArgs
	if err := g.look(c, c.Args[1]); err != nil {
		return err
	}
	if err := g.searchOptions(c.Args[2:], false); err != nil {
		return err
	}
	return geoSearch(c, &g, "")
}

func runGeoSearchStore(c *command.Ctx) error {
	var g geoArgs
	if err := g.look(c, c.Args[2]); err != nil {
		return err
	}
	if err := g.searchOptions(c.Args[3:], true); err != nil {
		return err
	}
	g.store = c.Args[1]
	return geoSearch(c, &g, "geosearchstore")
}

// runGeoRadiusAs runs GEORADIUS and its variants, whose radius is the argument at.
func runGeoRadiusAs(c *command.Ctx, store bool, at int) error {
	var g geoArgs
	err := g.look(c, c.Args[1])
	switch {
	case err != nil:
		return err
	case at == 4:
		err = g.lonLat(c.Args[2:])
	default:
		err = g.member(c.Args[2])
	}
	if err == nil && (g.there || at == 4) { // otherwise Redis does not check the radius
		err = g.circle(c.Args[at:])
	}
	g.by = geoByRadius
	if err == nil {
		err = g.radiusOptions(c.Args[at+2:], store)
	}
	if err != nil {
		return err
	}
	return geoSearch(c, &g, "georadiusstore")
}

// geoMost is the number of candidates that a search may check on a network loop.
const geoMost = command.LongBytes / memberBytes

// geoSearch runs a search, and replies with the members that it finds or stores them.
func geoSearch(c *command.Ctx, g *geoArgs, event string) error {
	if err := g.check(c); err != nil {
		return err
	}
	if !g.there {
		return geoNothing(c, g)
	}

	q := engine.GeoQuery{Shape: g.shape(), Order: g.order, Count: int(g.count), Any: g.any}
	if g.count > 0 && g.order == engine.AnyOrder && !g.any {
		q.Order = engine.Nearest
	}
	if c.Long(command.LongBytes+1) != nil { // on a loop
		q.Most = geoMost
	}
	hits, ok := g.z.GeoSearch(&q)
	if !ok {
		return command.ErrBackground
	}
	if g.store != nil {
		unit := 0.0
		if g.storeDist {
			unit = g.unit
		}
		if err := c.Tx.GeoStore(g.store, hits, unit, event); err != nil {
			return err
		}
		c.Out.Int(int64(len(hits)))
		return nil
	}

	c.Out.Array(len(hits))
	for i := range hits {
		geoHit(c, g, &hits[i])
	}
	return nil
}

// check returns an error if an argument is missing or must not be there.
func (g *geoArgs) check(c *command.Ctx) error {
	switch with := g.dist || g.hash || g.spot; {
	case with && g.store != nil && c.Spec.Name == "geosearchstore":
		return errGeoStores
	case with && g.store != nil:
		return errGeoStore
	case g.from == geoNone:
		return command.ReplyError("ERR exactly one of FROMMEMBER or FROMLONLAT can be specified for " + string(c.Args[0]))
	case g.by == geoNone:
		return command.ReplyError("ERR exactly one of BYRADIUS and BYBOX can be specified for " + string(c.Args[0]))
	case g.any && g.count == 0:
		return errGeoAny
	}
	return nil
}

// geoNothing replies to a search in an index that does not exist.
func geoNothing(c *command.Ctx, g *geoArgs) error {
	if g.store == nil {
		c.Out.Array(0)
		return nil
	}
	c.Out.Int(0)
	return c.Tx.GeoStore(g.store, nil, 0, "")
}

func geoHit(c *command.Ctx, g *geoArgs, h *engine.GeoHit) {
	n := 1
	for _, with := range [...]bool{g.dist, g.hash, g.spot} {
		if with {
			n++
		}
	}
	if n > 1 {
		c.Out.Array(n)
	}
	c.Out.Bulk(h.Member)
	if g.dist {
		distance(c, h.Distance/g.unit)
	}
	if g.hash {
		c.Out.Int(int64(h.Score))
	}
	if g.spot {
		position(c, h.Score)
	}
}
