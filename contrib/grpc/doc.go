// Package grpcebb limits calls in gRPC servers:
//
//	l, err := limit.New(c, "api", limit.PerMinute(60), limit.Local(0.5))
//	...
//	grpc.NewServer(
//		grpc.UnaryInterceptor(grpcebb.Unary(l)),
//		grpc.StreamInterceptor(grpcebb.Stream(l)),
//	)
//
// What is refused is a ResourceExhausted status with a RetryInfo, and a trailer
// grpc-retry-pushback-ms, which gRPC's own retries obey. What could not be decided is
// Unavailable. Calls are told apart by the address of the peer: see Options.Key.
//
// Limiter is what go-grpc-middleware's ratelimit interceptors take, on servers and
// clients; those say nothing of when to come back.
package grpcebb
