// Package httplimit has middleware for net/http that limits requests:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	http.Handle("/api/", httplimit.New(l)(api))
//
// What is refused gets 429 Too Many Requests and Retry-After. Every answer says how
// things stand, by draft-ietf-httpapi-ratelimit-headers (from version 08 on, where the
// fields are structured):
//
//	RateLimit-Policy: "api";q=60;w=60      60 in 60 seconds
//	RateLimit: "api";r=12;t=48             12 are left, all are there again in 48 seconds
//
// Requests are told apart by the address that they come from. Any client can
// write X-Forwarded-For, so it is not read unless Options.Proxies says how many proxies
// of your own are in front of the program.
//
// Other frameworks than net/http go through For.
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

// Options say how requests are limited. The zero value works.
type Options struct {
	// Key tells requests apart; nil: ByAddress(Proxies).
	Key func(r *http.Request) string
	// Proxies is how many trusted proxies a request passes, each of which appends the
	// address that it got it from to X-Forwarded-For; 0: none, and the field is ignored.
	Proxies int
	// Cost is how much a request counts; nil: 1. 0 or less is not limited.
	Cost func(r *http.Request) int64
	// Policy is the name in the RateLimit fields; "": the limiter's.
	Policy string
	// Refused answers what is refused. The header fields are there already, but not
	// for a request that costs more than the limiter ever allows (limit.ErrTooMuch):
	// there is no time to come back. nil: 429 with a short text.
	Refused http.Handler
	// Failed answers when nothing could be decided: the backend is away and the
	// limiter's Down is limit.FailClosed. nil: 503 with a short text.
	Failed func(w http.ResponseWriter, r *http.Request, err error)
	// Logger hears of what could not be decided. nil: silent.
	Logger *slog.Logger
}

// New returns middleware that takes from l for each request. Two Options are a panic.
// Several may be nested: each adds its policy to the fields.
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

// plain is net/http, where a handler writes its answer and returns nothing.
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
// program that calls the limiter itself: RateLimit-Policy; RateLimit, but not where everything is
// allowed because the backend is away, and nothing is known; and Retry-After if it was
// refused. The policy's name is "" for the limiter's. Several limiters add theirs.
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

// policy is the quota and its window in whole seconds, if it has that. With a burst
// of its own it is the burst, in the time that it takes to be there again.
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

// seconds are whole ones, rounded up: a client that waits so long is not too early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

// quote makes a String of RFC 9651, which has visible ASCII only.
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
