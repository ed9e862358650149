package instance

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A loop that is stuck in its reclaimer is not alive.
func TestAReclaimerThatIsStuckIsNotAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, quit := make(chan struct{}), make(chan struct{})
		wake := []chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
		p := &pulse{turns: make([]turns, 2)}
		p.reclaim = []func() time.Duration{
			func() time.Duration { return -1 },
			func() time.Duration {
				<-stuck
				return -1
			},
		}
		ended := make(chan struct{})
		for i := range wake {
			go func() {
				defer func() { ended <- struct{}{} }()
				for {
					select {
					case <-wake[i]:
						p.idle(i)
					case <-quit:
						return
					}
				}
			}()
		}
		alive := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return p.alive(ctx, 2, func(loop int) { wake[loop] <- struct{}{} })
		}
		if err := alive(); err == nil || !strings.Contains(err.Error(), "network loop 1 of 2") {
			t.Errorf("with a reclaimer that is stuck: %v", err)
		}
		close(stuck)
		synctest.Wait()
		if err := alive(); err != nil {
			t.Errorf("with one that works: %v", err)
		}
		close(quit)
		<-ended
		<-ended
	})
}
