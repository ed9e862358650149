package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebbdb/ebb/cache"
	"github.com/ebbdb/ebb/internal/example"
)

const readers = 50 // programs that read one value

// stampede is the cache of GET, load, SET with a TTL. All readers that come before the first load has ended load too.
var stampede = classic{
	title: fmt.Sprintf("a cache by GET, load, SET EX: the value has expired, and %d programs read it", readers),
	right: "1",
	rows:  []row{{"loads", loadsByTTL}, {"cache.Get", loadsByCache}},
}

// together runs a function for each reader at the same time.
func together(run func() error) error {
	errs := make([]error, readers)
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() { errs[i] = run() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func loadsByTTL(ctx context.Context, b *bench) (int64, error) {
	var loads atomic.Int64
	var looked sync.WaitGroup // a load takes longer than all readers need to look
	looked.Add(readers)
	err := together(func() error {
		v, err := b.c.Do(ctx, "GET", b.key("page"))
		looked.Done()
		if err != nil || !v.IsNull() {
			return err
		}
		looked.Wait()
		loads.Add(1)
		return b.c.SetTTL(ctx, b.key("page"), "<h1>home</h1>", time.Minute)
	})
	return loads.Load(), err
}

func loadsByCache(ctx context.Context, b *bench) (int64, error) {
	var loads atomic.Int64
	err := together(func() error {
		pages, err := cache.New[string, string](b.c, b.key("page")) // one for each program
		if err != nil {
			return err
		}
		defer pages.Close()
		_, err = pages.Get(ctx, "home", func(ctx context.Context, _ string) (string, error) {
			loads.Add(1)
			return "<h1>home</h1>", example.Sleep(ctx, 30*time.Millisecond)
		})
		return err
	})
	return loads.Load(), err
}
