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
	exampletest.Run(t, run, "report 1 ran ", "mail 2 ran ", "image 1 ran ", "mail 1 ran ", "mem:ZPOPDUE PEEK BLOCK", "redis:looks each 100ms")
}

// TestOneConnectionServesAllQueuesOnTime plays the story in virtual time.
func TestOneConnectionServesAllQueuesOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ebbtest.Run(t)
		s := newStory(b.Conn)
		if err := s.play(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, r := range s.ran {
			if r.late < 0 || r.late.Milliseconds() > 2 {
				t.Errorf("%+v, want it at its time", r)
			}
		}
		if s.waits > len(planned) {
			t.Errorf("the program waited %d times for %d jobs", s.waits, len(planned))
		}
	})
}
