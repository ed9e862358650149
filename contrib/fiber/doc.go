// Package fiberebb limits requests in fiber:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	app.Use(fiberebb.New(l))
//
// It decides as limit/httplimit does: the same header fields (RateLimit, RateLimit-Policy,
// Retry-After), the same statuses, and the same key, the address of the connection. It
// reads X-Forwarded-For only with Options.Proxies.
//
// A refused request ends with the error fiber.ErrTooManyRequests, for the app's
// ErrorHandler. If the limiter cannot decide, the error is fiber.ErrServiceUnavailable,
// unless Options.Failed replies.
//
// Idempotent is lock/httpidem for fiber: requests with an Idempotency-Key are repeatable.
package fiberebb
