// Package ginebb limits requests in gin:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	router.Use(ginebb.New(l))
//
// It is limit/httplimit for gin: the same header fields (RateLimit, RateLimit-Policy,
// Retry-After), the same statuses, and the same key, the address of the connection.
// gin's ClientIP is not used: it believes X-Forwarded-For from anybody unless the
// engine's trusted proxies are set. See Options.Proxies and Options.Key.
package ginebb
