package goredis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/tier"
)

// A server that accepts CLIENT TRACKING and sends nothing, as ebb 0.6 does for a redirection to the
// connection itself, is played by a connection that does not track.
func TestTrackIsUnsupportedIfNoInvalidationComes(t *testing.T) {
	p := realserver.NewProcess(t, realserver.Ebb(t))
	p.Start()
	client := redis.NewClient(&redis.Options{Addr: p.Addr()})
	d := newDriver(client, "test")
	d.owned = true
	c := conn.New(d)
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), tier.Patience)
	defer cancel()
	if err := c.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	sources, a := subscribeOn(ctx, []subscriber{client}, conn.Channels, []string{conn.Tracking}, 10*time.Second)
	if a.Err != nil || len(sources) != 1 {
		t.Fatal(a.Err, a.V)
	}
	defer closeAll(sources)
	if err := (&tracker{d, []string{"k"}}).verify(ctx, sources, 100*time.Millisecond); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v, want errors.ErrUnsupported", err)
	}
}
