package cli

import (
	"bytes"
	"io"
	"sync/atomic"
)

// terminal is the input and output of the line editor. The editor asks the terminal before each line where the cursor is, and
// waits for the answer. Some terminals give none, and the editor would wait for ever. The cursor is at the left edge, because
// each reply ends in a line break: so the terminal is not asked, and Read gives that answer.
type terminal struct {
	in    io.Reader
	out   io.Writer
	asked atomic.Int32 // questions without an answer
}

var (
	// cursorQuestion is DSR, and cursorAnswer CPR, with the row and the column: https://vt100.net/docs/vt510-rm/DSR-CPR.html
	cursorQuestion = []byte("\x1b[6n")
	cursorAnswer   = []byte("\x1b[1;1R")
)

// Write implements io.Writer.
func (t *terminal) Write(b []byte) (int, error) {
	if n := bytes.Count(b, cursorQuestion); n > 0 {
		t.asked.Add(int32(n))
		if _, err := t.out.Write(bytes.ReplaceAll(b, cursorQuestion, nil)); err != nil {
			return 0, err
		}
		return len(b), nil
	}
	return t.out.Write(b)
}

// Read implements io.Reader.
func (t *terminal) Read(b []byte) (int, error) {
	if len(b) >= len(cursorAnswer) && t.asked.Load() > 0 {
		t.asked.Add(-1)
		return copy(b, cursorAnswer), nil
	}
	return t.in.Read(b)
}
