package grpcebb_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/ratelimit"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ebbdb/ebb"
	grpcebb "github.com/ebbdb/ebb/contrib/grpc"
	"github.com/ebbdb/ebb/internal/testing/limittest"
	"github.com/ebbdb/ebb/internal/testing/tier"
	"github.com/ebbdb/ebb/limit"
)

var _ ratelimit.Limiter = (*grpcebb.Limiter)(nil)

// service answers everything with nothing: a call of Ask, and Talk message by message.
var service = grpc.ServiceDesc{
	ServiceName: "test.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Ask", Handler: func(srv any, ctx context.Context, dec func(any) error,
		i grpc.UnaryServerInterceptor) (any, error) {
		in := new(emptypb.Empty)
		if err := dec(in); err != nil {
			return nil, err
		}
		handler := func(context.Context, any) (any, error) { return in, nil }
		if i == nil {
			return handler(ctx, in)
		}
		return i(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test.Echo/Ask"}, handler)
	}}},
	Streams: []grpc.StreamDesc{{StreamName: "Talk", ClientStreams: true, ServerStreams: true, Handler: func(_ any, s grpc.ServerStream) error {
		for {
			m := new(emptypb.Empty)
			if err := s.RecvMsg(m); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := s.SendMsg(m); err != nil {
				return err
			}
		}
	}}},
}

// dial serves with some options, and returns a connection to it.
func dial(t testing.TB, opts ...grpc.ServerOption) *grpc.ClientConn {
	t.Helper()
	l := bufconn.Listen(1 << 16)
	s := grpc.NewServer(opts...)
	s.RegisterService(&service, struct{}{})
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///bufconn", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return conn
}

func ask(t testing.TB, conn *grpc.ClientConn) (metadata.MD, error) {
	ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
	defer cancel()
	var trailer metadata.MD
	err := conn.Invoke(ctx, "/test.Echo/Ask", new(emptypb.Empty), new(emptypb.Empty), grpc.Trailer(&trailer))
	return trailer, err
}

func TestARefusedCallSaysWhenToComeBack(t *testing.T) {
	_, l := limittest.New(t, limit.PerHour(2))
	conn := dial(t, grpc.UnaryInterceptor(grpcebb.Unary(l)))
	for range 2 {
		if _, err := ask(t, conn); err != nil {
			t.Fatal(err)
		}
	}
	trailer, err := ask(t, conn)
	s := status.Convert(err)
	if s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 {
		t.Fatalf("%v, details %v", err, s.Details())
	}
	info, ok := s.Details()[0].(*errdetails.RetryInfo)
	if wait := info.GetRetryDelay().AsDuration(); !ok || wait <= 0 || wait > 30*time.Minute {
		t.Errorf("details: %v", s.Details())
	}
	if ms := trailer.Get("grpc-retry-pushback-ms"); len(ms) != 1 {
		t.Errorf("trailer: %v", trailer)
	} else if n, err := strconv.Atoi(ms[0]); err != nil || n <= 0 {
		t.Errorf("trailer: %v", trailer)
	}
}

func TestAStreamIsLimitedOnceOrByTheMessage(t *testing.T) {
	for _, messages := range []bool{false, true} {
		_, l := limittest.New(t, limit.PerHour(3))
		conn := dial(t, grpc.StreamInterceptor(grpcebb.Stream(l, grpcebb.Options{Messages: messages})))
		ctx, cancel := context.WithTimeout(t.Context(), tier.Patience)
		defer cancel()
		answers := 0
		s, err := conn.NewStream(ctx, &service.Streams[0], "/test.Echo/Talk")
		if err != nil {
			t.Fatal(err)
		}
		for ; err == nil && answers < 10; answers++ {
			if err = s.SendMsg(new(emptypb.Empty)); err == nil || errors.Is(err, io.EOF) {
				err = s.RecvMsg(new(emptypb.Empty))
			}
		}
		switch {
		case !messages && err != nil:
			t.Errorf("a stream of ten messages: %v", err)
		case messages && (status.Code(err) != codes.ResourceExhausted || answers != 3): // the stream, two messages, and the one refused
			t.Errorf("by the message: %v at message %d", err, answers)
		}
		_ = s.CloseSend()
	}
}

func TestWithoutABackendCallsAreUnavailable(t *testing.T) {
	c, l := limittest.New(t, limit.PerHour(2))
	conn := dial(t, grpc.UnaryInterceptor(grpcebb.Unary(l)))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, conn); status.Code(err) != codes.Unavailable {
		t.Errorf("%v", err)
	}
}

func TestOptionsSeeTheMethod(t *testing.T) {
	_, l := limittest.New(t, limit.PerHour(2))
	methods := make(chan string, 2)
	conn := dial(t, grpc.UnaryInterceptor(grpcebb.Unary(l, grpcebb.Options{
		Key:  func(_ context.Context, method string) string { methods <- method; return method },
		Cost: func(context.Context, string) int64 { return 3 },
	})))
	trailer, err := ask(t, conn) // more than is ever allowed
	if status.Code(err) != codes.ResourceExhausted || trailer.Get("grpc-retry-pushback-ms")[0] != "-1" {
		t.Errorf("%v %v", err, trailer)
	}
	if m := <-methods; m != "/test.Echo/Ask" {
		t.Error(m)
	}
}

func TestTheLimiterOfGoGRPCMiddleware(t *testing.T) {
	_, l := limittest.New(t, limit.PerHour(1))
	conn := dial(t, grpc.UnaryInterceptor(ratelimit.UnaryServerInterceptor(grpcebb.NewLimiter(l))))
	if _, err := ask(t, conn); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(t, conn); status.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}

func TestPeersAreToldApartByAddress(t *testing.T) {
	for addr, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64"} {
		ctx := peer.NewContext(t.Context(), &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(addr), Port: 1}})
		if got := grpcebb.ByPeer(ctx, ""); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

func ExampleUnary() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	defer c.Close()
	l, err := limit.New(c, "api", limit.PerHour(1), limit.Local(0.5))
	if err != nil {
		panic(err)
	}
	limited := grpcebb.Unary(l)
	s := grpc.NewServer(grpc.UnaryInterceptor(limited), grpc.StreamInterceptor(grpcebb.Stream(l)))
	defer s.Stop()
	// Register services, and call s.Serve. For each call the server does this:
	hello := func(context.Context, any) (any, error) { return "hello", nil }
	for range 2 {
		reply, err := limited(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/greeter/Hello"}, hello)
		fmt.Println(reply, status.Code(err))
	}
	// Output:
	// hello OK
	// <nil> ResourceExhausted
}
