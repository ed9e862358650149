package otelebb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/queue"
)

// propagator writes the W3C header traceparent, whatever the program's global one is: both ends of a queue
// must agree.
var propagator = propagation.TraceContext{}

// QueueHeaders is a value for queue.Options.Headers. It adds the span of a Push to the headers of the job, so
// that QueueMiddleware can link to it. Without a span it adds nothing.
func QueueHeaders(ctx context.Context) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagator.Inject(ctx, carrier)
	return carrier
}

// QueueMiddleware returns middleware for queue.Options.Middleware. It records a span of kind consumer for each
// call of the function of queue.Run, named "process" and the name of the queue, with a link to the span of the
// Push if the queue has QueueHeaders there. The span begins a trace of its own: a job may run hours after
// its push, more than once, or of a schedule without any. It also records the metric messaging.process.duration.
// Attributes: messaging.system (ebb), messaging.destination.name, messaging.operation.name, and of spans
// messaging.message.id and ebb.job.deliveries; error.type of a job that failed is error, timeout, lost, postponed or
// permanent. Errors: ebb.ErrArgument for two Options, and that of a provider that refuses the metric.
func QueueMiddleware[T any](name string, opts ...Options) (queue.Middleware[T], error) {
	o, err := kit.Option(opts)
	if err != nil {
		return nil, fmt.Errorf("otelebb: QueueMiddleware: %w", err)
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	tracer := o.TracerProvider.Tracer(scope)
	duration, err := o.MeterProvider.Meter(scope).Float64Histogram("messaging.process.duration", metric.WithUnit("s"),
		metric.WithDescription("Duration of processing operation."),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 600))
	if err != nil {
		return nil, fmt.Errorf("otelebb: %w", err)
	}
	attrs := []attribute.KeyValue{attribute.String("messaging.system", "ebb"), attribute.String("messaging.destination.name", name),
		attribute.String("messaging.operation.name", "process")}
	return func(next queue.Handler[T]) queue.Handler[T] {
		return func(ctx context.Context, j *queue.Job[T]) error {
			begin := time.Now()
			spanned, span := startJob(ctx, tracer, name, j, attrs)
			measured := attrs
			defer func() {
				if p := recover(); p != nil { // Run makes an error of it
					span.SetStatus(codes.Error, fmt.Sprint("panic: ", p))
					span.End()
					panic(p)
				}
			}()
			err := next(spanned, j)
			if err != nil {
				kind := attribute.String("error.type", jobError(err))
				span.SetAttributes(kind)
				span.SetStatus(codes.Error, err.Error())
				measured = append(attrs[:len(attrs):len(attrs)], kind)
			}
			span.End()
			duration.Record(ctx, time.Since(begin).Seconds(), metric.WithAttributes(measured...))
			return err
		}
	}, nil
}

// startJob begins the span of a job.
func startJob[T any](ctx context.Context, tracer trace.Tracer, name string, j *queue.Job[T],
	attrs []attribute.KeyValue) (context.Context, trace.Span) {
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithNewRoot(), trace.WithAttributes(attrs...),
		trace.WithAttributes(attribute.String("messaging.message.id", j.ID), attribute.Int("ebb.job.deliveries", j.Deliveries))}
	pushed := trace.SpanContextFromContext(propagator.Extract(context.Background(), propagation.MapCarrier(j.Headers)))
	if pushed.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: pushed}))
	}
	return tracer.Start(ctx, "process "+name, options...)
}

// jobError returns a short name of a function's error.
func jobError(err error) string {
	switch {
	case errors.Is(err, queue.ErrTimeout):
		return "timeout"
	case errors.Is(err, queue.ErrLost):
		return "lost"
	case errors.Is(err, queue.ErrPermanent):
		return "permanent"
	case queue.IsLater(err):
		return "postponed"
	}
	return "error"
}
