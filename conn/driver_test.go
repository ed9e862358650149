package conn_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/embed"
	"github.com/ebbdb/ebb/goredis"
)

// plain is a Driver over a Conn without any of the optional methods.
type plain struct{ c *conn.Conn }

func (p plain) Do(ctx context.Context, args []any) (conn.Value, error) { return p.c.Do(ctx, args...) }
func (p plain) Block(ctx context.Context, args []any) (conn.Value, error) {
	return p.c.Block(ctx, args...)
}

func (p plain) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	return nil, errors.ErrUnsupported
}

func (p plain) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	return nil, errors.ErrUnsupported
}

func (p plain) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	return p.c.Watch(ctx, fn, keys...)
}

func (p plain) Subscribe(ctx context.Context, _ conn.SubscribeKind, names []string) (conn.Feed, error) {
	return p.c.Subscribe(ctx, names...)
}
func (p plain) Capabilities() conn.Capabilities { return p.c.Capabilities() }
func (p plain) String() string                  { return "plain" }
func (p plain) Close() error                    { return p.c.Close() }

// wrapping is a Driver that passes requests on, and whose Unwrap returns the Conn behind it.
type wrapping struct{ plain }

func (w wrapping) Unwrap() *conn.Conn { return w.c }

func openMem(t *testing.T) *conn.Conn {
	t.Helper()
	c, err := embed.Open(t.Context(), "mem://")
	must(t, err)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func TestADriverThatCannotReplicateRefusesTheWritesOfAView(t *testing.T) {
	c, ctx := conn.New(plain{openMem(t)}), t.Context()
	must(t, c.Set(ctx, "k", "v"))
	view := c.Replicated(1, time.Second)
	var b conn.Batch
	b.Do("GET", "k")
	b.Do("DEL", "k")
	want(t, "a read", "v")(view.Get(ctx, "k"))
	_, do := view.Incr(ctx, "n")
	_, block := view.Block(ctx, "BLPOP", "l", 0)
	_, pipeline := view.Pipeline(ctx, &b)
	_, tx := view.Tx(ctx, &b)
	watch := view.Watch(ctx, func(*conn.Watched) error { return nil }, "k")
	for what, err := range map[string]error{"do": do, "block": block, "pipeline": pipeline, "tx": tx, "watch": watch} {
		if !errors.Is(err, conn.ErrArgument) || !strings.Contains(err.Error(), "plain") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s := view.String(); s != "plain, writes on 1 replicas within 1s" {
		t.Errorf("%q", s)
	}
	s, err := view.Subscribe(ctx, "news") // the Conn makes the subscription
	must(t, err)
	must(t, s.Close())
	must(t, view.Close())
	want(t, "closing a view closes nothing", "v")(c.Get(ctx, "k"))
}

func TestAnEngineIsFoundBehindDriversThatWrapIt(t *testing.T) {
	c := openMem(t)
	engine := embed.Of(c)
	if engine == nil {
		t.Fatal("an embedded Conn has no engine")
	}
	twice := conn.New(wrapping{plain{conn.New(wrapping{plain{c}})}})
	for what, x := range map[string]*conn.Conn{"view": c.Replicated(1, time.Second), "wrapped": twice,
		"view of wrapped": twice.Replicated(1, time.Second)} {
		if embed.Of(x) != engine {
			t.Errorf("%s: not the engine", what)
		}
	}
	if embed.Of(conn.New(plain{c})) != nil {
		t.Error("a Driver that does not say what it wraps leads to an engine")
	}
	if embed.Of(nil) != nil {
		t.Error("no Conn leads to an engine")
	}
}

func TestEachDriverOpensItsOwnURLsAlone(t *testing.T) {
	ctx := t.Context()
	for _, url := range []string{"redis://127.0.0.1:6379", "mem", "memory://x", ""} {
		wantErr[*conn.Conn](t, url, conn.ErrURL)(embed.Open(ctx, url))
	}
	for _, url := range []string{"mem://", "file:///tmp", "foo+cluster://h", "foo+bar://h", "127.0.0.1:6379", ""} {
		wantErr[*conn.Conn](t, url, conn.ErrURL)(goredis.Open(ctx, url))
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	wantErr[*conn.Conn](t, "an ended context", context.Canceled)(embed.Open(over, "mem://"))
	wantErr[*conn.Conn](t, "an ended context", context.Canceled)(goredis.Open(over, "redis://127.0.0.1:1"))
}
