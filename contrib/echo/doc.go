// Package echoebb limits requests in echo:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	e.Use(echoebb.New(l))
//
// It is limit/httplimit for echo: the same header fields (RateLimit, RateLimit-Policy,
// Retry-After), the same statuses, and the same key, the address of the connection.
// The package does not use echo's RealIP: unless the program sets an IPExtractor, RealIP
// believes X-Forwarded-For from any client. See Options.Proxies and Options.Key.
//
// The middleware refuses a request with the error echo.ErrTooManyRequests, for the
// HTTPErrorHandler. When the limiter cannot decide, the error is a 503 with the cause as
// its Internal error.
//
// Idempotent is lock/httpidem for echo: requests with an Idempotency-Key are repeatable.
package echoebb
