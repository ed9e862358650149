package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
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
		"expset.Add                                 3 ",
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
		for _, want := range []string{"to be paid within 30m0s", "ann o-4, bob o-5", "noticed 1ms after its deadline",
			"a set with a TTL for each minute          50              34  +0.5 and +0.0",
			"ZCARD, then ZADD                          50               4  +0.0 and +0.0",
			"expset.Add                                 3               1  +0.0 and +0.0"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is missing in:\n%s", want, out.String())
			}
		}
		// The story, and trials that begin and end with a minute of their own.
		if d := time.Since(start).Round(time.Second); d > 2*30*time.Minute+3*time.Minute {
			t.Error("it took", d)
		}
	})
}
