package kit

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestABoundEndsLikeAContextWithATimeout(t *testing.T) {
	slow := errors.New("slow")
	type key struct{}
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, 1))
		for _, asked := range []bool{false, true} {
			b := NewBound(parent, time.Second, slow)
			began := time.Now()
			if asked {
				select {
				case <-b.Done():
					t.Fatal("it has ended at once")
				default:
				}
			}
			if at, ok := b.Deadline(); !ok || at.Sub(began) != time.Second || b.Value(key{}) != 1 || b.Err() != nil {
				t.Error(at, ok, b.Value(key{}), b.Err())
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if !errors.Is(b.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(b), slow) || b.Value(key{}) != 1 {
				t.Error(b.Err(), context.Cause(b), b.Value(key{}))
			}
			<-b.Done()
			b.Stop()
		}

		short, stop := context.WithTimeout(parent, time.Millisecond)
		defer stop()
		b := NewBound(short, time.Second, slow)
		if at, _ := b.Deadline(); time.Until(at) != time.Millisecond {
			t.Error("the parent's deadline is nearer:", at)
		}
		child, drop := context.WithCancel(NewBound(parent, time.Second, slow))
		defer drop()
		unasked, why := NewBound(parent, time.Second, slow), errors.New("enough")
		cancel(why)
		<-child.Done()
		if !errors.Is(unasked.Err(), context.Canceled) || context.Cause(unasked) != why || context.Cause(child) != why {
			t.Error(unasked.Err(), context.Cause(unasked), context.Cause(child))
		}
	})
}

func TestABoundMakesNoTimerThatNobodyAskedFor(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := testing.AllocsPerRun(100, func() {
		b := NewBound(ctx, time.Second, nil)
		if b.Err() != nil || b.Parent() != ctx {
			t.Error("it has ended")
		}
		b.Stop()
	})
	if n > 1 {
		t.Errorf("%v allocations", n)
	}
}
