package ebb_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb"
)

// paused is a log that holds up who writes the first line, as a long load would.
type paused struct {
	slog.Handler
	began, goOn chan struct{}
	once        *sync.Once
}

func newPaused() paused {
	return paused{slog.DiscardHandler, make(chan struct{}), make(chan struct{}), new(sync.Once)}
}

func (p paused) Enabled(context.Context, slog.Level) bool { return true }

func (p paused) Handle(context.Context, slog.Record) error {
	p.once.Do(func() { close(p.began); <-p.goOn })
	return nil
}

func TestALoadKeepsNoOtherEngineWaiting(t *testing.T) {
	url := "file://" + filepath.ToSlash(t.TempDir())
	c := openFiles(t, url)
	must(t, c.Set(t.Context(), "k", "v"))
	must(t, c.Close())

	p := newPaused()
	first := make(chan *ebb.Conn, 1)
	var opens sync.WaitGroup
	opens.Go(func() {
		c, err := ebb.Open(testContext(t), url, ebb.Options{Logger: slog.New(p)})
		if err != nil {
			t.Error(err)
		}
		first <- c
	})
	<-p.began
	ctx := testContext(t)
	other, err := ebb.Open(ctx, "mem://other-than-files") // while it loads
	must(t, err)
	must(t, other.Close())
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := ebb.Open(short, url); !errors.Is(err, context.DeadlineExceeded) || ebb.Temporary(err) {
		t.Errorf("a caller that does not want to wait for the load: %v", err)
	}
	second := make(chan *ebb.Conn, 1)
	opens.Go(func() {
		c, err := ebb.Open(ctx, url)
		if err != nil {
			t.Error(err)
		}
		second <- c
	})
	close(p.goOn)
	a, b := <-first, <-second
	opens.Wait()
	if a == nil || b == nil {
		t.FailNow()
	}
	if a.Engine() != b.Engine() {
		t.Error("two engines on one directory")
	}
	check(t, "what was loaded", "v")(b.Get(ctx, "k"))
	must(t, a.Close())
	check(t, "after the other was closed", "v")(b.Get(ctx, "k"))
	must(t, b.Close())
}

func TestALoadThatItsCallerGivesUpIsDoneByTheNext(t *testing.T) {
	url := "file://" + filepath.ToSlash(t.TempDir())
	c := openFiles(t, url)
	must(t, c.Set(t.Context(), "k", "v"))
	must(t, c.Close())
	var opens sync.WaitGroup
	for range 8 { // of which some give up
		for _, patience := range []time.Duration{0, 200 * time.Microsecond, time.Minute} {
			opens.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				c, err := ebb.Open(ctx, url)
				switch {
				case err == nil:
					if s, err := c.Get(t.Context(), "k"); s != "v" || err != nil {
						t.Errorf("%q, %v", s, err)
					}
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				case patience == time.Minute || !errors.Is(err, context.DeadlineExceeded) || ebb.Temporary(err):
					t.Errorf("within %v: %v", patience, err)
				}
			})
		}
	}
	opens.Wait()
	c = openFiles(t, url)
	check(t, "afterwards", "v")(c.Get(t.Context(), "k"))
	must(t, c.Close())
}

func TestWhichErrorsOfOpenAreTemporary(t *testing.T) {
	refuse := func(err error) ebb.Options {
		return ebb.Options{Dial: func(_ context.Context, network, _ string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}}
	}
	damaged := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(damaged, "appendonlydir"), 0o700))
	must(t, os.WriteFile(filepath.Join(damaged, "appendonlydir", "appendonly.aof.manifest"), []byte("this is no manifest\n"), 0o600))
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	refused := refuse(syscall.ECONNREFUSED)
	for _, x := range []struct {
		name, url string
		o         ebb.Options
		temporary bool
		is        error
	}{
		{"a file for a directory", "file://" + filepath.ToSlash(file), ebb.Options{}, false, ebb.ErrFiles},
		{"a directory below a file", "file://" + filepath.ToSlash(file) + "/data", ebb.Options{}, false, ebb.ErrFiles},
		{"damaged files", "file://" + filepath.ToSlash(damaged), ebb.Options{}, false, ebb.ErrFiles},
		{"no scheme", "127.0.0.1", ebb.Options{}, false, ebb.ErrURL},
		{"another scheme", "http://there", ebb.Options{}, false, ebb.ErrURL},
		{"another parameter", "redis://there?colour=blue", ebb.Options{}, false, ebb.ErrURL},
		{"a database that is none", "mem://name/99", ebb.Options{}, false, ebb.ErrURL},
		{"a server that refuses", "redis://there", refused, true, ebb.ErrUnavailable},
		{"sentinels that refuse", "redis+sentinel://a,b,c/shop", refused, true, ebb.ErrUnavailable},
		{"a cluster that refuses", "redis+cluster://a,b,c", refused, true, ebb.ErrUnavailable},
		{"a network that is not there", "redis://there", refuse(syscall.ENETUNREACH), true, ebb.ErrUnavailable},
		{"a name that is not known yet", "redis://there", refuse(&net.DNSError{Err: "no such host", Name: "there", IsNotFound: true}), true, ebb.ErrUnavailable},
	} {
		t.Run(x.name, func(t *testing.T) {
			c, err := ebb.Open(testContext(t), x.url, x.o)
			if err == nil {
				must(t, c.Close())
			}
			if !errors.Is(err, x.is) || ebb.Temporary(err) != x.temporary {
				t.Errorf("temporary: %v: %v", ebb.Temporary(err), err)
			}
			for _, other := range []error{ebb.ErrFiles, ebb.ErrURL, ebb.ErrUnavailable} {
				if !errors.Is(x.is, other) && errors.Is(err, other) {
					t.Errorf("%v is in the chain of %v", other, err)
				}
			}
		})
	}
}

func TestServersThatRefuseAreNotAskedForLong(t *testing.T) {
	for _, url := range []string{"redis://a", "redis+sentinel://a,b,c/shop", "redis+cluster://a,b,c"} {
		t.Run(url, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := ebb.Open(t.Context(), url, ebb.Options{Dial: func(_ context.Context, network, _ string) (net.Conn, error) {
					return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
				}})
				if took := time.Since(began); !errors.Is(err, ebb.ErrUnavailable) || took > 1500*time.Millisecond { // of virtual time
					t.Errorf("after %v: %v", took, err)
				}
				time.Sleep(5 * time.Second) // virtual: goroutines of go-redis's pools see that these are closed
			})
		})
	}
}
