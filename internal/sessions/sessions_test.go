package sessions

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// each runs a test on each kind of backend, and in virtual time also without ebb's own commands.
func each(t *testing.T, test func(t *testing.T, b *backends.Backend, open func(idle time.Duration) *Store)) {
	t.Helper()
	run := func(t *testing.T, b *backends.Backend, c *ebb.Conn) {
		name := b.Name("s")
		test(t, b, func(idle time.Duration) *Store {
			s, err := New(c, "sessions", name, idle)
			must(t, err)
			return s
		})
	}
	t.Run("as-it-is", func(t *testing.T) { backends.Each(t, func(t *testing.T, b *backends.Backend) { run(t, b, b.Conn) }) })
	t.Run("plain", func(t *testing.T) {
		backends.Virtual(t, func(t *testing.T, b *backends.Backend) { run(t, b, b.Hidden()) })
	})
}

func (s *Store) want(t *testing.T, token, data string, found bool) {
	t.Helper()
	got, ok, err := s.Find(context.Background(), token)
	if err != nil || ok != found || string(got) != data {
		t.Errorf("%s: got %q, %v, %v, want %q, %v", token, got, ok, err, data, found)
	}
}

func (s *Store) save(t *testing.T, token, data string, life time.Duration) {
	t.Helper()
	if ok, err := s.Save(context.Background(), token, []byte(data), life, false); err != nil || !ok {
		t.Fatal(ok, err)
	}
}

func (s *Store) all(t *testing.T) string {
	t.Helper()
	all := map[string]string{}
	for x, err := range s.All(context.Background()) {
		must(t, err)
		all[x.Token] = string(x.Data)
	}
	return fmt.Sprint(all)
}

func TestASessionIsFoundUntilItIsDeletedOrItsLifeEnds(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, open func(time.Duration) *Store) {
		ctx := b.Context()
		for _, idle := range []time.Duration{0, time.Minute} {
			s := open(idle)
			s.want(t, "a", "", false)
			s.save(t, "a", "one\x00", time.Hour)
			s.save(t, "b", "", time.Hour)
			s.save(t, "}{", "odd", time.Hour)
			s.want(t, "a", "one\x00", true)
			s.save(t, "a", "two", time.Hour)
			s.want(t, "a", "two", true)
			s.want(t, "b", "", true)
			if got := s.all(t); got != "map[a:two b: }{:odd]" {
				t.Error(got)
			}
			must(t, s.Delete(ctx, "a", "never", "}{"))
			s.want(t, "a", "", false)
			s.save(t, "c", "over", -1)
			s.save(t, "b", "over", 0)
			if got := s.all(t); got != "map[]" {
				t.Error(got)
			}
			must(t, b.Set(ctx, s.key("d"), "another program's"))
			s.want(t, "d", "", false)
			must(t, s.Delete(ctx, "d"))
			s.save(t, "e", "short", 50*time.Millisecond)
			s.want(t, "e", "short", true)
			b.Until("its life ends", func() bool { _, ok, err := s.Find(ctx, "e"); return err == nil && !ok })
			if got := s.all(t); got != "map[]" {
				t.Error(got)
			}
		}
	})
}

func TestASessionThatWasDeletedMeanwhileDoesNotComeBack(t *testing.T) {
	each(t, func(t *testing.T, b *backends.Backend, open func(time.Duration) *Store) {
		ctx := b.Context()
		for _, idle := range []time.Duration{0, time.Minute} {
			s := open(idle)
			s.save(t, "a", "one", time.Hour)
			if ok, err := s.Save(ctx, "a", []byte("two"), time.Hour, true); !ok || err != nil {
				t.Error(ok, err)
			}
			must(t, s.Delete(ctx, "a"))
			if ok, err := s.Save(ctx, "a", []byte("three"), time.Hour, true); ok || err != nil {
				t.Error(ok, err)
			}
			s.want(t, "a", "", false)
		}
	})
}

func TestAnIdleSessionEndsAndAUsedOneLivesUntilItsEnd(t *testing.T) {
	for _, way := range []string{"as-it-is", "plain"} {
		t.Run(way, func(t *testing.T) {
			backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
				c := b.Conn
				if way == "plain" {
					c = b.Hidden()
				}
				s, err := New(c, "sessions", b.Name("s"), time.Minute)
				must(t, err)
				s.save(t, "idle", "x", time.Hour)
				s.save(t, "listed", "x", time.Hour)
				s.save(t, "used", "x", time.Hour)
				for range 60 {
					b.Pass(59 * time.Second)
					s.want(t, "used", "x", true)
					if got := s.all(t); got != "map[idle:x listed:x used:x]" && got != "map[used:x]" {
						t.Fatal(got)
					}
				}
				if n, err := b.Do(b.Context(), "DBSIZE"); err != nil || n.Int != 1 {
					t.Errorf("%d keys, %v: idle sessions and copies are left", n.Int, err)
				}
				s.want(t, "idle", "", false)
				b.Pass(59 * time.Second)
				s.want(t, "used", "x", true) // 59 minutes and 59 seconds
				b.Pass(2 * time.Second)
				if got := s.all(t); got != "map[]" {
					t.Error("after its end:", got)
				}
				s.want(t, "used", "", false)
			})
		})
	}
}

func TestOnRealTimeAnIdleSessionEndsAndAUsedOneDoesNot(t *testing.T) {
	const idle = 500 * time.Millisecond
	each(t, func(t *testing.T, b *backends.Backend, open func(time.Duration) *Store) {
		s := open(idle)
		s.save(t, "idle", "x", time.Hour)
		s.save(t, "used", "x", time.Hour)
		last := time.Now()
		b.Until("the idle one ends", func() bool {
			b.Pass(10 * time.Millisecond)
			if time.Since(last) > idle/2 { // a machine that is busy elsewhere proves nothing
				s.save(t, "used", "x", time.Hour)
			}
			s.want(t, "used", "x", true)
			last = time.Now()
			return s.all(t) == "map[used:x]"
		})
	})
}

func TestBadArgumentsAreRefused(t *testing.T) {
	backends.Virtual(t, func(t *testing.T, b *backends.Backend) {
		for name, err := range map[string]error{
			"conn": second(New(nil, "sessions", "x", 0)), "name": second(New(b.Conn, "sessions", "", 0)),
			"idle": second(New(b.Conn, "sessions", "x", 1)),
		} {
			if !errors.Is(err, ebb.ErrArgument) {
				t.Error(name, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
