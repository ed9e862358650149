package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ebbdb/ebb/internal/kit"
	"github.com/ebbdb/ebb/internal/testing/backends"
)

// running runs workers in the background until the returned stop is called, which returns Run's error.
func running(b *backends.Backend, q *Queue[string], workers int, fn func(context.Context, *Job[string]) error) (stop func() error) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- q.Run(ctx, workers, fn) }()
	return func() error {
		cancel()
		return <-done
	}
}

func TestRunExtendsTheLeaseForAsLongAsTheFunctionRuns(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Lease: time.Second})
		runs, took := atomic.Int32{}, 1100*time.Millisecond
		switch b.Kind {
		case "mem":
			took = 10 * time.Second
		case "file":
			took = 0 // this is the embedded engine
		}
		done := make(chan struct{}, 10)
		stop := running(b, q, 2, func(ctx context.Context, j *Job[string]) error {
			defer func() { done <- struct{}{} }()
			runs.Add(1)
			_ = kit.Sleep(ctx, took)
			return ctx.Err()
		})
		must(q.Push(ctx, "long"))(t)
		<-done
		b.Until("the job is done", func() bool { return must(q.Len(ctx))(t) == 0 })
		failsWith(t, stop(), context.Canceled)
		if n := runs.Load(); n != 1 && b.Virtual() { // on a real backend the machine may have slept for a lease
			t.Errorf("%d runs", n)
		}
	})
}

func TestWhatTheFunctionReturnsSettlesTheJob(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		var log logged
		ctx, q := b.Context(), open(Options[string]{MaxDeliveries: 2, Backoff: func(int) time.Duration { return 5 * time.Millisecond },
			Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		var items []Item[string]
		for _, v := range []string{"fine", "fails once", "fails", "permanent", "panics", "own"} {
			items = append(items, Item[string]{Value: v, PushOptions: PushOptions{ID: v}})
		}
		must(q.PushMany(ctx, items))(t)
		stop := running(b, q, 3, func(ctx context.Context, j *Job[string]) error {
			switch j.Value {
			case "fails once":
				if j.Deliveries > 1 {
					return nil
				}
				return errors.New("the first time")
			case "fails":
				return errors.New("as always")
			case "permanent":
				return fmt.Errorf("no: %w", ErrPermanent)
			case "panics":
				panic("oh\nand a second line")
			case "own":
				return errors.Join(j.Ack(ctx), errors.New("the job is settled"))
			}
			return nil
		})
		b.Until("all are settled", func() bool { return must(q.Len(ctx))(t) == 0 })
		failsWith(t, stop(), context.Canceled)
		reasons := map[string]string{}
		for _, d := range must(q.DeadLetters(ctx, 10))(t) {
			reasons[d.ID] = fmt.Sprintf("%d %.9s", d.Deliveries, d.Reason)
			if strings.Contains(d.Reason, "\n") {
				t.Errorf("the reason of %s has several lines: %q", d.ID, d.Reason)
			}
		}
		want := map[string]string{"fails": "2 as always", "permanent": "1 no: queue", "panics": "2 panic: oh"}
		if fmt.Sprint(reasons) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", reasons, want)
		}
		wantStack(t, &log, "panics", "oh\nand a second line", "TestWhatTheFunctionReturnsSettlesTheJob")
	})
}

// logged keeps the lines of a log.
type logged struct {
	mu   sync.Mutex // guards what follows
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// wantStack checks that the log reports each panic of a job, with its value and its place.
func wantStack(t *testing.T, log *logged, job, panicked, where string) {
	t.Helper()
	log.mu.Lock()
	defer log.mu.Unlock()
	told := 0
	for line := range strings.Lines(log.text.String()) {
		var entry struct {
			Level, Msg, Panic, Stack string
			Jobs                     []string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(entry.Msg, "panicked") {
			continue
		}
		told++
		if entry.Level != "ERROR" || entry.Panic != panicked || !slices.Contains(entry.Jobs, job) ||
			!strings.HasPrefix(entry.Stack, "goroutine ") || !strings.Contains(entry.Stack, where) {
			t.Errorf("%s", line)
		}
	}
	if told == 0 {
		t.Errorf("the log tells nothing of the panic of %s", job)
	}
}

func TestALostLeaseEndsTheFunctionsContext(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Lease: 60 * time.Millisecond})
		began, cause := make(chan string, 100), make(chan error, 1)
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			began <- j.ID
			<-ctx.Done()
			select {
			case cause <- context.Cause(ctx):
			default:
			}
			return ctx.Err()
		})
		must(q.Push(ctx, "v"))(t)
		if n := must(q.Cancel(ctx, <-began))(t); n != 1 {
			t.Errorf("cancelled %d", n)
		}
		failsWith(t, <-cause, ErrLost)
		failsWith(t, stop(), context.Canceled)
	})
}

func TestGraceLetsFunctionsFinish(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{Grace: time.Minute})
		began := make(chan struct{})
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			close(began)
			_ = kit.Sleep(ctx, 30*time.Millisecond)
			return ctx.Err()
		})
		must(q.Push(ctx, "v"))(t)
		<-began
		failsWith(t, stop(), context.Canceled)
		if n := must(q.Len(ctx))(t); n != 0 {
			t.Errorf("%d jobs are left", n)
		}
	})
}

func TestAJobThatIsCutShortIsDueAgainAtOnce(t *testing.T) {
	ways(t, func(t *testing.T, b *backends.Backend, open func(Options[string]) *Queue[string]) {
		ctx, q := b.Context(), open(Options[string]{})
		began := make(chan struct{})
		stop := running(b, q, 1, func(ctx context.Context, j *Job[string]) error {
			close(began)
			<-ctx.Done()
			return ctx.Err()
		})
		must(q.Push(ctx, "v"))(t)
		<-began
		failsWith(t, stop(), context.Canceled)
		if j := must(q.TryPop(ctx))(t); j.Deliveries != 2 {
			t.Errorf("%+v", j)
		}
	})
}
