//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package main

import (
	"errors"
	"os"
)

// readsEnd says whether the reader can be waited for: there is none.
const readsEnd = true

// rawMode is that of systems whose terminals we do not know.
type rawMode struct{}

func enterRaw(_, _ *os.File) (*rawMode, error) { return &rawMode{}, nil }

func (*rawMode) hasKeys() bool            { return false }
func (*rawMode) restore() error           { return nil }
func (*rawMode) read([]byte) (int, error) { return 0, errors.ErrUnsupported }

func size(*os.File) (w, h int, ok bool) { return 0, 0, false }
