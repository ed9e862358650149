package remote

import (
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/routing"
)

// FanOut runs a command that concerns all masters of a cluster; addrs is sorted. on runs
// it on the master at an index of addrs. word converts the cursor of that master's SCAN to
// an argument. T is the driver's type of arguments.
func FanOut[T any](run routing.FanOutFunc, args []T, word func(string) T, addrs []string,
	on func(at int, args []T) (conn.Value, error)) (conn.Value, error) {
	return run(addrs, func(at int, cursor string) (conn.Value, error) {
		if cursor == "" {
			return on(at, args)
		}
		own := append([]T{args[0], word(cursor)}, args[2:]...)
		return on(at, own)
	})
}
