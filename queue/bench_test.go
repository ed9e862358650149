package queue

import (
	"context"
	"testing"

	"github.com/ebbdb/ebb"
)

// BenchmarkJob pushes, takes and acknowledges a job, in process: three calls.
func BenchmarkJob(b *testing.B) {
	for _, scripted := range []bool{false, true} {
		b.Run(map[bool]string{false: "commands", true: "scripts"}[scripted], func(b *testing.B) {
			q := benchQueue(b, scripted)
			b.ReportAllocs()
			for b.Loop() {
				must(q.Push(b.Context(), "0123456789abcdef"))(b)
				j := must(q.TryPop(b.Context()))(b)
				ok(b, j.Ack(b.Context()))
			}
		})
	}
}

// BenchmarkRun lets eight workers do jobs that were pushed by hundreds.
func BenchmarkRun(b *testing.B) {
	for _, scripted := range []bool{false, true} {
		b.Run(map[bool]string{false: "commands", true: "scripts"}[scripted], func(b *testing.B) {
			q := benchQueue(b, scripted)
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			left := make(chan struct{}, 8)
			ended := make(chan error, 1)
			go func() {
				ended <- q.Run(ctx, 8, func(context.Context, *Job[string]) error {
					left <- struct{}{}
					return nil
				})
			}()
			items := make([]Item[string], 100)
			for i := range items {
				items[i].Value = "0123456789abcdef"
			}
			b.ResetTimer()
			for n := 0; n < b.N; n += len(items) {
				must(q.PushMany(ctx, items))(b)
				for range items {
					<-left
				}
			}
			b.StopTimer()
			stop()
			<-ended
		})
	}
}

func benchQueue(b *testing.B, scripted bool) *Queue[string] {
	c := must(ebb.Open(b.Context(), "mem://"))(b)
	b.Cleanup(func() { ok(b, c.Close()) })
	q := must(New[string](c, "q"))(b)
	q.scripted = scripted
	return q
}
