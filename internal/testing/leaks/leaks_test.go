package leaks

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestAGoroutineMayEndLaterThanGoleakWaits(t *testing.T) {
	end := make(chan struct{})
	go func() { <-end }()
	if goleak.Find() == nil { // returns after 0.43 s
		t.Fatal("goleak finds no goroutine")
	}
	time.AfterFunc(time.Second, func() { close(end) })
	Check(t)
}
