package main

import (
	"testing"
	"testing/synctest"

	"github.com/ebbdb/ebb/ebbtest"
	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run, "first ran ", "second (a retry) ran ", "last ran ", "mem:4 jobs were moved by ZMOVEDUE BLOCK",
		"redis:4 jobs were moved by a script")
}

// TestJobsRunInTheirMillisecondWithOneCommandEach plays the story in virtual time.
func TestJobsRunInTheirMillisecondWithOneCommandEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		ran, commands, err := story(t.Context(), b.Conn)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"first", "second (a retry)", "third", "last"} {
			if ran[i].name != want || ran[i].late < 0 || ran[i].late.Milliseconds() > 2 {
				t.Errorf("job %d is %+v, want %s at its time", i, ran[i], want)
			}
		}
		if limit := int64(len(planned) + 2); commands > limit { // the two last ones were waiting
			t.Errorf("the movers sent %d commands, want at most %d", commands, limit)
		}
	})
}
