package httplimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/limit"
)

// Framework adapts For to a framework whose handlers get a context C and return an error.
type Framework[C any] struct {
	// Request returns the HTTP request. For uses its context, its RemoteAddr and, with
	// OptionsFor.Proxies, its X-Forwarded-For.
	Request func(c C) *http.Request
	// Header returns the header fields of the reply.
	Header func(c C) Header
	// Refused and Failed are the defaults of the fields of OptionsFor with these names.
	Refused func(c C) error
	Failed  func(c C, err error) error
}

// Header is the set of header fields of a reply: an http.Header, or the framework's own.
type Header interface {
	Add(name, value string)
	Set(name, value string)
}

// OptionsFor is Options for a framework whose handlers get a context C and return an error. The
// zero value works.
type OptionsFor[C any] struct {
	// Key returns the key of the limiter for a request. nil: ByAddress(Proxies). For does not keep
	// the key.
	Key func(c C) string
	// Proxies is the number of trusted proxies that a request passes; 0: X-Forwarded-For is
	// ignored.
	Proxies int
	// Cost returns the number of requests that a request counts as; nil: 1. A request of 0 or less is not
	// limited.
	Cost func(c C) int64
	// Policy is the name in the RateLimit fields; "": the limiter's.
	Policy string
	// Refused replies to a request that was denied, as Options.Refused does. nil: the framework's
	// own error for 429.
	Refused func(c C) error
	// Failed replies to a request without a decision, as Options.Failed does. nil: the framework's
	// own error for 503.
	Failed func(c C, err error) error
	// Logger receives the requests without a decision. nil: no log.
	Logger *slog.Logger
}

// For does the work of New for another framework. The returned function takes one request from l and adds the
// header fields. If passed is true, the caller runs the next handler. Otherwise Refused or Failed has
// replied, and err is its error. For panics if it gets more than one Options.
func For[C any](l *limit.Limiter, f Framework[C], opts ...OptionsFor[C]) (ask func(c C) (passed bool, err error)) {
	a := asker[C]{l: l, f: f, opt: only("For", opts)}
	o := &a.opt
	a.address = ByAddress(o.Proxies)
	if o.Policy == "" {
		o.Policy = l.Name()
	}
	if o.Refused == nil {
		o.Refused = f.Refused
	}
	if o.Failed == nil {
		o.Failed = f.Failed
	}
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	return a.ask
}

// only returns the options of a constructor of middleware. Such a constructor has no error result, so it
// panics if it gets more than one Options: that is a mistake in the program, which shows when the program
// starts, like a bad pattern in http.Handle.
func only[O any](constructor string, opts []O) O {
	o, err := kit.Option(opts)
	if err != nil {
		panic(fmt.Errorf("httplimit: %s: %w", constructor, err))
	}
	return o
}

// asker asks a limiter about requests.
type asker[C any] struct {
	l       *limit.Limiter
	f       Framework[C]
	opt     OptionsFor[C]
	address func(r *http.Request) string
}

func (a *asker[C]) ask(c C) (passed bool, err error) {
	cost := int64(1)
	if a.opt.Cost != nil {
		if cost = a.opt.Cost(c); cost <= 0 {
			return true, nil
		}
	}
	r := a.f.Request(c)
	key := ""
	if a.opt.Key != nil {
		key = a.opt.Key(c)
	} else {
		key = a.address(r)
	}
	res, err := a.l.AllowN(r.Context(), key, cost)
	switch {
	case errors.Is(err, limit.ErrTooMuch):
		a.opt.Logger.Warn("httplimit: a request costs more than can be allowed", "error", err)
		return false, a.opt.Refused(c)
	case err != nil:
		if !errors.Is(err, context.Canceled) {
			a.opt.Logger.Error("httplimit: cannot ask the limiter", "error", err)
		}
		if res.RetryAfter > 0 {
			a.f.Header(c).Set("Retry-After", seconds(res.RetryAfter))
		}
		return false, a.opt.Failed(c, err)
	}
	h := a.f.Header(c)
	for _, f := range Headers(a.l, res, a.opt.Policy) {
		h.Add(f[0], f[1])
	}
	if !res.Allowed {
		return false, a.opt.Refused(c)
	}
	return true, nil
}
