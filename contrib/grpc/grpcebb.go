package grpcebb

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/limit"
	"github.com/ebbdb/ebb/limit/httplimit"
)

// Options say how the interceptors limit calls. The zero value works.
type Options struct {
	// Key returns the key under which a call is counted; nil: ByPeer. method is
	// "/package.Service/Method"; a Limiter does not know it and passes "".
	Key func(ctx context.Context, method string) string
	// Cost returns the number of units that a call takes; nil: 1. A call with a cost of 0 or
	// less is not limited.
	Cost func(ctx context.Context, method string) int64
	// Messages makes each message that a stream receives count too, at the same cost. A
	// refused message ends the stream.
	Messages bool
}

// ByPeer returns the address of the caller's connection; of an IPv6 address it returns the
// /64, because one subscriber usually has a whole /64. It does not read metadata, because
// any client can write it.
func ByPeer(ctx context.Context, _ string) string {
	p, ok := peer.FromContext(ctx)
	if !ok || p.Addr == nil {
		return ""
	}
	return byAddress(&http.Request{RemoteAddr: p.Addr.String()})
}

var byAddress = httplimit.ByAddress(0)

// taker is a limiter with its options.
type taker struct {
	l *limit.Limiter
	o Options
}

func newTaker(l *limit.Limiter, opts []Options) *taker {
	o, err := kit.Option(opts)
	if err != nil {
		panic(fmt.Errorf("grpcebb: %w", err))
	}
	t := &taker{l: l, o: o}
	if t.o.Key == nil {
		t.o.Key = ByPeer
	}
	return t
}

// take takes from the limiter. It returns nil if the call is allowed.
func (t *taker) take(ctx context.Context, method string) error {
	cost := int64(1)
	if t.o.Cost != nil {
		if cost = t.o.Cost(ctx, method); cost <= 0 {
			return nil
		}
	}
	r, err := t.l.AllowN(ctx, t.o.Key(ctx, method), cost)
	switch {
	case err == nil && r.Allowed:
		return nil
	case err == nil:
		return &Refused{Limiter: t.l.Name(), RetryAfter: r.RetryAfter}
	case errors.Is(err, limit.ErrTooMuch):
		return &Refused{Limiter: t.l.Name()}
	}
	return err
}

// Refused is the error of a call that a limiter does not allow.
type Refused struct {
	Limiter    string
	RetryAfter time.Duration // until the call can be allowed; 0: never, because its cost is above the limit
}

// Error implements error.
func (r *Refused) Error() string {
	if r.RetryAfter <= 0 {
		return fmt.Sprintf("limiter %q never allows a call with this cost", r.Limiter)
	}
	return fmt.Sprintf("limiter %q: too many calls, try again in %v", r.Limiter, r.RetryAfter)
}

// GRPCStatus returns the status with which a server ends the call.
func (r *Refused) GRPCStatus() *status.Status {
	s := status.New(codes.ResourceExhausted, r.Error())
	if r.RetryAfter <= 0 {
		return s
	}
	if d, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(r.RetryAfter)}); err == nil {
		return d
	}
	return s
}

// pushback is the trailer with the milliseconds after which gRPC retries the call; a
// negative number forbids retries.
const pushback = "grpc-retry-pushback-ms"

// trailer returns the metadata of a refusal.
func (r *Refused) trailer() metadata.MD {
	if r.RetryAfter <= 0 {
		return metadata.Pairs(pushback, "-1")
	}
	ms := (r.RetryAfter + time.Millisecond - 1) / time.Millisecond
	return metadata.Pairs(pushback, strconv.FormatInt(int64(ms), 10))
}

// answer converts take's error to the error that a call returns, and passes the trailer of
// a refusal to tell.
func answer(ctx context.Context, err error, tell func(metadata.MD)) error {
	var refused *Refused
	switch {
	case errors.As(err, &refused):
		tell(refused.trailer())
		return refused.GRPCStatus().Err()
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.Unavailable, "the rate limiter is not available: "+err.Error())
}

// Unary returns an interceptor that takes from l for each call. Two Options are a panic.
func Unary(l *limit.Limiter, opts ...Options) grpc.UnaryServerInterceptor {
	t := newTaker(l, opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if err := t.take(ctx, info.FullMethod); err != nil {
			return nil, answer(ctx, err, func(md metadata.MD) { _ = grpc.SetTrailer(ctx, md) })
		}
		return handler(ctx, req)
	}
}

// Stream returns an interceptor that takes from l for each stream, and with
// Options.Messages for each message that it receives. Two Options are a panic.
func Stream(l *limit.Limiter, opts ...Options) grpc.StreamServerInterceptor {
	t := newTaker(l, opts)
	return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if err := t.take(s.Context(), info.FullMethod); err != nil {
			return answer(s.Context(), err, s.SetTrailer)
		}
		if t.o.Messages {
			s = &stream{ServerStream: s, t: t, method: info.FullMethod}
		}
		return handler(srv, s)
	}
}

// stream takes from the limiter for each message.
type stream struct {
	grpc.ServerStream
	t      *taker
	method string
}

// RecvMsg implements grpc.ServerStream. A handler that returns its error ends the
// stream with the refusal.
func (s *stream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if err := s.t.take(s.Context(), s.method); err != nil {
		return answer(s.Context(), err, s.SetTrailer)
	}
	return nil
}

// Limiter is a limit.Limiter with the interface of go-grpc-middleware's package ratelimit.
type Limiter struct{ t *taker }

// NewLimiter returns a Limiter over l. Two Options are a panic.
func NewLimiter(l *limit.Limiter, opts ...Options) *Limiter { return &Limiter{newTaker(l, opts)} }

// Limit returns nil if the call is allowed, and else a *Refused or the limiter's error.
func (l *Limiter) Limit(ctx context.Context) error { return l.t.take(ctx, "") }
