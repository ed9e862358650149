package httplimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/limit"
)

// Framework tells For how to speak with a framework of which a handler gets a context C
// and returns an error.
type Framework[C any] struct {
	// Request returns the request; looked at are its context, RemoteAddr and, with
	// OptionsFor.Proxies, X-Forwarded-For.
	Request func(c C) *http.Request
	// Header returns where the fields of the answer go.
	Header func(c C) Header
	// Refused and Failed stand in for those of OptionsFor that are nil.
	Refused func(c C) error
	Failed  func(c C, err error) error
}

// Header are the fields of an answer: an http.Header, or what a framework has instead.
type Header interface {
	Add(name, value string)
	Set(name, value string)
}

// OptionsFor are Options for a framework of which a handler gets a context C and
// returns an error. The zero value works.
type OptionsFor[C any] struct {
	// Key tells requests apart; nil: ByAddress(Proxies). The key is not kept.
	Key func(c C) string
	// Proxies is how many trusted proxies a request passes; 0: none, and
	// X-Forwarded-For is ignored.
	Proxies int
	// Cost is how much a request counts; nil: 1. 0 or less is not limited.
	Cost func(c C) int64
	// Policy is the name in the RateLimit fields; "": the limiter's.
	Policy string
	// Refused answers what is refused, as Options.Refused does. nil: the framework's
	// own error for 429.
	Refused func(c C) error
	// Failed answers when nothing could be decided, as Options.Failed does. nil: the
	// framework's own error for 503.
	Failed func(c C, err error) error
	// Logger hears of what could not be decided. nil: silent.
	Logger *slog.Logger
}

// For does the work of New for a framework. What it returns takes from l for a request and adds the
// header fields: if passed, the next handler is to run; if not, Refused or Failed has, and
// err is what it returned. Two Options are a panic.
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
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return a.ask
}

// only returns the options of a constructor of middleware. Such a constructor has no error to
// return, so two values of Options are a panic: they are a mistake in the program's text, which
// shows when the program starts, as with a bad pattern in http.Handle.
func only[O any](constructor string, opts []O) O {
	o, err := kit.Option(opts)
	if err != nil {
		panic(fmt.Errorf("httplimit: %s: %w", constructor, err))
	}
	return o
}

// asker is a limiter that is asked about requests.
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
			a.opt.Logger.Error("httplimit: a request could not be decided on", "error", err)
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
