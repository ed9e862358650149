//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// readsEnd reports whether Close can wait for the reader. A read ends after a tenth of a
// second.
const readsEnd = true

// rawMode holds the former settings of a terminal.
type rawMode struct {
	fd  int
	was *unix.Termios // nil: the input is not a terminal
}

// enterRaw makes the terminal deliver each key at once and not show it. Ctrl-C stays a
// signal. Ctrl-Z does not, because it would leave the terminal in raw mode.
func enterRaw(in, _ *os.File) (*rawMode, error) {
	m := &rawMode{fd: int(in.Fd())}
	was, err := unix.IoctlGetTermios(m.fd, getTermios)
	if err != nil {
		return m, nil // the tour plays without keys
	}
	raw := *was
	raw.Lflag &^= unix.ICANON | unix.ECHO
	raw.Cc[unix.VSUSP] = 0 // _POSIX_VDISABLE of Linux; a byte that no key sends elsewhere
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 0, 1
	if err := unix.IoctlSetTermios(m.fd, setTermios, &raw); err != nil {
		return nil, err
	}
	m.was = was
	return m, nil
}

func (m *rawMode) hasKeys() bool { return m.was != nil }

func (m *rawMode) restore() error {
	if m.was == nil {
		return nil
	}
	return unix.IoctlSetTermios(m.fd, setTermios, m.was)
}

// read returns the bytes of pressed keys, or nothing after a tenth of a second.
func (m *rawMode) read(buf []byte) (int, error) {
	n, err := unix.Read(m.fd, buf)
	if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
		return 0, nil
	}
	return max(n, 0), err
}

// size returns a terminal's columns and rows.
func size(f *os.File) (w, h int, ok bool) {
	ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || ws.Col == 0 {
		return 0, 0, false
	}
	return int(ws.Col), int(ws.Row), true
}
