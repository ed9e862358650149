package echoebb

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/ebbdb/ebb/lock"
	"github.com/ebbdb/ebb/lock/httpidem"
)

// Idempotent returns middleware that makes requests with the header field Idempotency-Key repeatable, as
// package lock/httpidem does: the next handler runs once for a key, and each repetition gets the response of that run.
//
// scope returns the caller of a request, such as the user that an earlier middleware has authenticated, and
// replaces httpidem.Options.Scope; nil: that option decides. Two Options are a panic. The key in a handler is
// httpidem.Key(c.Request()).
//
// An error of the handler goes to the HTTPErrorHandler inside, because its reply is the response that is kept
// or not: middleware before this one gets nil, and sees the status in c.Response(). echo.WrapMiddleware(httpidem.New(once))
// does not do that: it keeps an empty 200 for a handler that returns an error.
func Idempotent(once *lock.OnceValue[httpidem.Response], scope func(c echo.Context) string, opts ...httpidem.Options) echo.MiddlewareFunc {
	idempotent := httpidem.New(once, opts...)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			w, request := c.Response(), c.Request()
			r := request
			if scope != nil {
				r = httpidem.WithScope(r, scope(c))
			}
			idempotent(http.HandlerFunc(func(inner http.ResponseWriter, r *http.Request) {
				c.SetResponse(echo.NewResponse(inner, c.Echo()))
				c.SetRequest(r)
				defer func() {
					c.SetResponse(w)
					c.SetRequest(request)
				}()
				if err := next(c); err != nil {
					c.Error(err)
				}
			})).ServeHTTP(w, r)
			return nil
		}
	}
}
