package ebb

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/engine"
)

// Options are what a URL cannot say. The zero value works.
type Options struct {
	// Clock is the embedded engine's time; the system's if nil. An engine that
	// is shared by name has the clock of whoever opened it first.
	Clock engine.Clock
	// TLS configures rediss:// connections; the system's roots and the URL's
	// host name if nil.
	TLS *tls.Config
	// Dial makes the connections to a server; the system's network if nil.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Open opens the backend that a URL names:
//
//	mem://                  an engine of its own in this process
//	mem://name              the engine of that name in this process, shared; its
//	                        data goes when the last Conn is closed
//	mem://name/3            its database 3
//	redis://user:pw@host:6379/0?read_timeout=3s&pool_size=20
//	rediss://...            the same with TLS
//	unix://user:pw@/path/to/socket?db=0
//
// The parameters of the last three are those of go-redis's ParseURL; without
// max_retries no command is sent twice. A server must answer PING before the
// context ends: the error is ErrUnavailable where none does, a ReplyError
// where it refuses us, and ErrURL for a URL that makes no sense. Of opts the
// first counts.
func Open(ctx context.Context, rawURL string, opts ...Options) (*Conn, error) {
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	scheme, _, found := strings.Cut(rawURL, "://")
	if !found {
		return nil, fmt.Errorf("%w: %q has no scheme; try mem:// or redis://127.0.0.1:6379", ErrURL, shown(rawURL))
	}
	if ctx.Err() != nil {
		return nil, ended(ctx, "open "+scheme+"://")
	}
	var b backend
	var err error
	switch scheme {
	case "mem":
		b, err = openEmbedded(rawURL, o)
	case "redis", "rediss", "unix":
		b, err = openRemote(ctx, rawURL, o)
	case "file":
		err = fmt.Errorf("%w: file:// needs the append-only log, which this version does not have: use mem://, or an ebb server", ErrURL)
	case "redis+sentinel", "redis+cluster":
		err = fmt.Errorf("%w: %s:// is not in this version: use redis:// with the address of a primary", ErrURL, scheme)
	default:
		err = fmt.Errorf("%w: scheme %q is none of mem, redis, rediss, unix", ErrURL, scheme)
	}
	if err != nil {
		return nil, err
	}
	return &Conn{b: b}, nil
}

// parseMem splits mem://name/3.
func parseMem(rawURL string) (name string, db int, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %w", ErrURL, err)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", 0, fmt.Errorf("%w: %q: mem:// takes a name and a database, as in mem://sessions/3, and nothing else", ErrURL, shown(rawURL))
	}
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		if db, err = strconv.Atoi(path); err != nil || db < 0 || db >= databases {
			return "", 0, fmt.Errorf("%w: %q: the database is a number from 0 to %d, not %q", ErrURL, rawURL, databases-1, path)
		}
	}
	return u.Host, db, nil
}

// shown is a URL without its password, for messages.
func shown(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "a URL that cannot be parsed"
	}
	return u.Redacted()
}

// millis converts a duration to whole milliseconds; a part of one counts as
// one, so that nothing lives shorter than asked for.
func millis(d time.Duration) int64 {
	if d <= 0 {
		return int64(d / time.Millisecond)
	}
	return int64((d-1)/time.Millisecond) + 1
}
