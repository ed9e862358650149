package redisson

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

// fresh returns a name that no other test uses.
func fresh(b *backends.Backend, name string) string { return b.Name(name) + "-" + kit.ID()[:8] }

// must returns what a call returned if it did not fail.
func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func failsWith(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}

func same(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%q, want %q", got, want)
	}
}

func second[T any](_ T, err error) error { return err }

// now returns the server's time.
func now(t testing.TB, b *backends.Backend) time.Time {
	t.Helper()
	v := must(b.Do(b.Context(), "TIME"))(t)
	sec, us := must(v.Elems[0].AsInt())(t), must(v.Elems[1].AsInt())(t)
	return time.UnixMilli(sec*1000 + us/1000)
}
