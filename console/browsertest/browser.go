package browsertest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

// program is Debian's Chromium.
const program = "chromium"

// startTime bounds the start of Chromium, which takes a second on an idle machine.
const startTime = 2 * time.Minute

// flags are the switches of Chromium. Names below .test lead to this machine, so that a test can have pages of several
// sites. Without a sandbox it runs for root as well; it loads only pages of the tests.
var flags = map[string]any{
	"headless": true, "no-sandbox": true, "disable-gpu": true, "disable-quic": true, "no-first-run": true, "no-default-browser-check": true,
	"disable-background-networking": true, "disable-component-update": true, "disable-sync": true, "disable-default-apps": true,
	"disable-extensions": true, "disable-breakpad": true, "disable-dev-shm-usage": true, "disable-client-side-phishing-detection": true,
	"disable-domain-reliability": true, "disable-popup-blocking": true, "metrics-recording-only": true, "safebrowsing-disable-auto-update": true,
	"password-store": "basic", "use-mock-keychain": true, "enable-automation": true,
	"force-color-profile": "srgb", "hide-scrollbars": true, "lang": "en-US", "font-render-hinting": "none",
	"host-resolver-rules": "MAP *.test 127.0.0.1",
	"disable-features":    "Translate,MediaRouter,OptimizationHints",
	// Hidden tabs and long waits must run as in the foreground.
	"disable-background-timer-throttling": true, "disable-backgrounding-occluded-windows": true, "disable-renderer-backgrounding": true,
	"disable-hang-monitor": true, "disable-ipc-flooding-protection": true,
}

// chromium is the one browser of the run.
var chromium struct {
	mu  sync.Mutex
	ctx context.Context // of chromedp; nil before the start
	end func()
	err error
}

// start returns the context of the browser, after the first call has started it.
func start(t testing.TB) context.Context {
	t.Helper()
	path := realserver.Program(t, program)
	c := &chromium
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx == nil && c.err == nil {
		c.ctx, c.end, c.err = launch(path)
	}
	if c.err != nil {
		t.Fatalf("%s does not start: %v", path, c.err)
	}
	return c.ctx
}

// launch starts Chromium with a profile of its own, which the returned function removes.
func launch(path string) (context.Context, func(), error) {
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.Env("TZ=UTC", "LANGUAGE=en"), chromedp.WSURLReadTimeout(startTime)}
	for name, value := range flags {
		options = append(options, chromedp.Flag(name, value))
	}
	allocator, free := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	end := func() {
		soon, over := context.WithTimeout(ctx, Patience)
		_ = chromedp.Cancel(soon) // the kill that follows ends a browser that does not close by itself
		over()
		cancel()
		free()
	}
	if err := chromedp.Run(ctx); err != nil {
		end()
		return nil, nil, err
	}
	return ctx, end, nil
}

// Main runs the tests, ends the browser, and returns the exit code for os.Exit.
func Main(m *testing.M) int {
	code := m.Run()
	chromium.mu.Lock()
	defer chromium.mu.Unlock()
	if chromium.ctx != nil {
		chromium.end()
		chromium.ctx = nil
	}
	if len(shots) > 0 {
		fmt.Fprintf(os.Stderr, "%d screenshots are in %s\n", len(shots), shotDir())
	}
	return code
}
