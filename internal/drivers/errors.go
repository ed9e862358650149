package drivers

import (
	"context"
	"errors"
	"fmt"
)

// These are the errors of the same names in package conn, which describes them.
var (
	ErrArgument    = errors.New("ebb: unusable argument")
	ErrUnavailable = errors.New("ebb: the backend cannot be reached")
)

// Ended is driverutil.Ended, which describes it.
func Ended(ctx context.Context, doing string) error {
	return fmt.Errorf("ebb: %s: %w", doing, ctx.Err())
}
