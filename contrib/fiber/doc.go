// Package fiberebb limits requests in fiber:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	app.Use(fiberebb.New(l))
//
// It decides as limit/httplimit does: the same header fields (RateLimit,
// RateLimit-Policy, Retry-After), the same statuses, and the same key, the address of
// the connection. X-Forwarded-For is looked at only with Options.Proxies.
//
// What is refused is an error, fiber.ErrTooManyRequests, for the app's ErrorHandler;
// what could not be decided is fiber.ErrServiceUnavailable, unless Options.Failed
// answers.
package fiberebb
