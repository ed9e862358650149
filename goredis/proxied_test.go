package goredis_test

import (
	"testing"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/objects"
)

func TestWhatACallGaveUpIsGivenBackOverProxies(t *testing.T) {
	objects.Proxied(t, ebbServer(t), func(t *testing.T, addr string) *ebb.Conn { return open(t, "redis://"+addr) })
}
