package otelebb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	otelebb "github.com/ebbdb/ebb/contrib/otel"

	"github.com/ebbdb/ebb"
	"github.com/ebbdb/ebb/queue"
)

func TestASpanOfAJobLinksToItsPush(t *testing.T) {
	w := instrument(t, otelebb.Options{ChildrenOnly: true})
	o := otelebb.Options{TracerProvider: w.tracer, MeterProvider: w.provider}
	middleware, err := otelebb.QueueMiddleware[string]("mail", o)
	if err != nil {
		t.Fatal(err)
	}
	q, err := queue.New(w.Conn, "mail", queue.Options[string]{Headers: otelebb.QueueHeaders,
		Middleware: []queue.Middleware[string]{middleware}})
	if err != nil {
		t.Fatal(err)
	}
	pushing, pushed := w.tracer.Tracer("test").Start(t.Context(), "sign up")
	for _, v := range []string{"fine", "fails", "permanent", "panics", "later"} {
		if _, err := q.Push(pushing, v, queue.PushOptions{ID: v}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := q.Push(t.Context(), "untraced", queue.PushOptions{ID: "untraced"}); err != nil {
		t.Fatal(err)
	}
	pushed.End()

	ctx, stop := context.WithCancel(t.Context())
	done := 0
	err = q.Run(ctx, 1, func(ctx context.Context, j *queue.Job[string]) error {
		if done++; done == 6 {
			stop()
		}
		if !trace.SpanContextFromContext(ctx).IsValid() {
			t.Errorf("%s has no span", j.ID)
		}
		switch j.Value {
		case "fails":
			return errors.New("try again")
		case "permanent":
			return fmt.Errorf("%w: no mailbox", queue.ErrPermanent)
		case "panics":
			panic("no")
		case "later":
			return queue.Later(1 << 40)
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}

	want := map[string]string{"fine": "", "fails": "error", "permanent": "permanent", "panics": "", "later": "postponed", "untraced": ""}
	seen := 0
	for _, s := range w.spans.Ended() {
		if s.Name() != "process mail" {
			continue
		}
		seen++
		id := attr(s, "messaging.message.id")
		if kind, ok := want[id]; !ok || attr(s, "error.type") != kind || (s.Status().Code == codes.Error) != (kind != "" || id == "panics") {
			t.Errorf("%s: error.type %q, status %v", id, attr(s, "error.type"), s.Status())
		}
		if s.SpanKind() != trace.SpanKindConsumer || s.Parent().IsValid() || attr(s, "ebb.job.deliveries") != "1" {
			t.Errorf("%s: %v, parent %v", id, s.SpanKind(), s.Parent())
		}
		links := s.Links()
		if id == "untraced" {
			if len(links) != 0 {
				t.Errorf("%s links to %v", id, links)
			}
		} else if len(links) != 1 || links[0].SpanContext.SpanID() != pushed.SpanContext().SpanID() {
			t.Errorf("%s links to %v, want %v", id, links, pushed.SpanContext())
		}
	}
	if seen != len(want) {
		t.Errorf("%d spans", seen)
	}
	if n := w.counted(t, "messaging.process.duration", "error.type"); n["error"] != 1 || n[""] != 2 {
		t.Errorf("measured %v", n)
	}
	_, err = otelebb.QueueMiddleware[string]("mail", o, o)
	if !errors.Is(err, ebb.ErrArgument) {
		t.Error(err)
	}
}
