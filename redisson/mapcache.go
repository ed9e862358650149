package redisson

import (
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/expmap"
	"github.com/ebbdb/ebb/internal/layouts"
)

// NewMapCache returns Redisson's RMapCache, a map whose entries expire, as a map of package expmap:
//
//	name                                        a hash; a value is a double (the idle time, ms), its length as uint64, and the value
//	redisson__timeout__set:{name}               a sorted set of deadlines, in ms
//	redisson__idle__set:{name}                  a sorted set of deadlines by idle time
//	redisson__map_cache__last_access__set:{name} the last use of each entry, and
//	{name}:redisson_options                     the size and the mode, of a map with trySetMaxSize
//
// The codec of the Java programs is StringCodec, or one that writes what opts.Keys and opts.Codec
// write. The map has no Events; IdleTTL is that of the entries that this program writes. With an
// Eviction the first call sets the map's size and mode, as trySetMaxSize does; a size that is set
// already holds for all programs, whatever their options say. NewMapCache sends nothing to the
// backend. Errors: ebb.ErrArgument.
func NewMapCache[K comparable, V any](c *conn.Conn, name string, opts ...expmap.Options[K, V]) (*expmap.Map[K, V], error) {
	opts = append([]expmap.Options[K, V](nil), opts...)
	if len(opts) == 0 {
		opts = make([]expmap.Options[K, V], 1)
	}
	opts[0].Layout = (*expmap.Layout)(layouts.MapCache)
	return expmap.New(c, name, opts...) // which refuses a second value
}
