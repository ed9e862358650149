package otelebb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/kit"
)

// scope is the instrumentation scope of the spans and metrics.
const scope = "github.com/ebbdb/ebb/contrib/otel"

// Options say what Instrument records, and where. The zero value works.
type Options struct {
	// TracerProvider makes the spans; nil: the global one.
	TracerProvider trace.TracerProvider
	// MeterProvider makes the metrics; nil: the global one.
	MeterProvider metric.MeterProvider
	// Text returns the db.query.text of a command, "" for none. args begins with the
	// command's name. nil: no command has the attribute.
	Text func(args []any) string
	// ChildrenOnly leaves out spans that would have no parent, such as those of
	// workers that wait for jobs.
	ChildrenOnly bool
}

// Instrument returns a Conn that calls c and records each call. Its Close closes c.
// Two Options are ebb.ErrArgument. It fails if the provider refuses a metric.
func Instrument(c *conn.Conn, opts ...Options) (*conn.Conn, error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("otelebb: Instrument: %w", err)
	}
	d := &driver{c: c, o: o}
	if d.o.TracerProvider == nil {
		d.o.TracerProvider = otel.GetTracerProvider()
	}
	if d.o.MeterProvider == nil {
		d.o.MeterProvider = otel.GetMeterProvider()
	}
	d.tracer = d.o.TracerProvider.Tracer(scope)
	meter := d.o.MeterProvider.Meter(scope)
	var err1, err2 error
	d.duration, err1 = meter.Float64Histogram("db.client.operation.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of database client operations."),
		metric.WithExplicitBucketBoundaries(0.000001, 0.00001, 0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10))
	d.messages, err2 = meter.Int64Counter("ebb.client.messages", metric.WithUnit("{message}"),
		metric.WithDescription("Messages received by subscriptions."))
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("otelebb: %w", err)
	}
	return conn.New(d), nil
}

// driver is conn.Driver over another Conn.
type driver struct {
	c        *conn.Conn
	o        Options
	tracer   trace.Tracer
	duration metric.Float64Histogram
	messages metric.Int64Counter
}

// operation is a call that is under way.
type operation struct {
	d     *driver
	ctx   context.Context
	span  trace.Span // nil: none
	attrs []attribute.KeyValue
	begin time.Time
}

// start begins an operation. The caller passes the operation's context to the calls inside
// it.
func (d *driver) start(ctx context.Context, call, name string, batch int, args []any) *operation {
	attrs := make([]attribute.KeyValue, 0, 8)
	attrs = append(attrs,
		attribute.String("db.system.name", d.system()),
		attribute.String("db.operation.name", name),
		attribute.String("ebb.call", call))
	op := &operation{d: d, ctx: ctx, attrs: attrs, begin: time.Now()}
	if d.o.ChildrenOnly && !trace.SpanContextFromContext(ctx).IsValid() {
		return op
	}
	op.ctx, op.span = d.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	if batch > 0 {
		op.span.SetAttributes(attribute.Int("db.operation.batch.size", batch))
	}
	if d.o.Text != nil && args != nil && op.span.IsRecording() {
		if text := d.o.Text(args); text != "" {
			op.span.SetAttributes(attribute.String("db.query.text", text))
		}
	}
	return op
}

// system returns the backend's name; "redis" before the capability probe.
func (d *driver) system() string {
	if s := d.c.Capabilities().Server; s != "" {
		return s
	}
	return "redis"
}

// end records the result of the operation.
func (op *operation) end(err error) {
	if err != nil {
		kind, code := kindOf(err)
		op.attrs = append(op.attrs, attribute.String("error.type", kind))
		if code {
			op.attrs = append(op.attrs, attribute.String("db.response.status_code", kind))
		}
	}
	op.d.duration.Record(op.ctx, time.Since(op.begin).Seconds(), metric.WithAttributes(op.attrs...))
	if op.span == nil {
		return
	}
	if err != nil {
		op.span.SetAttributes(op.attrs[3:]...)
		op.span.SetStatus(codes.Error, err.Error())
	}
	op.span.End()
}

// kindOf returns a short name of an error, and reports whether the name is the code of an
// error reply.
func kindOf(err error) (kind string, code bool) {
	var refused conn.ReplyError
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled", false
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout", false
	case errors.Is(err, conn.ErrNotReplicated):
		return "not_replicated", false
	case errors.Is(err, conn.ErrUnavailable):
		return "unavailable", false
	case errors.Is(err, conn.ErrClosed):
		return "closed", false
	case errors.Is(err, conn.ErrConflict):
		return "conflict", false
	case errors.Is(err, conn.ErrArgument):
		return "argument", false
	case errors.As(err, &refused):
		return refused.Code(), true
	}
	return "_OTHER", false
}

// nameOf is a command's name, in capitals.
func nameOf(args []any) string {
	switch name := args[0].(type) {
	case string:
		return strings.ToUpper(name)
	case []byte:
		return strings.ToUpper(string(name))
	}
	return "COMMAND"
}

// value converts the results of a Conn to those of a Driver, where an error reply is a Value. If the Conn has wrapped the error reply, as
// in ErrUnavailable for a server that is not ready, value returns that error.
func value(v conn.Value, err error) (conn.Value, error) {
	if reply := v.Err(); reply != nil && errors.Is(reply, err) {
		return v, nil
	}
	return v, err
}

// Do implements conn.Driver.
func (d *driver) Do(ctx context.Context, args []any) (conn.Value, error) {
	op := d.start(ctx, "do", nameOf(args), 0, args)
	v, err := d.c.Do(op.ctx, args...)
	op.end(miss(err))
	return value(v, err)
}

// miss returns nil for an error that is not a failure: the server does not have a script
// yet, and the Conn sends its text next.
func miss(err error) error {
	var refused conn.ReplyError
	if errors.As(err, &refused) && refused.Code() == "NOSCRIPT" {
		return nil
	}
	return err
}

// Block implements conn.Driver.
func (d *driver) Block(ctx context.Context, args []any) (conn.Value, error) {
	op := d.start(ctx, "block", nameOf(args), 0, args)
	v, err := d.c.Block(op.ctx, args...)
	op.end(err)
	return value(v, err)
}

// Pipeline implements conn.Driver.
func (d *driver) Pipeline(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	op := d.start(ctx, "pipeline", "PIPELINE", len(cmds), nil)
	vs, err := d.c.Pipeline(op.ctx, batch(cmds))
	op.end(err)
	return vs, err
}

// Tx implements conn.Driver.
func (d *driver) Tx(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
	op := d.start(ctx, "tx", "MULTI", len(cmds), nil)
	vs, err := d.c.Tx(op.ctx, batch(cmds))
	op.end(err)
	return vs, err
}

func batch(cmds [][]any) *conn.Batch {
	b := new(conn.Batch)
	for _, args := range cmds {
		b.Do(args...)
	}
	return b
}

// Watch implements conn.Driver. The calls of its function are child spans of its own.
func (d *driver) Watch(ctx context.Context, fn func(*conn.Watched) error, keys []string) error {
	op := d.start(ctx, "watch", "WATCH", 0, nil)
	err := d.c.Watch(op.ctx, func(w *conn.Watched) error {
		return fn(conn.NewWatched(
			func(ctx context.Context, args []any) (conn.Value, error) {
				in := d.start(op.under(ctx), "do", nameOf(args), 0, args)
				v, err := w.Do(in.ctx, args...)
				in.end(err)
				return value(v, err)
			},
			func(ctx context.Context, cmds [][]any) ([]conn.Value, error) {
				in := d.start(op.under(ctx), "tx", "MULTI", len(cmds), nil)
				vs, err := w.Tx(in.ctx, batch(cmds))
				in.end(err)
				return vs, err
			}))
	}, keys...)
	op.end(err)
	return err
}

// under returns ctx with the operation's span as the parent of what follows.
func (op *operation) under(ctx context.Context) context.Context {
	if op.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, op.span)
}

// Subscribe implements conn.Driver.
func (d *driver) Subscribe(ctx context.Context, kind conn.SubscribeKind, names []string) (conn.Feed, error) {
	subscribe, name := d.c.Subscribe, "SUBSCRIBE"
	switch kind {
	case conn.Patterns:
		subscribe, name = d.c.PSubscribe, "PSUBSCRIBE"
	case conn.Sharded:
		subscribe, name = d.c.SSubscribe, "SSUBSCRIBE"
	}
	op := d.start(ctx, "subscribe", name, 0, nil)
	s, err := subscribe(op.ctx, names...)
	op.end(err)
	if err != nil {
		return nil, err
	}
	return feed{d, s}, nil
}

// feed counts a subscription's messages.
type feed struct {
	d *driver
	s *conn.Subscription
}

// Next implements conn.Feed.
func (f feed) Next(ctx context.Context) (conn.Message, error) {
	m, err := f.s.Next(ctx)
	if err == nil {
		f.d.messages.Add(ctx, 1, metric.WithAttributes(attribute.String("db.system.name", f.d.system())))
	}
	return m, err
}

// Close implements conn.Feed.
func (f feed) Close() error { return f.s.Close() }

// Capabilities implements conn.Driver.
func (d *driver) Capabilities() conn.Capabilities { return d.c.Capabilities() }

// Replicated implements conn.ReplicatedDriver: it records the calls of c's view.
func (d *driver) Replicated(n int, within time.Duration) conn.Driver {
	view := *d
	view.c = d.c.Replicated(n, within)
	return &view
}

// Unwrap implements conn.Wrapper.
func (d *driver) Unwrap() *conn.Conn { return d.c }

// String implements conn.Driver.
func (d *driver) String() string { return d.c.String() + ", instrumented" }

// Close implements conn.Driver.
func (d *driver) Close() error { return d.c.Close() }
