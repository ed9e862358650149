package kit

import (
	"context"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/conn"
)

// sweepMost is the number of keys that Sweep checks, and removes, in a round trip.
const sweepMost = 200

// Sweep removes the keys that begin with one of some prefixes and hold one of some types,
// "hash" or "zset", any type if there are none. It is for keys that an object cannot list.
// It checks all keys of the backend: O(keys).
func Sweep(ctx context.Context, c *conn.Conn, prefixes []string, types ...string) error {
	if len(prefixes) == 0 {
		return nil
	}
	shared := prefixes[0]
	for _, p := range prefixes[1:] {
		for !strings.HasPrefix(p, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	var some []string
	for key, err := range c.Scan(ctx, Escape(shared)+"*") {
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			continue
		}
		if some = append(some, key); len(some) == sweepMost {
			if err := unlink(ctx, c, some, types); err != nil {
				return err
			}
			some = some[:0]
		}
	}
	return unlink(ctx, c, some, types)
}

// unlink removes those of some keys that hold one of the types.
func unlink(ctx context.Context, c *conn.Conn, keys, types []string) error {
	if len(keys) == 0 {
		return nil
	}
	var look, gone conn.Batch
	for _, k := range keys {
		look.Do("TYPE", k)
	}
	found, err := c.Pipeline(ctx, &look)
	if err != nil {
		return err
	}
	for i, v := range found {
		if err := v.Err(); err != nil {
			return err
		}
		if len(types) == 0 || slices.Contains(types, v.String()) {
			gone.Do("UNLINK", keys[i])
		}
	}
	removed, err := c.Pipeline(ctx, &gone)
	for _, v := range removed {
		if err == nil {
			err = v.Err()
		}
	}
	return err
}

// Escape returns a pattern that matches only the name.
func Escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if strings.IndexByte(`*?[]\^-`, name[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(name[i])
	}
	return b.String()
}
