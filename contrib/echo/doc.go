// Package echoebb limits requests in echo:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	e.Use(echoebb.New(l))
//
// It is limit/httplimit for echo: the same header fields (RateLimit, RateLimit-Policy,
// Retry-After), the same statuses, and the same key, the address of the connection.
// echo's RealIP is not used: unless the program sets an IPExtractor it believes
// X-Forwarded-For from anybody. See Options.Proxies and Options.Key.
//
// What is refused is an error, echo.ErrTooManyRequests, for the HTTPErrorHandler; what
// could not be decided is a 503 with the cause as its Internal error.
package echoebb
