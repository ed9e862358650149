package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// Task is a piece of work of the page's main thread, in ms.
type Task struct {
	Took float64 // by the clock
	CPU  float64 // of the processor, which other programs do not change
}

// Tasks records the tasks of the page's main thread while fn runs, the longest first.
func (p *Page) Tasks(fn func()) []Task {
	p.t.Helper()
	type event struct {
		Name string         `json:"name"`
		Pid  int            `json:"pid"`
		Tid  int            `json:"tid"`
		Dur  float64        `json:"dur"`  // us
		TDur float64        `json:"tdur"` // us
		Args map[string]any `json:"args"`
	}
	var mu sync.Mutex
	var events []event
	over := make(chan struct{})
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	chromedp.ListenTarget(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *tracing.EventDataCollected:
			mu.Lock()
			defer mu.Unlock()
			for _, raw := range ev.Value {
				var e event
				if json.Unmarshal(raw, &e) == nil {
					events = append(events, e)
				}
			}
		case *tracing.EventTracingComplete:
			close(over)
		}
	})
	config := &tracing.TraceConfig{RecordMode: tracing.RecordModeRecordContinuously,
		IncludedCategories: []string{"disabled-by-default-devtools.timeline", "__metadata"}, ExcludedCategories: []string{"*"}}
	p.Run(tracing.Start().WithTraceConfig(config).WithTransferMode(tracing.TransferModeReportEvents))
	fn()
	p.Run(tracing.End())
	wait, stop := context.WithTimeout(ctx, Patience)
	defer stop()
	select {
	case <-over:
	case <-wait.Done():
		p.t.Fatal("the trace does not end")
	}
	mu.Lock()
	defer mu.Unlock()
	type thread struct{ pid, tid int }
	main := map[thread]bool{}
	for _, e := range events {
		if e.Name == "thread_name" && e.Args["name"] == "CrRendererMain" {
			main[thread{e.Pid, e.Tid}] = true
		}
	}
	var out []Task
	for _, e := range events {
		if e.Name == "RunTask" && main[thread{e.Pid, e.Tid}] {
			out = append(out, Task{e.Dur / 1000, e.TDur / 1000})
		}
	}
	slices.SortFunc(out, func(a, b Task) int { return int(b.Took*1000 - a.Took*1000) })
	return out
}

// Memory is the memory use of a tab, after a garbage collection.
type Memory struct {
	Heap  float64 // MiB of JavaScript
	Nodes float64 // of documents
}

// String returns the figures in words.
func (m Memory) String() string { return fmt.Sprintf("%.1f MiB of heap, %.0f nodes", m.Heap, m.Nodes) }

// Memory returns the memory use of the tab.
func (p *Page) Memory() Memory {
	p.t.Helper()
	var m Memory
	p.Run(performance.Enable(), heapprofiler.Enable(), heapprofiler.CollectGarbage(), chromedp.ActionFunc(func(ctx context.Context) error {
		all, err := performance.GetMetrics().Do(ctx)
		for _, x := range all {
			switch x.Name {
			case "JSHeapUsedSize":
				m.Heap = x.Value / (1 << 20)
			case "Nodes":
				m.Nodes = x.Value
			}
		}
		return err
	}))
	return m
}
