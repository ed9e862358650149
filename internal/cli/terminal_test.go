package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/ergochat/readline"
)

// A terminal that answers nothing: the line editor shows its prompt and reads lines all the same.
func TestTheLineEditorDoesNotWaitForTheTerminal(t *testing.T) {
	var shown bytes.Buffer
	screen := &terminal{in: strings.NewReader("PING\rGET k\r"), out: &shown}
	rl, err := readline.NewFromConfig(&readline.Config{
		Prompt: "> ", Stdin: screen, Stdout: screen, FuncIsTerminal: func() bool { return true },
		FuncGetSize: func() (int, int) { return 80, 24 },
		FuncMakeRaw: func() error { return nil }, FuncExitRaw: func() error { return nil }, FuncOnWidthChanged: func(func()) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer rl.Close()
	for _, want := range []string{"PING", "GET k"} {
		if line, err := rl.ReadLine(); line != want || err != nil {
			t.Errorf("%q, %v; want %q", line, err, want)
		}
	}
	if strings.Contains(shown.String(), "\x1b[6n") || !strings.Contains(shown.String(), "> ") {
		t.Errorf("it shows %q", shown.String())
	}
}

// A dumb terminal gets prompts and replies without escape sequences.
func TestADumbTerminalHasPlainLines(t *testing.T) {
	var out, errs bytes.Buffer
	env := Env{In: strings.NewReader("help nothing\nquit\n"), Out: &out, Err: &errs, InTTY: true, Getenv: func(name string) string {
		return map[string]string{"TERM": "dumb"}[name]
	}}
	if code := Main(context.Background(), []string{"-p", "1"}, env); code != 0 {
		t.Errorf("status %d; %s%s", code, &out, &errs)
	}
	if text := out.String(); !strings.Contains(text, "not connected> ") || strings.Contains(text, "\x1b") {
		t.Errorf("it prints %q", text)
	}
}
