package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// readsEnd reports whether Close can wait for the reader. A read may wait for a key until
// the program ends.
const readsEnd = false

// rawMode holds the former settings of a console.
type rawMode struct {
	in, out     windows.Handle
	wasIn       uint32
	wasOut      uint32
	wasCodepage uint32
	keys        bool
}

const utf8Codepage = 65001

// enterRaw makes the console interpret escape sequences and UTF-8, and deliver each key at
// once.
func enterRaw(in, out *os.File) (*rawMode, error) {
	m := &rawMode{in: windows.Handle(in.Fd()), out: windows.Handle(out.Fd())}
	if err := windows.GetConsoleMode(m.out, &m.wasOut); err != nil {
		return nil, err
	}
	if err := windows.SetConsoleMode(m.out, m.wasOut|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		return nil, err
	}
	if cp, err := windows.GetConsoleOutputCP(); err == nil {
		m.wasCodepage = cp
		_ = windows.SetConsoleOutputCP(utf8Codepage) // without it the console shows other characters for lines
	}
	if windows.GetConsoleMode(m.in, &m.wasIn) == nil {
		raw := m.wasIn&^(windows.ENABLE_LINE_INPUT|windows.ENABLE_ECHO_INPUT) | windows.ENABLE_VIRTUAL_TERMINAL_INPUT
		m.keys = windows.SetConsoleMode(m.in, raw) == nil
	}
	return m, nil
}

func (m *rawMode) hasKeys() bool { return m.keys }

func (m *rawMode) restore() error {
	if m.wasCodepage != 0 {
		_ = windows.SetConsoleOutputCP(m.wasCodepage)
	}
	if m.keys {
		_ = windows.SetConsoleMode(m.in, m.wasIn)
	}
	return windows.SetConsoleMode(m.out, m.wasOut)
}

// read returns the bytes of pressed keys, or nothing after a tenth of a second.
func (m *rawMode) read(buf []byte) (int, error) {
	if event, err := windows.WaitForSingleObject(m.in, 100); err != nil || event != windows.WAIT_OBJECT_0 {
		return 0, err
	}
	var n uint32
	err := windows.ReadFile(m.in, buf, &n, nil)
	return int(n), err
}

// size returns a console's columns and rows.
func size(f *os.File) (w, h int, ok bool) {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info) != nil {
		return 0, 0, false
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1, true
}
