// Command encodings watches the leaderboard of a game change its form as players
// join: compact while it is small, indexed from a size on that CONFIG decides.
package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/example"
)

func main() { example.Main(run) }

const board = "leaderboard"

func run(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	restore, err := configured(ctx, c, w)
	if err != nil {
		return err
	}
	defer restore()
	if err := grow(ctx, c, w); err != nil {
		return err
	}
	if err := longName(ctx, c, w); err != nil {
		return err
	}
	if err := oldNames(ctx, c, w); err != nil {
		return err
	}
	_, err = c.Del(ctx, board)
	return err
}

// directives limit the compact form. The last two are their names in Redis before version
// 7.
var directives = []string{"zset-max-listpack-entries", "zset-max-listpack-value", "zset-max-ziplist-entries", "zset-max-ziplist-value"}

// configured sets the directives that the example expects, and returns a function that
// restores them.
func configured(ctx context.Context, c *ebb.Conn, w io.Writer) (restore func(), err error) {
	before := map[string]string{}
	for _, d := range directives {
		v, err := c.Do(ctx, "CONFIG", "GET", d)
		if err != nil {
			return nil, err
		}
		limit, _ := v.Get(d)
		before[d] = limit.String()
		fmt.Fprintf(w, "%-26s %s\n", d, limit)
	}
	restore = func() {
		_, _ = c.Do(context.WithoutCancel(ctx), "CONFIG", "SET", directives[0], before[directives[0]], directives[1], before[directives[1]])
	}
	_, err = c.Do(ctx, "CONFIG", "SET", directives[0], 128, directives[1], 64)
	return restore, err
}

// grow adds players until the board is large, and prints its form on the way.
func grow(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintf(w, "\n%-8s  %-9s  %9s  %9s  %s\n", "players", "encoding", "bytes", "a player", "third best")
	if _, err := c.Del(ctx, board); err != nil {
		return err
	}
	joined := 0
	for _, size := range []int{8, 64, 127, 128, 129, 512, 4096} {
		var b ebb.Batch
		for ; joined < size; joined++ {
			// Scores go up and down, but the best players are the last ones.
			b.Do("ZADD", board, joined*10+joined%7, fmt.Sprintf("player-%05d", joined))
		}
		if _, err := c.Pipeline(ctx, &b); err != nil {
			return err
		}
		if err := look(ctx, c, w, size); err != nil {
			return err
		}
	}
	// A container that shrinks keeps the large form: it may grow again.
	if _, err := c.Do(ctx, "ZREMRANGEBYRANK", board, 0, -11); err != nil {
		return err
	}
	fmt.Fprintln(w, "all but the best ten leave")
	return look(ctx, c, w, 10)
}

func look(ctx context.Context, c *ebb.Conn, w io.Writer, size int) error {
	var b ebb.Batch
	b.Do("OBJECT", "ENCODING", board)
	b.Do("MEMORY", "USAGE", board, "SAMPLES", 0)
	b.Do("ZREVRANGE", board, 2, 2, "WITHSCORES")
	replies, err := c.Pipeline(ctx, &b)
	if err != nil {
		return err
	}
	used, err := replies[1].AsInt()
	if err != nil {
		return err
	}
	third, err := scores(replies[2])
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%8d  %-9s  %9d  %9.1f  %s\n", size, replies[0], used, float64(used)/float64(size), third)
	return nil
}

// scores returns members and scores as text. A reply has them as pairs or one after the
// other.
func scores(v ebb.Value) (string, error) {
	if err := v.Err(); err != nil {
		return "", err
	}
	var all []string
	for _, e := range v.Elems {
		if len(e.Elems) == 2 {
			all = append(all, e.Elems[0].String(), e.Elems[1].String())
		} else {
			all = append(all, e.String())
		}
	}
	return strings.Join(all, " "), nil
}

// longName shows the other limit: one long member is enough for the large form.
func longName(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	fmt.Fprintln(w)
	for _, n := range []int{64, 65} {
		var b ebb.Batch
		b.Do("DEL", board)
		b.Do("ZADD", board, 1, "ann", 2, strings.Repeat("x", n))
		b.Do("OBJECT", "ENCODING", board)
		replies, err := c.Pipeline(ctx, &b)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "two players, one with a name of %d bytes: %s\n", n, replies[2])
	}
	return nil
}

// oldNames sets the limit by its name in old configuration files.
func oldNames(ctx context.Context, c *ebb.Conn, w io.Writer) error {
	var b ebb.Batch
	b.Do("CONFIG", "SET", "zset-max-ziplist-entries", 4)
	b.Do("CONFIG", "GET", "zset-max-listpack-entries")
	b.Do("DEL", board)
	b.Do("ZADD", board, 1, "a", 2, "b", 3, "c", 4, "d")
	b.Do("OBJECT", "ENCODING", board)
	b.Do("ZADD", board, 5, "e")
	b.Do("OBJECT", "ENCODING", board)
	replies, err := c.Pipeline(ctx, &b)
	if err != nil {
		return err
	}
	limit, _ := replies[1].Get("zset-max-listpack-entries")
	fmt.Fprintf(w, "\nCONFIG SET zset-max-ziplist-entries 4: zset-max-listpack-entries is %s\n", limit)
	fmt.Fprintf(w, "4 players: %s, 5 players: %s\n", replies[4], replies[6])
	return nil
}
