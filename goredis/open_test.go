package goredis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/ebbdb/ebb/conn"
)

// lines is a log of go-redis that a program has set.
type lines struct{ all []string }

func (l *lines) Printf(_ context.Context, format string, args ...any) {
	l.all = append(l.all, fmt.Sprintf(format, args...))
}

func TestAFailedConnectIsAnErrorAndNoLineOnStandardError(t *testing.T) {
	defer logging.Disable() // as the backends of other tests have it
	refuse := func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }
	open := func(o Options) {
		t.Helper()
		o.Dial = refuse
		if _, err := Open(t.Context(), "redis://127.0.0.1:1", o); !errors.Is(err, conn.ErrUnavailable) {
			t.Errorf("Open returns %v, want ErrUnavailable", err)
		}
	}
	own := &lines{}
	silence = sync.Once{}
	redis.SetLogger(own)
	open(Options{})
	if len(own.all) != 0 {
		t.Errorf("go-redis logs %q", own.all)
	}
	redis.SetLogger(own)
	open(Options{})
	if len(own.all) == 0 {
		t.Error("a log that the program set after the first Open gets nothing")
	}
	var text bytes.Buffer
	silence = sync.Once{}
	open(Options{Logger: slog.New(slog.NewTextHandler(&text, nil))})
	before := text.Len()
	open(Options{})
	if !strings.Contains(text.String(), "go-redis: connection pool: failed to dial") || text.Len() == before {
		t.Errorf("the Logger of an Open gets %q, and later %q", text.String()[:before], text.String()[before:])
	}
}

func TestURLsOfSeveralServers(t *testing.T) {
	a, kind, err := parseServers("rediss+sentinel://me:secret@h1:26380,h2,[::1]/mymaster/3?sentinel_username=watch&sentinel_password=hush&read_timeout=5s")
	if err != nil {
		t.Fatal(err)
	}
	if kind != "sentinel" || a.master != "mymaster" || a.user != "watch" || a.pass != "hush" ||
		!slices.Equal(a.hosts, []string{"h1:26380", "h2:26379", "[::1]:26379"}) {
		t.Errorf("%s %+v", kind, a)
	}
	if a.opt.Username != "me" || a.opt.Password != "secret" || a.opt.DB != 3 || a.opt.ReadTimeout.Seconds() != 5 || a.opt.TLSConfig == nil {
		t.Errorf("%+v", a.opt)
	}
	if strings.Contains(a.name, "secret") || strings.Contains(a.name, "hush") || !strings.Contains(a.name, "h1:26380,h2:26379") {
		t.Error(a.name)
	}
	for url, addr := range map[string]string{"redis://[::1]/3": "[::1]:6379", "rediss://me:p%2Fw@[::1]:7000": "[::1]:7000",
		"redis://h": "h:6379"} {
		if a, _, err := parseServers(url); err != nil || a.opt.Addr != addr {
			t.Errorf("%s: %+v %v, want %s", url, a.opt, err, addr)
		}
	}
	if a, _, err := parseServers("redis+sentinel://h1:,[::1]:/m"); err != nil || !slices.Equal(a.hosts, []string{"h1:26379", "[::1]:26379"}) {
		t.Errorf("%q %v", a.hosts, err)
	}
	for _, url := range []string{"redis://pw@h", "unix://pw@/h", "valkey+cluster://pw@h", "valkeys+sentinel://h/m?password=pw"} {
		if a, _, err := parseServers(url); err != nil || a.opt.Password != "pw" || a.opt.Username != "" || strings.Contains(a.name, "pw") {
			t.Errorf("%s: %+v %v, shown as %s", url, a.opt, err, a.name)
		}
	}
	if a, kind, err = parseServers("redis+cluster://h1,h2:7000?pool_size=3"); err != nil || kind != "cluster" || a.opt.PoolSize != 3 ||
		!slices.Equal(a.hosts, []string{"h1:6379", "h2:7000"}) {
		t.Errorf("%s %+v %v", kind, a, err)
	}
}

func TestTheDriverAloneDecidesAboutFailedConnectsBehindSentinel(t *testing.T) {
	a, _, err := parseServers("redis+sentinel://h1/m")
	if err != nil {
		t.Fatal(err)
	}
	settle(a.opt)
	tune(a.opt)
	if o := a.failover(); o.DialerRetries != 1 || o.DialerRetryTimeout != a.opt.DialerRetryTimeout {
		t.Errorf("go-redis connects %d times, with a pause of %v; want once", o.DialerRetries, o.DialerRetryTimeout)
	}
}
