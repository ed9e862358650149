//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package main

import (
	"errors"
	"os"
)

// readsEnd reports whether Close can wait for the reader. There is no reader here.
const readsEnd = true

// rawMode is empty on systems without support for raw terminals.
type rawMode struct{}

func enterRaw(_, _ *os.File) (*rawMode, error) { return &rawMode{}, nil }

func (*rawMode) hasKeys() bool            { return false }
func (*rawMode) restore() error           { return nil }
func (*rawMode) read([]byte) (int, error) { return 0, errors.ErrUnsupported }

func size(*os.File) (w, h int, ok bool) { return 0, 0, false }
