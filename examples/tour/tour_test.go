package main

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/ebbdb/ebb/internal/testing/leaks"
)

// go-redis, which the door knows, keeps a clock of its own from the start of the
// program on.
func TestMain(m *testing.M) {
	leaks.Main(m, goleak.IgnoreTopFunction("github.com/redis/go-redis/v9/internal/pool.startGlobalTimeCache.func1"))
}

// last has what each screen's last picture must say: in virtual time it is exact.
var last = map[string][]string{
	"hash-field-ttl": {"cart      tea, cake  ", "1.0 s", "csrf      gone", "notice    gone", "code      gone", "HLEN session:ann = 3"},
	"rate-limiter":   {"15 granted, 0 refused", "35 granted, 0 refused", "37 granted, 56 refused"},
	"unpaid-orders":  {"o-01 unpaid, 1 ms late", "o-11 unpaid, 1 ms late", "orders:bob     1 of 3"},
	"encodings":      {"264 players: skiplist"},
	"expiry-commands": {"PEXPIRE loan 2000 GT                     0          5.35 s",
		"PERSIST loan                             1          for ever", "expired"},
	"expiry-strategy":              {"DBSIZE      0    events  20400    late in ms: p50 1.0  p99 1.0  max 1.0"},
	"expiry-in-files-and-replicas": {"the engine is open", "seat:1   gone", "seat:2   gone", "seat:3   gone", "appendonly.aof.1.incr.aof"},
	"lock":                         {"×××××××××××", "in line"},
	"queue":                        {"done", "died"},
	"pubsub":                       {"news:*", "─ 15 ─", "─ 4 ─"},
	"delay-queue":                  {"report     │ done, 0.0 ms late   delivery 2", "backup     │ done, 0.0 ms late"},
	"stream":                       {"✓ 1", "✓ 2", "died"},
	"unique-visitors":              {"102400     101578    -0.80%", "bytes: 12304"},
	"sign-in-calendar":             {"BITCOUNT      29", "all three were there on 20 of 30 days"},
	"bloom":                        {"denied though seen: 0"},
	"sliding-window":               {"at worst 6", "at worst 12"},
	"funnel":                       {"try again in, s     -1", "let through  29"},
	"nearby":                       {"on the road   6"},
}

// plays plays one screen in virtual time. The one with files has the time that the
// system gives them, and is fast instead.
func plays(t *testing.T, name string) (picture string, took time.Duration) {
	dir := t.TempDir()
	if name == "expiry-in-files-and-replicas" {
		var out strings.Builder
		if err := Run(context.Background(), Options{Out: &out, Once: name, Speed: 4, Dir: dir}); err != nil {
			t.Fatal(err)
		}
		return out.String(), 6500 * time.Millisecond
	}
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		began := time.Now()
		if err := Run(context.Background(), Options{Out: &out, Once: name, Dir: dir}); err != nil {
			t.Fatal(err)
		}
		picture, took = out.String(), time.Since(began)
	})
	return picture, took
}

func TestScreensShowWhatTheySay(t *testing.T) {
	var all time.Duration
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			picture, took := plays(t, name)
			all += took
			t.Logf("%v\n%s", took, picture)
			for _, want := range last[name] {
				if !strings.Contains(picture, want) {
					t.Errorf("%q is missing in:\n%s", want, picture)
				}
			}
			for line := range strings.Lines(picture) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%d columns: %s", n, line)
				}
			}
			if strings.Contains(picture, "\x1b") {
				t.Error("text has escape codes")
			}
		})
	}
	if len(last) != len(Names()) {
		t.Errorf("%d screens, and %d that are looked at", len(Names()), len(last))
	}
	t.Logf("the tour takes %v", all)
	if all < 100*time.Second || all > 150*time.Second {
		t.Errorf("the tour takes %v, which is not about two minutes", all)
	}
}

func TestTextsFitTheScreen(t *testing.T) {
	for i, s := range screens() {
		head := len("ebb tour   18/18   ") + len(s.title) + len(s.name) + 3
		if head > width {
			t.Errorf("screen %d: title and name take %d columns", i+1, head)
		}
		lines := strings.Split(s.about, "\n")
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > width-2 {
				t.Errorf("screen %d: %d columns: %s", i+1, n, line)
			}
		}
		if len(lines) > 2 {
			t.Errorf("screen %d: %d lines about it", i+1, len(lines))
		}
	}
}

func TestAScreenEndsWithItsContext(t *testing.T) {
	for _, name := range Names() {
		if name == "expiry-in-files-and-replicas" {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 2500*time.Millisecond)
			defer cancel()
			if err := Run(ctx, Options{Once: name}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestKeysLeadThroughTheTour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := &Terminal{keys: make(chan key)}
		var out strings.Builder
		go func() {
			for _, k := range []key{keyNext, keyNext, keyBack, keyOther, keyQuit} {
				time.Sleep(300 * time.Millisecond)
				term.keys <- k
			}
		}()
		began := time.Now()
		if err := Run(context.Background(), Options{Out: &out, Term: term}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d != 1500*time.Millisecond {
			t.Errorf("it took %v", d)
		}
		at := -1
		for _, want := range []string{" 1/18 ", " 2/18 ", " 3/18 ", " 2/18 "} {
			i := strings.Index(out.String()[at+1:], want)
			if i < 0 {
				t.Fatalf("%q does not follow", want)
			}
			at += 1 + i
		}
	})
}

func TestKeysAreRead(t *testing.T) {
	for in, want := range map[string][]key{
		" ": {keyNext}, "n": {keyNext}, "np": {keyNext, keyBack}, "q": {keyQuit}, "\x1b": {keyQuit},
		"\x1b[C": {keyNext}, "\x1b[D": {keyBack}, "\x1b[A": nil, "x": nil, "": nil,
	} {
		if got := keysOf([]byte(in)); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", in, got, want)
		}
	}
}

func TestAPanicIsAnError(t *testing.T) {
	for _, where := range []string{"play", "actor"} {
		synctest.Test(t, func(t *testing.T) {
			o := &Options{Speed: 1}
			s, err := newStage(context.Background(), o, screen{}, 0, 1)
			if err != nil {
				t.Fatal(err)
			}
			err = s.run(func(s *stage) error {
				if where == "play" {
					panic("no")
				}
				s.act(func(context.Context) error { panic("no") })
				return s.show(second, func(*canvas, time.Duration) error { return nil })
			})
			if err == nil || !strings.Contains(err.Error(), "panic: no") {
				t.Errorf("%s: %v", where, err)
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownScreensAreRefused(t *testing.T) {
	err := Run(context.Background(), Options{Once: "tea"})
	if err == nil || !strings.Contains(err.Error(), "lock") {
		t.Errorf("%v", err)
	}
	for _, speed := range []float64{-1, 0.01, 1000, math.NaN(), math.Inf(1)} {
		if err := Run(context.Background(), Options{Speed: speed}); err == nil || !strings.Contains(err.Error(), "0.1 to 50") {
			t.Errorf("a speed of %g: %v", speed, err)
		}
	}
}
