package clienttest

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

//go:embed containers_expected.txt
var containersExpected string

func TestClientsSeeTheSameDataTypesOnRedisAndOnEbb(t *testing.T) {
	servers := []struct {
		name  string
		start func(t *testing.T) (addr string)
	}{
		{"redis-server", func(t *testing.T) string { return realserver.Start(t, "redis-server") }},
		{"ebb", startEbb},
	}
	clients := []struct {
		name string
		play play
	}{
		{"go-redis", containersByGoRedis},
		{"rueidis", containersByRueidis},
		{"ioredis", node("node/containers.js")},
		{"node-redis", node("node/containers-noderedis.js")},
		{"node-redis over RESP3", node("node/containers-noderedis.js", "3")},
		{"python3-redis", containersByPython},
	}
	for _, s := range servers {
		for _, c := range clients {
			t.Run(c.name+" on "+s.name, func(t *testing.T) {
				t.Parallel()
				if diff := cmp.Diff(strings.Split(containersExpected, "\n"), strings.Split(c.play(t, s.start(t)), "\n")); diff != "" {
					t.Errorf("(-expected +seen)\n%s", diff)
				}
			})
		}
	}
}

// node returns a play by a program of node/, with more arguments behind the
// address.
func node(program string, more ...string) play {
	return func(t *testing.T, addr string) string {
		path := realserver.Program(t, "node")
		if _, err := os.Stat("node/node_modules/redis"); err != nil {
			realserver.Require(t, "node-redis is not installed: run npm ci in internal/test/clienttest/node")
		}
		return run(t, path, append([]string{program, addr}, more...)...)
	}
}

func containersByPython(t *testing.T, addr string) string {
	return python(t, "python/containers.py", addr)
}

// transcriber collects the lines of a program.
type transcriber struct {
	t   *testing.T
	out strings.Builder
}

func (s *transcriber) say(name string, value any, err error) {
	if err != nil {
		s.t.Errorf("%s: %v", name, err)
	}
	fmt.Fprintf(&s.out, "%s: %v\n", name, value)
}

func sorted(words []string, err error) (string, error) {
	slices.Sort(words)
	return strings.Join(words, " "), err
}

func joined(words []string, err error) (string, error) { return strings.Join(words, " "), err }

func containersByGoRedis(t *testing.T, addr string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	s := transcriber{t: t}
	say := func(name string, cmd interface {
		Err() error
		String() string
	}, value any) {
		s.say(name, value, cmd.Err())
	}
	words := func(name string) func(string, error) {
		return func(v string, err error) { s.say(name, v, err) }
	}
	hset := c.HSet(ctx, "user:1", "name", "Ada", "age", "36")
	say("hset", hset, hset.Val())
	all, err := c.HGetAll(ctx, "user:1").Result()
	s.say("hgetall", fmt.Sprintf("age=%s name=%s", all["age"], all["name"]), err)
	hincr := c.HIncrBy(ctx, "user:1", "age", 1)
	say("hincrby", hincr, hincr.Val())
	push := c.RPush(ctx, "jobs", "a", "b", "c")
	say("rpush", push, push.Val())
	words("lrange")(joined(c.LRange(ctx, "jobs", 0, -1).Result()))
	words("lmove")(c.LMove(ctx, "jobs", "done", "LEFT", "RIGHT").Result())
	popped := make(chan *redis.StringSliceCmd, 1)
	go func() { popped <- c.BLPop(ctx, patience, "queue") }()
	for !strings.Contains(c.Info(ctx, "clients").Val(), "blocked_clients:1") && ctx.Err() == nil {
	}
	c.RPush(ctx, "queue", "x")
	words("blpop")(joined((<-popped).Result()))
	sadd := c.SAdd(ctx, "tags", "red", "green", "blue")
	say("sadd", sadd, sadd.Val())
	words("smembers")(sorted(c.SMembers(ctx, "tags").Result()))
	c.SAdd(ctx, "others", "red", "blue", "black")
	words("sinter")(sorted(c.SInter(ctx, "tags", "others").Result()))
	zadd := c.ZAdd(ctx, "board", redis.Z{Score: 10, Member: "ann"}, redis.Z{Score: 20.5, Member: "bob"}, redis.Z{Score: 15, Member: "cat"})
	say("zadd", zadd, zadd.Val())
	words("zrange")(scored(c.ZRangeWithScores(ctx, "board", 0, -1).Result()))
	zrank := c.ZRank(ctx, "board", "bob")
	say("zrank", zrank, zrank.Val())
	words("zpopmin")(scored(c.ZPopMin(ctx, "board").Result()))
	words("xadd")(c.XAdd(ctx, &redis.XAddArgs{Stream: "log", ID: "1-1", Values: []string{"k", "v"}}).Result())
	xlen := c.XLen(ctx, "log")
	say("xlen", xlen, xlen.Val())
	c.XGroupCreate(ctx, "log", "g", "0")
	read, err := c.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "g", Consumer: "c", Streams: []string{"log", ">"}}).Result()
	if err == nil {
		m := read[0].Messages[0]
		s.say("xreadgroup", fmt.Sprintf("%s k=%s", m.ID, m.Values["k"]), nil)
	} else {
		s.say("xreadgroup", "", err)
	}
	pending, err := c.XPending(ctx, "log", "g").Result()
	s.say("xpending", pending.Count, err)
	xack := c.XAck(ctx, "log", "g", "1-1")
	say("xack", xack, xack.Val())
	c.PFAdd(ctx, "seen", "a", "b", "c", "a")
	pf := c.PFCount(ctx, "seen")
	say("pfcount", pf, pf.Val())
	c.GeoAdd(ctx, "Sicily", &redis.GeoLocation{Longitude: 13.361389, Latitude: 38.115556, Name: "Palermo"},
		&redis.GeoLocation{Longitude: 15.087269, Latitude: 37.502669, Name: "Catania"})
	dist := c.GeoDist(ctx, "Sicily", "Palermo", "Catania", "km")
	say("geodist", dist, dist.Val())
	words("geosearch")(joined(c.GeoSearch(ctx, "Sicily",
		&redis.GeoSearchQuery{Longitude: 13, Latitude: 38, Radius: 300, RadiusUnit: "km", Sort: "ASC"}).Result()))
	c.RPush(ctx, "nums", 3, 1, 2)
	words("sort")(joined(c.Sort(ctx, "nums", &redis.Sort{}).Result()))
	dump, err := c.Dump(ctx, "user:1").Result()
	if err == nil {
		err = c.Restore(ctx, "user:2", 0, dump).Err()
	}
	s.say("restore", c.HGet(ctx, "user:2", "name").Val(), err)
	s.say("wrong type", c.LPush(ctx, "user:1", "x").Err(), nil)
	return s.out.String()
}

func scored(z []redis.Z, err error) (string, error) {
	var parts []string
	for _, x := range z {
		parts = append(parts, fmt.Sprintf("%v=%v", x.Member, x.Score))
	}
	return strings.Join(parts, " "), err
}

func containersByRueidis(t *testing.T, addr string) string {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := transcriber{t: t}
	do := func(b rueidis.Completed) rueidis.RedisResult { return c.Do(ctx, b) }
	number := func(name string, b rueidis.Completed) {
		v, err := do(b).AsInt64()
		s.say(name, v, err)
	}
	list := func(name string, f func([]string, error) (string, error), b rueidis.Completed) {
		v, err := f(do(b).AsStrSlice())
		s.say(name, v, err)
	}
	word := func(name string, b rueidis.Completed) {
		v, err := do(b).ToString()
		s.say(name, v, err)
	}
	must := func(b rueidis.Completed) {
		if err := do(b).Error(); err != nil {
			t.Error(err)
		}
	}
	number("hset", c.B().Hset().Key("user:1").FieldValue().FieldValue("name", "Ada").FieldValue("age", "36").Build())
	all, err := do(c.B().Hgetall().Key("user:1").Build()).AsStrMap()
	s.say("hgetall", fmt.Sprintf("age=%s name=%s", all["age"], all["name"]), err)
	number("hincrby", c.B().Hincrby().Key("user:1").Field("age").Increment(1).Build())
	number("rpush", c.B().Rpush().Key("jobs").Element("a", "b", "c").Build())
	list("lrange", joined, c.B().Lrange().Key("jobs").Start(0).Stop(-1).Build())
	word("lmove", c.B().Lmove().Source("jobs").Destination("done").Left().Right().Build())
	popped := make(chan rueidis.RedisResult, 1)
	go func() { popped <- do(c.B().Blpop().Key("queue").Timeout(10).Build()) }()
	for ctx.Err() == nil {
		if info, err := do(c.B().Info().Section("clients").Build()).ToString(); err != nil || strings.Contains(info, "blocked_clients:1") {
			break
		}
	}
	must(c.B().Rpush().Key("queue").Element("x").Build())
	v, err := joined((<-popped).AsStrSlice())
	s.say("blpop", v, err)
	number("sadd", c.B().Sadd().Key("tags").Member("red", "green", "blue").Build())
	list("smembers", sorted, c.B().Smembers().Key("tags").Build())
	must(c.B().Sadd().Key("others").Member("red", "blue", "black").Build())
	list("sinter", sorted, c.B().Sinter().Key("tags", "others").Build())
	number("zadd", c.B().Zadd().Key("board").ScoreMember().ScoreMember(10, "ann").ScoreMember(20.5, "bob").ScoreMember(15, "cat").Build())
	z, err := do(c.B().Zrange().Key("board").Min("0").Max("-1").Withscores().Build()).AsZScores()
	s.say("zrange", zscores(z), err)
	number("zrank", c.B().Zrank().Key("board").Member("bob").Build())
	top, err := do(c.B().Zpopmin().Key("board").Build()).AsZScore()
	s.say("zpopmin", zscores([]rueidis.ZScore{top}), err)
	word("xadd", c.B().Xadd().Key("log").Id("1-1").FieldValue().FieldValue("k", "v").Build())
	number("xlen", c.B().Xlen().Key("log").Build())
	must(c.B().XgroupCreate().Key("log").Group("g").Id("0").Build())
	read, err := do(c.B().Xreadgroup().Group("g", "c").Streams().Key("log").Id(">").Build()).AsXRead()
	if err == nil {
		s.say("xreadgroup", fmt.Sprintf("%s k=%s", read["log"][0].ID, read["log"][0].FieldValues["k"]), nil)
	} else {
		s.say("xreadgroup", "", err)
	}
	pending, err := do(c.B().Xpending().Key("log").Group("g").Build()).ToArray()
	n, err2 := pending[0].AsInt64()
	s.say("xpending", n, err)
	if err2 != nil {
		t.Error(err2)
	}
	number("xack", c.B().Xack().Key("log").Group("g").Id("1-1").Build())
	must(c.B().Pfadd().Key("seen").Element("a", "b", "c", "a").Build())
	number("pfcount", c.B().Pfcount().Key("seen").Build())
	must(c.B().Geoadd().Key("Sicily").LongitudeLatitudeMember().LongitudeLatitudeMember(13.361389, 38.115556,
		"Palermo").LongitudeLatitudeMember(15.087269, 37.502669, "Catania").Build())
	dist, err := do(c.B().Geodist().Key("Sicily").Member1("Palermo").Member2("Catania").Km().Build()).AsFloat64()
	s.say("geodist", dist, err)
	list("geosearch", joined, c.B().Geosearch().Key("Sicily").Fromlonlat(13, 38).Byradius(300).Km().Asc().Build())
	must(c.B().Rpush().Key("nums").Element("3", "1", "2").Build())
	list("sort", joined, c.B().Sort().Key("nums").Build())
	dump, err := do(c.B().Dump().Key("user:1").Build()).ToString()
	if err == nil {
		err = do(c.B().Restore().Key("user:2").Ttl(0).SerializedValue(dump).Build()).Error()
	}
	name, _ := do(c.B().Hget().Key("user:2").Field("name").Build()).ToString()
	s.say("restore", name, err)
	s.say("wrong type", do(c.B().Lpush().Key("user:1").Element("x").Build()).Error(), nil)
	return s.out.String()
}

func zscores(z []rueidis.ZScore) string {
	var parts []string
	for _, x := range z {
		parts = append(parts, fmt.Sprintf("%s=%v", x.Member, x.Score))
	}
	return strings.Join(parts, " ")
}
