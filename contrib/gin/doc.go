// Package ginebb limits requests in gin:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	router.Use(ginebb.New(l))
//
// It is limit/httplimit for gin: the same header fields (RateLimit, RateLimit-Policy,
// Retry-After), the same statuses, and the same key, the address of the connection.
// The package does not use gin's ClientIP: unless the program sets the engine's trusted
// proxies, ClientIP believes X-Forwarded-For from any client. See Options.Proxies and
// Options.Key.
//
// Idempotent is lock/httpidem for gin: requests with an Idempotency-Key are repeatable.
package ginebb
