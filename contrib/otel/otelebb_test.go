package otelebb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	otelebb "github.com/ebbdb/ebb/contrib/otel"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/resp"
)

// watched is an instrumented Conn and what it has reported.
type watched struct {
	*ebb.Conn
	tracer *sdktrace.TracerProvider
	spans  *tracetest.SpanRecorder
	meter  *sdkmetric.ManualReader

	provider *sdkmetric.MeterProvider // of meter
}

func instrument(t testing.TB, o otelebb.Options) watched {
	t.Helper()
	c, err := ebb.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	w := watched{spans: tracetest.NewSpanRecorder(), meter: sdkmetric.NewManualReader()}
	w.tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(w.spans))
	w.provider = sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.meter))
	o.TracerProvider, o.MeterProvider = w.tracer, w.provider
	if w.Conn, err = otelebb.Instrument(c, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// attr is a span's attribute as text.
func attr(s sdktrace.ReadOnlySpan, key string) string {
	for _, a := range s.Attributes() {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// counted returns how many operations a metric has seen, by its attribute.
func (w watched) counted(t testing.TB, name, by string) map[string]uint64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.meter.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	n := map[string]uint64{}
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			if m.Name != name {
				continue
			}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					v, _ := p.Attributes.Value(attribute.Key(by))
					n[v.String()] += p.Count
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					v, _ := p.Attributes.Value(attribute.Key(by))
					n[v.String()] += uint64(p.Value)
				}
			}
		}
	}
	return n
}

func TestEveryCallIsASpanAndIsTimed(t *testing.T) {
	w, ctx := instrument(t, otelebb.Options{}), t.Context()
	if err := w.Set(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	_, err := w.Do(ctx, "LPUSH", "k", 1)
	var refused ebb.ReplyError
	if !errors.As(err, &refused) || refused.Code() != "WRONGTYPE" {
		t.Errorf("the error is another: %v", err)
	}
	var b ebb.Batch
	b.Do("INCR", "n")
	b.Do("INCR", "n")
	if vs, err := w.Pipeline(ctx, &b); err != nil || len(vs) != 2 || vs[1].Int != 2 {
		t.Error(vs, err)
	}
	if vs, err := w.Tx(ctx, &b); err != nil || len(vs) != 2 || vs[1].Int != 4 {
		t.Error(vs, err)
	}
	err = w.Watch(ctx, func(x *ebb.Watched) error {
		if _, err := x.Do(ctx, "GET", "n"); err != nil {
			return err
		}
		if err := w.Set(ctx, "n", 0); err != nil {
			return err
		}
		_, err := x.Tx(ctx, &b)
		return err
	}, "n")
	if !errors.Is(err, ebb.ErrConflict) {
		t.Error(err)
	}
	if _, err := w.Block(ctx, "BLPOP", "nothing", "0.001"); err != nil {
		t.Error(err)
	}
	want := []struct{ name, call, failed, size string }{
		{"SET", "do", "", ""}, {"LPUSH", "do", "WRONGTYPE", ""}, {"PIPELINE", "pipeline", "", "2"}, {"MULTI", "tx", "", "2"},
		{"GET", "do", "", ""}, {"SET", "do", "", ""}, {"MULTI", "tx", "conflict", "2"}, {"WATCH", "watch", "conflict", ""},
		{"BLPOP", "block", "", ""},
	}
	got := w.spans.Ended()
	if len(got) != len(want) {
		t.Fatalf("%d spans, want %d", len(got), len(want))
	}
	for i, s := range got {
		if s.Name() != want[i].name || attr(s, "ebb.call") != want[i].call || attr(s, "error.type") != want[i].failed ||
			attr(s, "db.operation.batch.size") != want[i].size || attr(s, "db.system.name") != "ebb" || attr(s, "db.query.text") != "" {
			t.Errorf("span %d: %s %v, want %+v", i, s.Name(), s.Attributes(), want[i])
		}
	}
	if inner, outer := got[4], got[7]; inner.Parent().SpanID() != outer.SpanContext().SpanID() {
		t.Error("what a watch does is not below it")
	}
	if n := w.counted(t, "db.client.operation.duration", "ebb.call"); n["do"] != 4 || n["tx"] != 2 || n["block"] != 1 {
		t.Errorf("durations: %v", n)
	}
}

func TestMessagesAreCounted(t *testing.T) {
	w, ctx := instrument(t, otelebb.Options{}), t.Context()
	s, err := w.Subscribe(ctx, "news")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if n, err := w.Publish(ctx, "news", i); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		if m, err := s.Next(ctx); err != nil || m.Payload != fmt.Sprint(i) {
			t.Fatal(m, err)
		}
	}
	if n := w.counted(t, "ebb.client.messages", "db.system.name"); n["ebb"] != 3 {
		t.Errorf("%v", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestSpansWithoutAParentCanBeLeftOut(t *testing.T) {
	w := instrument(t, otelebb.Options{ChildrenOnly: true, Text: func(args []any) string { return fmt.Sprint(args...) }})
	if err := w.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, parent := w.tracer.Tracer("test").Start(t.Context(), "work")
	if err := w.Ping(ctx); err != nil {
		t.Fatal(err)
	}
	parent.End()
	got := w.spans.Ended()
	if len(got) != 2 || got[0].Name() != "PING" || attr(got[0], "db.query.text") != "PING" {
		t.Errorf("%d spans", len(got))
	}
	if n := w.counted(t, "db.client.operation.duration", "ebb.call"); n["do"] != 2 {
		t.Errorf("durations: %v", n)
	}
}

func TestTheEngineIsStillThere(t *testing.T) {
	if w := instrument(t, otelebb.Options{}); ebb.EngineOf(w.Conn) == nil || !w.Capabilities().Native || !w.Capabilities().Embedded {
		t.Error("the engine is hidden")
	}
}

// unready is a backend that answers "not yet", as one does that fails over.
type unready struct{ conn.Driver }

const loading = ebb.ReplyError("LOADING the data set")

func (unready) Do(context.Context, []any) (ebb.Value, error) {
	return ebb.Value{Kind: resp.KindError, Str: string(loading)}, fmt.Errorf("%w: %w", ebb.ErrUnavailable, loading)
}
func (unready) Capabilities() ebb.Capabilities { return ebb.Capabilities{} }
func (unready) Close() error                   { return nil }

func TestErrorsArriveAsTheyAre(t *testing.T) {
	c, err := otelebb.Instrument(ebb.Use(unready{}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Do(t.Context(), "GET", "k")
	var refused ebb.ReplyError
	if !errors.Is(err, ebb.ErrUnavailable) || !errors.As(err, &refused) || refused.Code() != "LOADING" {
		t.Errorf("%v, want ErrUnavailable and LOADING", err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func TestAReplicatedViewIsSeenToo(t *testing.T) {
	w, ctx := instrument(t, otelebb.Options{}), t.Context()
	if err := w.Replicated(1, time.Second).Set(ctx, "k", "v"); err != nil {
		t.Fatal(err)
	}
	if s, err := w.Get(ctx, "k"); s != "v" || err != nil {
		t.Errorf("%q, %v", s, err)
	}
	if got := w.spans.Ended(); len(got) != 2 {
		t.Errorf("%d spans, want 2", len(got))
	}
}

func ExampleInstrument() {
	ctx := context.Background()
	c, err := ebb.Open(ctx, "mem://")
	if err != nil {
		panic(err)
	}
	if c, err = otelebb.Instrument(c); err != nil {
		panic(err)
	}
	defer c.Close()
	fmt.Println(c)
	// Output: mem:// (an engine in this process, private, in memory), instrumented
}
