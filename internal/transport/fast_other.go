//go:build !linux

package transport

import (
	"context"
	"net"
	"time"

	"github.com/ebbdb/ebb/internal/reactor"
)

// fastPath has no values on this system: the portable transport serves everything.
type fastPath struct{}

func newFastPath(*Options, *reactor.Gate) (*fastPath, error) { return nil, nil }

func (*fastPath) add(net.Listener, string) (func(), error) { return func() {}, nil }
func (*fastPath) loops() int                               { return 0 }
func (*fastPath) nudge(int)                                {}
func (*fastPath) setKeepAlive(time.Duration)               {}
func (*fastPath) shutdown(context.Context) error           { return nil }
