package ginebb

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/limit/httplimit"
)

// Options say how the handler limits requests. The zero value works.
type Options struct {
	// Key returns the key under which a request is counted; nil:
	// httplimit.ByAddress(Proxies).
	Key func(c *gin.Context) string
	// Proxies is the number of trusted proxies that a request passes; 0: none, and the
	// handler ignores X-Forwarded-For.
	Proxies int
	// Cost returns the number of units that a request takes; nil: 1. A request with a cost
	// of 0 or less is not limited.
	Cost func(c *gin.Context) int64
	// Policy is the name in the RateLimit fields; "": the limiter's.
	Policy string
	// Refused replies to a refused request, as httplimit.Options.Refused does. nil: 429 with
	// a short text.
	Refused gin.HandlerFunc
	// Failed replies when the limiter could not decide. nil: 503 with a short text.
	Failed func(c *gin.Context, err error)
	// Logger gets the requests that the limiter could not decide. nil: no log.
	Logger *slog.Logger
}

// New returns a handler that takes from l for each request, and ends the chain of a
// refused request. It panics if it gets more than one Options. A chain may have several
// such handlers: each adds its policy to the header fields.
func New(l *limit.Limiter, opts ...Options) gin.HandlerFunc {
	o, err := kit.Option(opts)
	if err != nil {
		panic(fmt.Errorf("ginebb: New: %w", err))
	}
	ask := httplimit.For(l, framework, o.common())
	return func(c *gin.Context) {
		if passed, _ := ask(c); !passed {
			c.Abort()
		}
	}
}

var framework = httplimit.Framework[*gin.Context]{
	Request: func(c *gin.Context) *http.Request { return c.Request },
	Header:  func(c *gin.Context) httplimit.Header { return c.Writer.Header() },
	Refused: func(c *gin.Context) error {
		http.Error(c.Writer, "too many requests", http.StatusTooManyRequests)
		return nil
	},
	Failed: func(c *gin.Context, _ error) error {
		http.Error(c.Writer, "the rate limiter is not available", http.StatusServiceUnavailable)
		return nil
	},
}

// common returns the options for httplimit. gin's handlers write the reply and return
// nothing.
func (o *Options) common() httplimit.OptionsFor[*gin.Context] {
	p := httplimit.OptionsFor[*gin.Context]{Key: o.Key, Proxies: o.Proxies, Cost: o.Cost, Policy: o.Policy, Logger: o.Logger}
	if o.Refused != nil {
		p.Refused = func(c *gin.Context) error { o.Refused(c); return nil }
	}
	if o.Failed != nil {
		p.Failed = func(c *gin.Context, err error) error { o.Failed(c, err); return nil }
	}
	return p
}
