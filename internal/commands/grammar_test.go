package commands_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/servercmd"
)

// everyCommand runs a check for every command that clients can call.
func everyCommand(t *testing.T, check func(table *command.Table, s *command.Spec)) {
	table, err := servercmd.DefaultTable()
	if err != nil {
		t.Fatal(err)
	}
	for id := range table.Len() {
		if s := table.Spec(id); s.Run != nil {
			check(table, s)
		}
	}
}

func TestMatchAcceptsWhatGenerateMakes(t *testing.T) {
	everyCommand(t, func(table *command.Table, s *command.Spec) {
		rng := s.Source(3)
		for range 100 {
			args := command.Generate(rng, s, nil)
			found, err := table.Resolve(args)
			if err != nil || found != s {
				t.Fatalf("%q: %v", args, err)
			}
			if err := s.Match(args); err != nil {
				t.Fatalf("%q: %v", args, err)
			}
			if _, err := s.AppendKeys(nil, args); err != nil {
				t.Fatalf("%q: %v", args, err)
			}
		}
	})
}

func TestMatchRefusesWhatGenerateInvalidMakes(t *testing.T) {
	everyCommand(t, func(_ *command.Table, s *command.Spec) {
		rng := s.Source(5)
		for range 20 {
			args, ok := command.GenerateInvalid(rng, s, nil)
			if ok && s.Match(args) == nil {
				t.Fatalf("%q is valid", args)
			}
			if !ok && !takesAnything(s) {
				t.Fatalf("%s: nothing is invalid", s.Name)
			}
		}
	})
}

// takesAnything reports whether a command accepts every argument after its name: a container without a
// subcommand, or a command whose arguments are free strings.
func takesAnything(s *command.Spec) bool {
	return len(s.Sub) > 0 || len(s.Args) == 1 && s.Args[0].Optional && s.Args[0].Multiple &&
		(s.Args[0].Kind == command.KindString || s.Args[0].Kind == command.KindPattern)
}
