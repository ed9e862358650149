package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/serverurl"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
	"github.com/ebbdb/ebb/server"
)

// startEbb runs a server of ebb until the test ends, and returns its URL.
func startEbb(t *testing.T, directives ...string) (url string) {
	t.Helper()
	s, err := server.Start(t.Context(), server.Config{Addr: "127.0.0.1:0",
		Directives: append([]string{"enable-debug-command yes", "repl-diskless-sync-delay 0"}, directives...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return "redis://" + s.Addr().String()
}

// open returns a connection of the test's own.
func open(t *testing.T, url string) *client {
	t.Helper()
	s, err := serverurl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	c, err := dial(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.nc.Close() })
	return c
}

// run sends a command, written in one string, and returns the reply.
func (c *client) run(t *testing.T, line string) resp.Value {
	t.Helper()
	words, ok := wire.SplitArgs(line)
	if !ok {
		t.Fatalf("not a command: %s", line)
	}
	v, err := c.do(t.Context(), words...)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return v
}

// fill writes keys of all plain types, in two databases if two is set.
func fill(t *testing.T, c *client, n int, two bool) {
	t.Helper()
	for i := range n {
		c.add("SET", fmt.Sprint("string", i), strings.Repeat("x", i%50))
		c.add("SET", fmt.Sprint("timed", i), "v", "PX", fmt.Sprint(1_000_000+i))
		c.add("RPUSH", fmt.Sprint("list", i), "a", fmt.Sprint(i))
		c.add("SADD", fmt.Sprint("set", i), "1", fmt.Sprint(i), "word")
		c.add("ZADD", fmt.Sprint("zset", i), "1.5", "a", fmt.Sprint(i), "b")
		c.add("HSET", fmt.Sprint("hash", i), "f", "v", "g", fmt.Sprint(i))
		c.add("XADD", fmt.Sprint("stream", i%7), "*", "f", fmt.Sprint(i))
		c.add("PFADD", "hll", fmt.Sprint(i))
	}
	if err := c.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 8 * n {
		if v, err := c.reply(t.Context()); err != nil || v.Err() != nil {
			t.Fatal(err, v)
		}
	}
	c.run(t, "XGROUP CREATE stream1 g 0")
	c.run(t, "XREADGROUP GROUP g consumer COUNT 3 STREAMS stream1 >")
	c.run(t, `SET "binary \x00\xff\r\n key" "\x00\x01"`)
	if two {
		c.run(t, "SELECT 5")
		c.run(t, "SET other-database v EX 1000")
		c.run(t, "SELECT 0")
	}
}

// writer changes keys of all types until end, and counts its rounds.
type writer struct {
	c    *client
	gone chan struct{}
	mu   sync.Mutex // guards what follows
	n    int
	told chan struct{} // closed at the next round
	err  error
}

// write starts a writer. tag is in all its keys: in a cluster, a hash tag.
func write(t *testing.T, url, tag string) *writer {
	w := &writer{c: open(t, url), gone: make(chan struct{}), told: make(chan struct{})}
	go func() {
		defer close(w.gone)
		for i := 0; ; i++ {
			key := fmt.Sprint(tag, "w", i%50)
			for _, line := range []string{
				"INCR count" + tag, "SET string" + key + " v" + key, "SET short" + key + " v PX 30", "DEL string" + fmt.Sprint(tag, "w", (i+7)%50),
				"EXPIRE set" + key + " 1000",
				"HSET hash" + key + " f " + key + " g 2", "HDEL hash" + key + " g", "RPUSH list" + key + " a b", "LPOP list" + key,
				"SADD set" + key + " " + key,
				"ZINCRBY zset" + key + " 1 m", "XADD stream" + key + " MAXLEN 10 * f v",
				"XREADGROUP GROUP g consumer COUNT 1 STREAMS stream" + tag + "1 >", "RENAME list" + key + " moved" + key,
				"PERSIST set" + key, "APPEND append" + key + " x", "GETDEL append" + fmt.Sprint(tag, "w", (i+3)%50), "SETEX timed" + key + " 5000 v",
			} {
				if _, err := w.c.do(context.Background(), strings.Fields(line)...); err != nil {
					if refused, ok := errors.AsType[resp.ReplyError](err); ok && strings.HasPrefix(string(refused), "READONLY") {
						return
					}
					w.mu.Lock()
					w.err = fmt.Errorf("%s: %w", line, err)
					w.mu.Unlock()
					return
				}
			}
			w.mu.Lock()
			w.n++
			close(w.told)
			w.told = make(chan struct{})
			w.mu.Unlock()
		}
	}()
	t.Cleanup(func() { w.c.nc.Close(); <-w.gone })
	return w
}

// rounds waits until the writer has made n more rounds.
func (w *writer) rounds(t *testing.T, n int) {
	t.Helper()
	w.mu.Lock()
	n += w.n
	w.mu.Unlock()
	for {
		w.mu.Lock()
		told, now, err := w.told, w.n, w.err
		w.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if now >= n {
			return
		}
		select {
		case <-told:
		case <-w.gone:
		case <-time.After(tier.Patience):
			t.Fatal("the writer does not get on")
		}
	}
}

// log collects the output of a migration; a test may wait for a text.
type log struct {
	t    *testing.T
	mu   sync.Mutex // guards what follows
	text bytes.Buffer
	more chan struct{} // closed at the next Write
}

func newLog(t *testing.T) *log { return &log{t: t, more: make(chan struct{})} }

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	close(l.more)
	l.more = make(chan struct{})
	return len(p), nil
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// until waits for a text.
func (l *log) until(text string) {
	l.t.Helper()
	l.untilTimes(text, 1)
}

// untilTimes waits until a text has come n times.
func (l *log) untilTimes(text string, n int) {
	l.t.Helper()
	for end := time.After(tier.Patience); ; {
		l.mu.Lock()
		has, more := strings.Count(l.text.String(), text) >= n, l.more
		l.mu.Unlock()
		if has {
			return
		}
		select {
		case <-more:
		case <-end:
			l.t.Fatalf("no %q in:\n%s", text, l)
		}
	}
}

// migrating opens a migration, which the end of the test closes.
func migrating(t *testing.T, o Options) (*Migration, *log) {
	t.Helper()
	l := newLog(t)
	o.Out = l
	m, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, l
}

// step runs one step, and returns what it printed.
func step(t *testing.T, o Options, run func(*Migration, context.Context) error) (string, error) {
	t.Helper()
	l := newLog(t)
	o.Out = l
	m, err := Open(t.Context(), o)
	if err != nil {
		return "", err
	}
	defer m.Close()
	err = run(m, t.Context())
	return l.String(), err
}

// follows lets m follow its source until stop, or the end of the test, which waits for it. ended gets what Follow returned.
func follows(t *testing.T, m *Migration) (ended <-chan error, stop context.CancelFunc) {
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	var follow sync.WaitGroup
	follow.Go(func() { result <- m.Follow(ctx) })
	t.Cleanup(func() { // before m is closed
		stop()
		follow.Wait()
	})
	return result, stop
}

// following makes a migration, and lets it follow its source until stop. It returns when the target has the data.
func following(t *testing.T, o Options) (m *Migration, l *log, ended <-chan error, stop context.CancelFunc) {
	m, l = migrating(t, o)
	ended, stop = follows(t, m)
	l.until("TO has the data")
	return m, l, ended, stop
}
