package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The screen's size: what every terminal has.
const (
	width  = 80
	height = 24
)

// style is the look of a cell.
type style uint8

const (
	plain style = iota
	bold
	dim
	red
	green
	yellow
	blue
	magenta
	cyan
	title // white on blue
	styles
)

// codes are the escape sequences that begin a style. The colours are the sixteen
// that a terminal's theme defines.
var codes = [styles]string{
	plain: "0", bold: "0;1", dim: "0;90", red: "0;91", green: "0;92", yellow: "0;93",
	blue: "0;94", magenta: "0;95", cyan: "0;96", title: "0;97;44",
}

// canvas is a picture of one screen. Drawing outside of it does nothing.
type canvas struct {
	r [height][width]rune
	s [height][width]style
}

func (c *canvas) clear() {
	for y := range height {
		for x := range width {
			c.r[y][x], c.s[y][x] = ' ', plain
		}
	}
}

// put writes a text from column x on and returns the column after it.
func (c *canvas) put(x, y int, st style, text string) int {
	for _, r := range text {
		if x >= 0 && x < width && y >= 0 && y < height {
			c.r[y][x], c.s[y][x] = r, st
		}
		x++
	}
	return x
}

func (c *canvas) putf(x, y int, st style, format string, args ...any) int {
	return c.put(x, y, st, fmt.Sprintf(format, args...))
}

// right writes a text that ends before column x.
func (c *canvas) right(x, y int, st style, text string) {
	c.put(x-utf8.RuneCountInString(text), y, st, text)
}

// eighths are parts of a full block.
var eighths = []rune(" ▏▎▍▌▋▊▉")

// bar draws a bar over a share of w columns, exact to an eighth of a column, on a dotted
// ground.
func (c *canvas) bar(x, y, w int, st style, share float64) {
	share = min(max(share, 0), 1)
	n := int(share*float64(w)*8 + 0.5)
	for i := range w {
		switch part := n - i*8; {
		case part >= 8:
			c.put(x+i, y, st, "█")
		case part > 0:
			c.put(x+i, y, st, string(eighths[part]))
		default:
			c.put(x+i, y, dim, "·")
		}
	}
}

// aging returns the colour for an item that has this share of its time left.
func aging(share float64) style {
	switch {
	case share > 0.5:
		return green
	case share > 0.2:
		return yellow
	}
	return red
}

// box draws a frame.
func (c *canvas) box(x, y, w, h int, st style) {
	c.put(x, y, st, "┌"+strings.Repeat("─", w-2)+"┐")
	for i := 1; i < h-1; i++ {
		c.put(x, y+i, st, "│")
		c.put(x+w-1, y+i, st, "│")
	}
	c.put(x, y+h-1, st, "└"+strings.Repeat("─", w-2)+"┘")
}

// line returns a row with escape codes, or without.
func (c *canvas) line(y int, codesToo bool) string {
	var b strings.Builder
	last := styles
	for x := range width {
		if st := c.s[y][x]; codesToo && st != last {
			fmt.Fprintf(&b, "\x1b[%sm", codes[st])
			last = st
		}
		b.WriteRune(c.r[y][x])
	}
	if codesToo {
		b.WriteString("\x1b[0m")
		return b.String()
	}
	return strings.TrimRight(b.String(), " ")
}

// text returns the picture without colours, and without blank rows at its ends.
func (c *canvas) text() string {
	var rows []string
	for y := range height {
		rows = append(rows, c.line(y, false))
	}
	return strings.Trim(strings.Join(rows, "\n"), "\n") + "\n"
}
