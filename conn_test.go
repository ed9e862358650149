package ebb_test

import (
	"context"
	"errors"
	"math"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/clock"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestArgumentsHaveOneText(t *testing.T) {
	type name string
	type size uint16
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		for _, test := range []struct {
			arg  any
			want string
		}{
			{"a\r\n\x00b", "a\r\n\x00b"}, {[]byte("bytes"), "bytes"}, {-7, "-7"}, {uint64(1 << 63), "9223372036854775808"},
			{int8(-8), "-8"}, {size(9), "9"}, {name("n"), "n"}, {true, "1"}, {false, "0"}, {0.1, "0.1"}, {float32(0.1), "0.1"},
			{1e21, "1000000000000000000000"}, {net.IPv4(10, 0, 0, 1), "10.0.0.1"}, {"", ""},
		} {
			must(t, c.Set(ctx, "k", test.arg))
			check(t, "get", test.want)(c.Get(ctx, "k"))
		}
		for _, bad := range []any{nil, time.Second, time.Unix(0, 0), struct{}{}, []string{"a"}} {
			wantErr(t, "an argument without a text", ebb.ErrArgument)(nil, c.Set(ctx, "k", bad))
			var b ebb.Batch
			b.Do("DEL", "k")
			b.Do("SET", "k", bad)
			_, err := c.Tx(ctx, &b)
			wantErr(t, "in a transaction", ebb.ErrArgument)(nil, err)
			_, err = c.Pipeline(ctx, &b)
			wantErr(t, "in a pipeline", ebb.ErrArgument)(nil, err)
		}
		check(t, "what a refused batch left", int64(1))(c.Exists(ctx, "k"))
		_, err := c.Do(ctx)
		wantErr(t, "no command", ebb.ErrArgument)(nil, err)
		_, err = c.Do(ctx, []byte("PING"))
		must(t, err)
	})
}

func TestCommandsThatChangeTheConnectionAreRefused(t *testing.T) {
	c := open(t, "mem://")
	ctx := testContext(t)
	for _, line := range []string{"MULTI", "exec", "Watch k", "SELECT 1", "HELLO 3", "SUBSCRIBE c", "MONITOR", "QUIT", "CLIENT REPLY OFF",
		"client no-touch on", "SCRIPT DEBUG YES", "replconf ack 1"} {
		var args []any
		for _, w := range strings.Fields(line) {
			args = append(args, w)
		}
		_, err := c.Do(ctx, args...)
		wantErr(t, line, ebb.ErrStateful)(nil, err)
		var b ebb.Batch
		b.Do(args...)
		_, err = c.Pipeline(ctx, &b)
		wantErr(t, line, ebb.ErrStateful)(nil, err)
	}
}

func TestEnginesAreSharedByName(t *testing.T) {
	ctx := testContext(t)
	a, b, other, own := open(t, "mem://shop"), open(t, "mem://shop"), open(t, "mem://shop/1"), open(t, "mem://")
	must(t, a.Set(ctx, "k", "v"))
	check(t, "get through the other", "v")(b.Get(ctx, "k"))
	for _, c := range []*ebb.Conn{other, own} {
		_, err := c.Get(ctx, "k")
		wantErr(t, c.String(), ebb.ErrNil)(nil, err)
	}
	_, err := ebb.Open(ctx, "mem://shop", ebb.Options{Clock: clock.NewManual(time.Unix(1, 0))})
	wantErr(t, "another clock", ebb.ErrArgument)(nil, err)
	must(t, a.Close())
	check(t, "get after one closed", "v")(b.Get(ctx, "k"))
	must(t, b.Close())
	must(t, other.Close())
	_, err = open(t, "mem://shop").Get(ctx, "k")
	wantErr(t, "a new engine of the old name", ebb.ErrNil)(nil, err)
}

func TestBadURLsSayWhatWouldBeRight(t *testing.T) {
	for url, hint := range map[string]string{
		"localhost:6379":            "redis://127.0.0.1:6379",
		"http://localhost":          "none of mem, file, redis",
		"file://":                   "takes a directory",
		"file:///tmp?fsync=often":   "always, everysec or no",
		"file:///tmp?sync=always":   `the parameters fsync, db, maxmemory, maxmemory-policy`,
		"redis+sentinel://h1,h2":    "name the master",
		"redis+sentinel://h1,,h2/m": "separated by commas",
		"redis+sentinel://h1/m/x":   "database",
		"redis+cluster://h1:6379/1": "database 0 alone",
		"redis+cluster://h1?pool=3": "pool",
		"mem://x#3":                 "mem://sessions/3",
		"mem://x?fsync=always":      `mem:// has the parameters maxmemory, maxmemory-policy, maxmemory-samples`,
		"mem://?maxmemory=much":     `maxmemory takes a size such as 100mb or 1gb, or a percentage of the machine's memory such as 70%, not "much"`,
		"mem://?maxmemory=":         `maxmemory takes a size`,
		"mem://?maxmemory=70%":      "% is written %25",
		"mem://?maxmemory-policy=x": "maxmemory-policy takes one of volatile-lru,",
		"file://t?maxmemory=1xb":    "maxmemory takes a size",
		"mem://x/16":                "0 to 15",
		"redis://h/notadb":          "database",
		"redis://h/-1":              "from 0 on",
		"redis://h?db=-3":           "from 0 on",
		"redis://h?db=1;protocol=2": "separated by &",
		"file:///tmp?db=1;fsync=no": "separated by &",
		"redis://:12#34@h":          "%23",
		"redis+cluster://h1#x":      "%23",
	} {
		_, err := ebb.Open(testContext(t), url)
		if !errors.Is(err, ebb.ErrURL) || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s: %v; want a hint of %q", url, err, hint)
		}
	}
	_, err := ebb.Open(testContext(t), "redis://me:secret@127.0.0.1:1")
	if !errors.Is(err, ebb.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("no subscriber: %v", err)
	}
}

func TestPasswordsAreNotShown(t *testing.T) {
	for _, url := range []string{
		"redis://me:secret@host:bad/0",
		"redis://me:secret/x@host/0",
		"redis://me:secret%zz@host",
		"redis://me:secret@host/0?nope=1",
		"me:secret@host:6379",
		"mem://me:secret@x:y",
		"mem://me:secret@x",
		"file://me:secret@%zz",
		"redis+cluster://me:secret@h1:bad,h2",
		"redis://:12/secret@h",
		"redis://:12?secret@h",
		"redis://:12#secret@h",
		"redis+sentinel://me:12/secret@h1/m",
		"redis+sentinel://me:12?secret@h1/m",
		"redis+cluster://me:12#secret@h1",
		"redis+sentinel://me:secret@h1/m?sentinel_password=secret&nope=1",
		"redis+sentinel://me:secret@h1/m?sentinel_password=secret%zz",
	} {
		_, err := ebb.Open(testContext(t), url)
		if !errors.Is(err, ebb.ErrURL) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestErrorsKeepTheContextsVisible(t *testing.T) {
	// A server that accepts and never answers.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = ebb.Open(ctx, "redis://"+ln.Addr().String())
	wantErr(t, "open", context.DeadlineExceeded)(nil, err)
	if errors.Is(err, ebb.ErrUnavailable) {
		t.Errorf("the backend is blamed: %v", err)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	c := open(t, "mem://")
	_, err = c.Get(gone, "k")
	wantErr(t, "get", context.Canceled)(nil, err)
	_, err = c.Subscribe(gone, "c")
	wantErr(t, "subscribe", context.Canceled)(nil, err)
	_, err = ebb.Open(gone, "mem://")
	wantErr(t, "open", context.Canceled)(nil, err)
}

func TestABlockedCallEndsWithItsContext(t *testing.T) {
	c := open(t, "redis://"+realserver.Start(t, "redis-server"))
	for range 3 { // the second finds no spoilt connection
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := c.Block(ctx, "BLPOP", "queue", 0)
			done <- err
		}()
		waitFor(t, c, "blocked_clients:1")
		cancel()
		wantErr(t, "block", context.Canceled)(nil, <-done)
		waitFor(t, c, "blocked_clients:0")
	}
	ctx := testContext(t)
	_, err := c.Do(ctx, "RPUSH", "queue", "job")
	must(t, err)
	v, err := c.Block(ctx, "BLPOP", "queue", 0)
	must(t, err)
	if got, _ := v.AsStrings(); len(got) != 2 || got[1] != "job" {
		t.Errorf("BLPOP: %v", v)
	}
}

// waitFor asks the server until INFO has a line.
func waitFor(t *testing.T, c *ebb.Conn, line string) {
	t.Helper()
	for {
		v, err := c.Do(testContext(t), "INFO", "clients")
		must(t, err)
		if strings.Contains(v.Str, line+"\r\n") {
			return
		}
	}
}

func TestManyGoroutinesShareAConn(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		ctx := testContext(t)
		const goroutines, rounds = 100, 20
		var all sync.WaitGroup
		for range goroutines {
			all.Go(func() {
				var b ebb.Batch
				b.Do("INCR", "{n}b")
				b.Do("INCR", "{n}c")
				for range rounds {
					if _, err := c.Incr(ctx, "a"); err != nil {
						t.Error(err)
						return
					}
					if r, err := c.Tx(ctx, &b); err != nil || r[0].Int != r[1].Int {
						t.Errorf("not as one: %v, %v", r, err)
						return
					}
				}
			})
		}
		all.Wait()
		check(t, "sum", "2000")(c.Get(ctx, "a"))
	})
}

func TestAConnSaysHowItRuns(t *testing.T) {
	c := open(t, "mem://")
	if s := c.String(); !strings.Contains(s, "in this process") {
		t.Error(s)
	}
	if got := c.Capabilities(); !got.Native || !got.Embedded {
		t.Errorf("%+v", got)
	}
	for _, s := range servers {
		c := open(t, "redis://"+s.start(t))
		if got := c.Capabilities(); got.Native != (s.name == "ebb") || got.Embedded || got.Version == "" {
			t.Errorf("%s: %+v", s.name, got)
		}
		if s := c.String(); strings.Contains(s, "secret") || !strings.Contains(s, "redis://") {
			t.Error(s)
		}
	}
}

func TestADeadlineInCenturiesIsFarAway(t *testing.T) {
	c := open(t, "mem://")
	must(t, c.SetTTL(t.Context(), "k", "v", math.MaxInt64))
	if d, err := c.TTL(t.Context(), "k"); err != nil || d < 100*365*24*time.Hour {
		t.Error(d, err)
	}
}

func TestANilPointerIsNoArgument(t *testing.T) {
	eachBackend(t, func(t *testing.T, c *ebb.Conn) {
		var u *url.URL
		wantErr(t, "a nil pointer that marshals itself", ebb.ErrArgument)(nil, c.Set(testContext(t), "k", u))
		must(t, c.Set(testContext(t), "k", []byte(nil)))
		check(t, "nil bytes", "")(c.Get(testContext(t), "k"))
		must(t, c.Set(testContext(t), "", "v"))
		check(t, "the empty key", "v")(c.Get(testContext(t), ""))
	})
}
