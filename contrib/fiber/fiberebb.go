package fiberebb

import (
	"net/http"

	"github.com/gofiber/fiber/v3"

	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/limit/httplimit"
)

// Options say how the middleware limits requests; the fields are those of
// httplimit.OptionsFor. Refused is by default the error fiber.ErrTooManyRequests, and
// Failed the error fiber.ErrServiceUnavailable. Key may return a string of fiber without a
// copy, because the middleware does not keep the key.
type Options = httplimit.OptionsFor[fiber.Ctx]

// New returns a handler that takes from l for each request. Two Options are a panic. Several may follow each other: each adds its
// policy to the header fields.
func New(l *limit.Limiter, opts ...Options) fiber.Handler {
	ask := httplimit.For(l, framework, opts...)
	return func(c fiber.Ctx) error {
		if passed, err := ask(c); !passed {
			return err
		}
		return c.Next()
	}
}

var framework = httplimit.Framework[fiber.Ctx]{
	Request: request,
	Header:  func(c fiber.Ctx) httplimit.Header { return &c.Response().Header },
	Refused: func(fiber.Ctx) error { return fiber.ErrTooManyRequests },
	Failed:  func(fiber.Ctx, error) error { return fiber.ErrServiceUnavailable },
}

// request returns the parts of a request that httplimit needs.
func request(c fiber.Ctx) *http.Request {
	r := &http.Request{RemoteAddr: c.RequestCtx().RemoteAddr().String(), Header: http.Header{}}
	for _, field := range c.Request().Header.PeekAll(fiber.HeaderXForwardedFor) {
		r.Header.Add(fiber.HeaderXForwardedFor, string(field))
	}
	return r.WithContext(c.Context())
}
