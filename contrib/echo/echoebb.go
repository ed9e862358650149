package echoebb

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/limit/httplimit"
)

// Options say how the middleware limits requests; the fields are those of
// httplimit.OptionsFor. Refused is by default the error echo.ErrTooManyRequests, and
// Failed the error 503.
type Options = httplimit.OptionsFor[echo.Context]

// New returns middleware that takes from l for each request. Two Options are a panic. Several may be nested: each adds its policy to
// the header fields.
func New(l *limit.Limiter, opts ...Options) echo.MiddlewareFunc {
	ask := httplimit.For(l, framework, opts...)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if passed, err := ask(c); !passed {
				return err
			}
			return next(c)
		}
	}
}

var framework = httplimit.Framework[echo.Context]{
	Request: echo.Context.Request,
	Header:  func(c echo.Context) httplimit.Header { return c.Response().Header() },
	Refused: func(echo.Context) error { return echo.ErrTooManyRequests },
	Failed: func(_ echo.Context, err error) error {
		return echo.NewHTTPError(http.StatusServiceUnavailable, "the rate limiter is not available").SetInternal(err)
	},
}
