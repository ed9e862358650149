package clienttest

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// rueidis caches what it has read, and the server notifies it of changes.
func TestACachingClientNeverKeepsWhatHasChanged(t *testing.T) {
	for _, s := range []struct {
		name  string
		start func(t *testing.T) string
	}{
		{"redis-server", func(t *testing.T) string { return realserver.Start(t, "redis-server") }},
		{"ebb", startEbb},
	} {
		for _, mode := range []struct {
			name    string
			options []string // of CLIENT TRACKING; rueidis's own if nil
		}{{"opt-in", nil}, {"broadcast", []string{"PREFIX", "cached:", "BCAST"}}} {
			t.Run(mode.name+" on "+s.name, func(t *testing.T) {
				t.Parallel()
				checkCaching(t, s.start(t), mode.options)
			})
		}
	}
}

func checkCaching(t *testing.T, addr string, options []string) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	reader, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ClientTrackingOptions: options})
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	writer, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	read := func(key string) (value string, hit bool) {
		r := reader.DoCache(ctx, reader.B().Get().Key(key).Cache(), time.Minute)
		value, err := r.ToString()
		if err != nil && !rueidis.IsRedisNil(err) {
			t.Fatal(err)
		}
		return value, r.IsCacheHit()
	}
	hits := 0
	for i := range 50 {
		key, want := fmt.Sprintf("cached:%d", i%5), strconv.Itoa(i)
		if err := writer.Do(ctx, writer.B().Set().Key(key).Value(want).Build()).Error(); err != nil {
			t.Fatal(err)
		}
		// The invalidation is on its way: it must come, and soon.
		for {
			if v, _ := read(key); v == want {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("%s never became %s", key, want)
			}
		}
		if v, hit := read(key); hit {
			hits++
			if v != want {
				t.Fatalf("the cache has %q, want %q", v, want)
			}
		}
	}
	if hits < 45 {
		t.Errorf("%d of 50 second reads came from the cache", hits)
	}
}
