// Package grpcebb limits calls in gRPC servers:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	grpc.NewServer(
//		grpc.UnaryInterceptor(grpcebb.Unary(l)),
//		grpc.StreamInterceptor(grpcebb.Stream(l)),
//	)
//
// A refused call ends with the status ResourceExhausted, a RetryInfo, and the trailer
// grpc-retry-pushback-ms, which gRPC's own retries obey. If the limiter cannot decide, the
// status is Unavailable. The limiter counts calls by the address of the peer: see
// Options.Key.
//
// Limiter implements the interface of go-grpc-middleware's ratelimit interceptors, for
// servers and clients. Those interceptors do not report the retry-after.
package grpcebb
