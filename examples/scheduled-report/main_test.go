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
		"first takes a report, and dies",
		"second takes the same report (true) when the lease is over, delivery 2, and makes it",
		"second makes the next report (true), and dies",
		"third makes one report; others were skipped (true)",
		"mem:DQ.* of ebb",
	)
}

func TestADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		var out bytes.Buffer
		start := time.Now()
		if err := story(t.Context(), b.Conn, &out, 24*time.Hour, time.Minute); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "third makes one report") {
			t.Error(out.String())
		}
		// Two occurrences, and three days without a program.
		if d := time.Since(start).Round(time.Hour); d != 5*24*time.Hour {
			t.Error("it took", d)
		}
	})
}
