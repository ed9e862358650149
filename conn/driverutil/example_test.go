package driverutil_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/conn/driverutil"
)

// A Driver sends texts. A duration has none, because its unit depends on the command.
func ExampleArgText() {
	fmt.Println(driverutil.ArgText(1.5))
	fmt.Println(driverutil.ArgText(true))
	_, err := driverutil.ArgText(time.Second)
	fmt.Println(errors.Is(err, conn.ErrArgument))
	// Output:
	// 1.5 <nil>
	// 1 <nil>
	// true
}

// The error of a backend that does not reply says whether the caller has given up or the backend is away.
func ExampleUnavailable() {
	ctx, cancel := context.WithCancel(context.Background())
	fmt.Println(driverutil.Unavailable(ctx, "GET", io.EOF))
	cancel()
	fmt.Println(driverutil.Unavailable(ctx, "GET", io.EOF))
	// Output:
	// ebb: GET: ebb: the backend cannot be reached: EOF
	// ebb: GET: context canceled
}
