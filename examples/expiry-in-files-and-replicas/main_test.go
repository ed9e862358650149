package main

import (
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestTheStoryGoesAsTold(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out, realserver.Ebb(t), t.TempDir()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "\n"); n != 11 {
		t.Errorf("%d lines:\n%s", n, out.String())
	}
}
