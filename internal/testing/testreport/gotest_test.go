package main

import "testing"

func TestAFailureIsRepeatedAsTheStepRanIt(t *testing.T) {
	for _, name := range []string{"EBB_FULL", "EBB_SEED", "EBB_BACKENDS", "EBB_PROGRAMS"} {
		t.Setenv(name, "")
	}
	t.Setenv("EBB_SEED", "1")
	if got, want := repeats(".", []string{"go", "test", "-json", "-parallel=8", "./..."}), "EBB_SEED=1 go test"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	t.Setenv("EBB_FULL", "1")
	t.Setenv("EBB_BACKENDS", "redis")
	got := repeats("contrib/gin", []string{"go", "test", "-json", "-race", "-short", "./..."})
	if want := "cd contrib/gin && EBB_FULL=1 EBB_SEED=1 EBB_BACKENDS=redis go test -race -short"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
