package redisson

import (
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/expset"
	"github.com/ebbdb/ebb/internal/layouts"
)

// NewSetCache returns Redisson's RSetCache, a set whose members expire, as a set of package expset:
// a sorted set by deadline, in ms since 1970, with 92233720368547758 for none. The codec of the Java
// programs is StringCodec, or one that writes what opts.Codec writes. The set has no Events.
// NewSetCache sends nothing to the backend. Errors: ebb.ErrArgument.
func NewSetCache[T comparable](c *conn.Conn, name string, opts ...expset.Options[T]) (*expset.Set[T], error) {
	opts = append([]expset.Options[T](nil), opts...)
	if len(opts) == 0 {
		opts = make([]expset.Options[T], 1)
	}
	opts[0].Layout = (*expset.Layout)(layouts.SetCache)
	return expset.New(c, name, opts...) // which refuses a second value
}
