package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

// key is a key that the tour knows.
type key uint8

const (
	keyOther key = iota
	keyNext
	keyBack
	keyQuit
)

// Terminal is a terminal that shows the tour, on its alternate screen and without a
// cursor. It delivers each key at once. The caller closes it.
type Terminal struct {
	in, out *os.File
	mode    *rawMode // nil: the input is not a terminal, and there are no keys
	keys    chan key
	stop    context.CancelFunc
	reads   sync.WaitGroup

	shown [height]string
}

// ErrSmall is in the chain of OpenTerminal's error for a terminal that is smaller
// than a screen.
var ErrSmall = fmt.Errorf("the tour needs %d columns and %d rows", width, height)

// OpenTerminal takes over a terminal. It draws on out, and reads keys from in if that is a
// terminal too.
func OpenTerminal(in, out *os.File) (*Terminal, error) {
	if w, h, ok := size(out); ok && (w < width || h < height) {
		return nil, fmt.Errorf("%w, and this terminal has %d and %d", ErrSmall, w, h)
	}
	t := &Terminal{in: in, out: out, keys: make(chan key, 8)}
	mode, err := enterRaw(in, out)
	if err != nil {
		return nil, err
	}
	t.mode = mode
	ctx, stop := context.WithCancel(context.Background())
	t.stop = stop
	if mode.hasKeys() {
		t.reads.Go(func() { t.read(ctx) })
	}
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l\x1b[2J")
	return t, nil
}

// Close restores the terminal.
func (t *Terminal) Close() error {
	t.stop()
	if readsEnd {
		t.reads.Wait()
	}
	_, err := fmt.Fprint(t.out, "\x1b[0m\x1b[?25h\x1b[?1049l")
	if restored := t.mode.restore(); err == nil {
		err = restored
	}
	return err
}

// read turns bytes into keys until ctx ends, which it notices within a tenth of a
// second.
func (t *Terminal) read(ctx context.Context) {
	var buf [16]byte
	for ctx.Err() == nil {
		n, err := t.mode.read(buf[:])
		if err != nil {
			return
		}
		for _, k := range keysOf(buf[:n]) {
			select {
			case t.keys <- k:
			default: // more keys than a user presses on purpose
			}
		}
	}
}

// keysOf reads what a terminal sends for keys.
func keysOf(b []byte) []key {
	switch string(b) {
	case "\x1b[C", "\x1bOC", "\x1b[6~": // right, page down
		return []key{keyNext}
	case "\x1b[D", "\x1bOD", "\x1b[5~": // left, page up
		return []key{keyBack}
	case "\x1b":
		return []key{keyQuit}
	}
	if strings.HasPrefix(string(b), "\x1b") {
		return nil
	}
	var all []key
	for _, c := range b {
		switch c {
		case ' ', 'n', 'N', '\r', '\n':
			all = append(all, keyNext)
		case 'p', 'P', 'b':
			all = append(all, keyBack)
		case 'q', 'Q', 3, 4: // and what Ctrl-C and Ctrl-D are where they are bytes
			all = append(all, keyQuit)
		}
	}
	return all
}

// show writes the rows that have changed.
func (t *Terminal) show(w io.Writer, cv *canvas) error {
	var b strings.Builder
	for y := range height {
		if row := cv.line(y, true); row != t.shown[y] {
			fmt.Fprintf(&b, "\x1b[%d;1H%s", y+1, row)
			t.shown[y] = row
		}
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(w, b.String())
	return err
}
