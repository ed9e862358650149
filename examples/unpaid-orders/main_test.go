package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/examples/internal/exampletest"
	"github.com/ebbdb/ebb/internal/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"ann orders o-4: refused, she has 3 to pay",
		"ann pays o-2, and has room for o-4",
		"takes a lapsed order, and crashes",
		"ann o-1, ann o-3, ann o-4, bob o-5",
		"unpaid now: ann 0, bob 0",
		"mem:SADDEX of ebb",
	)
}

func TestThirtyMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		var out bytes.Buffer
		start := time.Now()
		if err := story(t.Context(), b.Conn, &out, 30*time.Minute); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"to be paid within 30m0s", "ann o-4, bob o-5", "noticed 1ms after its deadline"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is missing in:\n%s", want, out.String())
			}
		}
		if d := time.Since(start).Round(time.Second); d > 30*time.Minute+2*time.Second {
			t.Error("it took", d)
		}
	})
}
