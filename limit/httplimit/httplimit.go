// Package httplimit has middleware for net/http that limits requests:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	http.Handle("/api/", httplimit.New(l)(api))
//
// A denied request gets 429 Too Many Requests and Retry-After. Every reply describes the state
// of the limit, by draft-ietf-httpapi-ratelimit-headers (version 08 and later, with structured
// fields):
//
//	RateLimit-Policy: "api";q=60;w=60      60 in 60 seconds
//	RateLimit: "api";r=12;t=48             12 are left; the limit is full in 48 seconds
//
// By default a client is identified by the address of its connection. Any client can write
// X-Forwarded-For, so the middleware reads it only if Options.Proxies says how many trusted
// proxies are in front of the program.
//
// For adapts the middleware to other frameworks than net/http.
//
// Start reading at New.
package httplimit

import (
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/limit"
)

// Options configures how requests are limited. The zero value works.
type Options struct {
	// Key returns the key of the limiter for a request. nil: ByAddress(Proxies).
	Key func(r *http.Request) string
	// Proxies is the number of trusted proxies that a request passes. Each appends the address of
	// its peer to X-Forwarded-For. 0: the header is ignored.
	Proxies int
	// Cost returns the number of requests that a request counts as; nil: 1. A request of 0 or less is not
	// limited.
	Cost func(r *http.Request) int64
	// Policy is the name in the RateLimit fields; "": the limiter's.
	Policy string
	// Refused replies to a request that was denied. The header fields are already set, unless the request costs
	// more than the limiter ever allows (limit.ErrTooMuch): then there is no time to retry after. nil: 429 with
	// a short text.
	Refused http.Handler
	// Failed replies to a request without a decision: the backend did not reply, and the limiter's
	// Down is limit.FailClosed. nil: 503 with a short text.
	Failed func(w http.ResponseWriter, r *http.Request, err error)
	// Logger receives the requests without a decision. nil: no log.
	Logger *slog.Logger
}

// New returns middleware that takes one request from l for each HTTP request. New panics if it gets more than
// one Options. Middleware of several limiters can be nested: each adds its policy to the fields.
func New(l *limit.Limiter, opts ...Options) func(http.Handler) http.Handler {
	o := only("New", opts)
	ask := For(l, plain, o.plain())
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if passed, _ := ask(exchange{w, r}); passed {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// exchange is the context that a handler of net/http gets.
type exchange struct {
	w http.ResponseWriter
	r *http.Request
}

// plain adapts For to net/http, where a handler writes its reply and returns nothing.
var plain = Framework[exchange]{
	Request: func(x exchange) *http.Request { return x.r },
	Header:  func(x exchange) Header { return x.w.Header() },
	Refused: func(x exchange) error {
		http.Error(x.w, "too many requests", http.StatusTooManyRequests)
		return nil
	},
	Failed: func(x exchange, _ error) error {
		http.Error(x.w, "the rate limiter is not available", http.StatusServiceUnavailable)
		return nil
	},
}

func (o *Options) plain() OptionsFor[exchange] {
	p := OptionsFor[exchange]{Proxies: o.Proxies, Policy: o.Policy, Logger: o.Logger}
	if o.Key != nil {
		p.Key = func(x exchange) string { return o.Key(x.r) }
	}
	if o.Cost != nil {
		p.Cost = func(x exchange) int64 { return o.Cost(x.r) }
	}
	if o.Refused != nil {
		p.Refused = func(x exchange) error { o.Refused.ServeHTTP(x.w, x.r); return nil }
	}
	if o.Failed != nil {
		p.Failed = func(x exchange, err error) error { o.Failed(x.w, x.r, err); return nil }
	}
	return p
}

// Headers returns the header fields that describe a result, as pairs of name and value, for a
// program that calls the limiter itself: RateLimit-Policy; RateLimit, unless the backend did
// not reply and the request was allowed without a decision; and Retry-After if the request was
// denied. The policy's name is the limiter's if name is "". The fields of several limiters can
// be added to one reply.
func Headers(l *limit.Limiter, r limit.Result, name string) [][2]string {
	if name == "" {
		name = l.Name()
	}
	name = quote(name)
	fields := append(make([][2]string, 0, 3), [2]string{"RateLimit-Policy", name + policy(l.Rate(), l.Burst())})
	if !r.Down || r.Local {
		fields = append(fields, [2]string{"RateLimit", fmt.Sprintf("%s;r=%d;t=%s", name, r.Remaining, seconds(r.ResetAfter))})
	}
	if !r.Allowed {
		fields = append(fields, [2]string{"Retry-After", seconds(r.RetryAfter)})
	}
	return fields
}

// policy returns the quota and its window, if that is in whole seconds. A limiter with a burst of its own
// reports the burst, and the time in which the bucket fills again.
func policy(r limit.Rate, burst int64) string {
	window := float64(r.Period) / float64(time.Second)
	if burst != r.N {
		window = math.Ceil(window * float64(burst) / float64(r.N))
	}
	if window < 1 || window != math.Trunc(window) {
		return fmt.Sprintf(";q=%d", burst)
	}
	return fmt.Sprintf(";q=%d;w=%.0f", burst, window)
}

// seconds returns a duration in whole seconds, rounded up, so that a client that waits that time is not too
// early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// quote makes a String of RFC 9651, which allows visible ASCII only.
func quote(name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range name {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c < ' ' || c > '~':
			b.WriteByte('?')
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
