package drivers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// These are the errors of the same names in package conn, which describes them.
var (
	ErrArgument    = errors.New("ebb: unusable argument")
	ErrUnavailable = errors.New("ebb: the backend cannot be reached")
)

// Unavailable is driverutil.Unavailable, which describes it.
func Unavailable(ctx context.Context, doing string, err error) error {
	if c := ctx.Err(); c != nil {
		return fmt.Errorf("ebb: %s: %w", doing, c)
	}
	if d, ok := ctx.Deadline(); ok && (errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)) &&
		time.Until(d) <= 0 {
		return fmt.Errorf("ebb: %s: %w", doing, context.DeadlineExceeded) // the context's own timer is late
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("ebb: %s: %w: %v", doing, ErrUnavailable, err) //nolint:errorlint // hidden on purpose
	}
	return fmt.Errorf("ebb: %s: %w: %w", doing, ErrUnavailable, err)
}

// Ended is driverutil.Ended, which describes it.
func Ended(ctx context.Context, doing string) error {
	return fmt.Errorf("ebb: %s: %w", doing, ctx.Err())
}
