package oplog

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/ebbdb/ebb/internal/disk"
)

// waker is a client that waits for its reply.
type waker chan struct{}

func (w waker) Wake() { w <- struct{}{} }

// BenchmarkClients runs 50 clients that append one SET each, and wait for the sync if the policy requires that.
func BenchmarkClients(b *testing.B) {
	for policy, name := range []string{"everysec", "always", "no"} {
		b.Run(name, func(b *testing.B) { benchmarkClients(b, Policy(policy)) })
	}
}

func benchmarkClients(b *testing.B, policy Policy) {
	files, err := OpenFiles(disk.OS(), filepath.Join(b.TempDir(), "aof"), "a.aof")
	if err != nil {
		b.Fatal(err)
	}
	l := New(0)
	a := NewAppender(l, files, AppenderOptions{Policy: policy})
	x, err := a.Start(l.Cut())
	if err == nil {
		err = x.Wait(context.Background())
	}
	if err != nil {
		b.Fatal(err)
	}
	set := request(fmt.Sprintf("SET key:%012d %032d", 1, 1))
	b.ResetTimer()
	var wait sync.WaitGroup
	const clients = 50
	for range clients {
		wait.Go(func() {
			w := make(waker, 1)
			for range b.N / clients {
				end, _ := l.Append(Unit{Commands: 1, Bytes: set})
				if policy == Always && !l.OnSynced(end, w) {
					<-w
				}
			}
		})
	}
	wait.Wait()
	b.SetBytes(int64(len(set)))
	if err := a.Close(); err != nil {
		b.Fatal(err)
	}
}
