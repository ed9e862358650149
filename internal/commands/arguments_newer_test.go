package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/compat"
	"github.com/ebbdb/ebb/internal/testing/realserver"
	"github.com/ebbdb/ebb/internal/testing/transcript"
	"github.com/ebbdb/ebb/internal/wire"
)

// Both servers accept a request of 1,048,577 arguments.
func TestARequestOfMoreThanAMillionArguments(t *testing.T) {
	const most = 1 << 20
	request := slices.Repeat([]string{"k"}, most+1)
	request[0] = "EXISTS"
	ask := func(target transcript.Target, args []string) string {
		t.Helper()
		err := target.Send(1, args)
		v, ok := target.Next(1)
		if !ok {
			t.Fatalf("%d arguments: no reply, %v", len(args), err)
		}
		return strings.Join(transcript.Lines(v), "\n")
	}
	e, err := transcript.NewEngine()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if got := ask(e, request[:most]); got != "(integer) 0" {
		t.Errorf("%d arguments: %s", most, got)
	}
	if got := ask(e, request); !strings.Contains(got, string(wire.ErrMultibulkLength)) {
		t.Errorf("%d arguments: %s", most+1, got)
	}
	for _, program := range compat.All.Programs() {
		t.Run(program, func(t *testing.T) {
			s := transcript.NewServer(realserver.Start(t, program))
			defer s.Close()
			covered, err := compat.Covers("many-arguments", program)
			if got := ask(s, request); err != nil || covered != (got == "(integer) 0") {
				t.Errorf("%s: %s, %v", program, got, err)
			}
		})
	}
}
