package cli

import (
	"os"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ergochat/readline"
)

// editor is the line editor's helper: it completes words and shows the remaining arguments
// after the line, dimmed. The editor calls it from the goroutine that reads lines.
type editor struct {
	commands func() []command
	hints    func() bool
	width    func() (columns, rows int)
	prompt   string

	length    int  // of the line as it was after the last key
	searching bool // in the editor's history search, whose own line a redraw would wipe
	redraw    bool // the next paint is of the whole line and may show the hint
}

// newLineEditor opens the terminal. Only the owner can read the history file, because it
// may contain secrets.
func newLineEditor(e *editor, path string) (*readline.Instance, error) {
	if path != "" {
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
			f.Close()
		}
	}
	screen := &terminal{in: os.Stdin, out: os.Stdout}
	rl, err := readline.NewFromConfig(&readline.Config{
		Stdin: screen, Stdout: screen, HistoryFile: path, HistoryLimit: 1000, DisableAutoSaveHistory: true, HistorySearchFold: true,
		AutoComplete: e, Painter: e.paint, Listener: e.key, Undo: true,
		InterruptPrompt: "^C",
	})
	if err == nil {
		e.width = rl.GetConfig().FuncGetSize
	}
	return rl, err
}

func readPassword() (string, error) {
	screen := &terminal{in: os.Stdin, out: os.Stdout}
	rl, err := readline.NewFromConfig(&readline.Config{Stdin: screen, Stdout: screen})
	if err != nil {
		return "", err
	}
	defer rl.Close()
	pass, err := rl.ReadPassword("Please input password: ")
	return string(pass), err
}

// The editor calls key after each key. When key returns the line unchanged, the editor
// paints all of it, and so the hint.
func (e *editor) key(line []rune, pos int, key rune) ([]rune, int, bool) {
	e.length = len(line)
	switch key {
	case readline.CharBckSearch, readline.CharFwdSearch:
		e.searching = true
	case readline.CharBackspace, readline.CharCtrlH:
	default:
		e.searching = e.searching && key >= ' '
	}
	if e.searching || line == nil || !e.hints() {
		return nil, 0, false
	}
	e.redraw = true
	return line, pos, true
}

// paint returns the text that the terminal shows for a line, or for a part appended to
// one.
func (e *editor) paint(line []rune, pos int) []rune {
	const clearToEnd, dim, plain = "\x1b[K", "\x1b[90m", "\x1b[39m"
	if len(line) == 1 && line[0] == '\n' { // Enter: the hint has done its work
		return []rune(clearToEnd + "\n")
	}
	if !e.redraw {
		return line
	}
	e.redraw = false
	columns, _ := e.width()
	room := 0
	if columns > 0 {
		room = columns - (len([]rune(e.prompt))+len(line))%columns - 1
	}
	hint := []rune(e.hint(string(line)))
	hint = hint[:max(0, min(len(hint), room))]
	if len(hint) == 0 {
		return line
	}
	out := append([]rune(nil), line...)
	out = append(out, []rune(dim)...)
	out = append(out, hint...)
	out = append(out, []rune(plain)...)
	return append(out, []rune(strings.Repeat("\b", len(hint)))...)
}

// hint returns the arguments that may follow a line.
func (e *editor) hint(line string) string {
	words, ok := wire.SplitArgs(line)
	if !ok || len(words) == 0 {
		return ""
	}
	cmd, n := find(e.commands(), words)
	if cmd == nil {
		return ""
	}
	s := syntax(remaining(cmd.args, words[n:]))
	if s != "" && !endsInSpace(line) {
		s = " " + s
	}
	return s
}

// Do completes the word before the cursor. As the editor's interface requires, it returns
// the missing ends of the candidates, and the length of the part that is there already.
func (e *editor) Do(line []rune, pos int) (ends [][]rune, shared int) {
	words := strings.Fields(string(line[:pos]))
	last := ""
	if !endsInSpace(string(line[:pos])) && len(words) > 0 {
		last, words = words[len(words)-1], words[:len(words)-1]
	}
	lower := last != "" && last == strings.ToLower(last) || last == "" && len(words) > 0 && words[0] == strings.ToLower(words[0])
	for _, c := range e.candidates(words) {
		if len(c) < len(last) || !strings.EqualFold(c[:len(last)], last) {
			continue
		}
		if lower {
			c = strings.ToLower(c)
		}
		ends = append(ends, []rune(c[len(last):]+" "))
	}
	return ends, len([]rune(last))
}

// candidates returns the words that can follow words.
func (e *editor) candidates(words []string) (all []string) {
	commands := e.commands()
	prefix := ""
	switch {
	case len(words) > 0 && isHelp(words):
		words = words[1:]
		if len(words) == 0 {
			for _, c := range commands {
				all = append(all, "@"+c.group)
			}
		}
	case len(words) == 0:
		all = []string{"CLEAR", "CONNECT", "EXIT", "HELP", "QUIT"}
	}
	if len(words) > 0 {
		prefix = strings.ToUpper(words[0]) + " "
	}
	if len(words) < 2 {
		for _, c := range commands {
			if name, ok := strings.CutPrefix(c.name, prefix); ok && !strings.Contains(name, " ") {
				all = append(all, name)
			}
		}
	}
	if cmd, n := find(commands, words); cmd != nil {
		all = append(all, tokens(remaining(cmd.args, words[n:]))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func endsInSpace(s string) bool { return strings.TrimRight(s, " \t") != s }
