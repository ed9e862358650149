package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
)

// A signal ends a server that is busy writing out what is to be kept.
func TestASecondSignalCallsTheWritingOff(t *testing.T) {
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	err := untilSignal(signals, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil || len(signals) > 0 {
		t.Errorf("%v", err)
	}
	full := errors.New("no space left")
	if err := untilSignal(signals, func(context.Context) error { return full }); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}
