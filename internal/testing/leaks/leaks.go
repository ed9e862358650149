// Package leaks fails the tests of a package that leave goroutines. goleak alone waits 0.43 s for them to end, which a busy
// machine exceeds; this package waits for tier.Patience.
//
//	func TestMain(m *testing.M) { leaks.Main(m) }
package leaks

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ebbdb/ebb/internal/testing/tier"
)

// Main runs the tests of a package and exits. The status is 1 if they passed and goroutines are left that the options do not name.
func Main(m *testing.M, o ...goleak.Option) {
	code := m.Run()
	if code == 0 {
		if err := Find(o...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// Check fails the test if goroutines are left.
func Check(t testing.TB, o ...goleak.Option) {
	t.Helper()
	if err := Find(o...); err != nil {
		t.Error(err)
	}
}

// Find waits until no goroutine is left but the caller's, those of package testing and those that the options name. Its error,
// after tier.Patience, has the stacks of the others.
func Find(o ...goleak.Option) error {
	for late := time.After(tier.Patience); ; {
		err := goleak.Find(o...) // takes half a second if it finds one
		if err == nil {
			return nil
		}
		select {
		case <-late:
			return err
		default:
		}
	}
}
