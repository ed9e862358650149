package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// picture is one picture of the results.
type picture struct {
	name, title, unit string
	of                []string // what is compared
	perRow            bool     // each group of bars has a scale of its own
	rows              []row
}

// row is a group of bars.
type row struct {
	label   string
	figures []string // as the page has them, one for each name in of
	values  []float64
	cell    string // the first cell of the page's row
}

// longestLabel is the number of characters for which the picture has room.
const longestLabel = 17

// read reads the pictures of a file of results. Its errors name the line.
func read(r io.Reader) ([]picture, error) {
	var all []picture
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == "picture" {
			all = append(all, picture{name: rest})
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("line %d: %q is not in a picture", n, line)
		}
		if err := all[len(all)-1].take(word, rest, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	for i := range all {
		if p := &all[i]; p.title == "" || p.unit == "" || len(p.rows) == 0 {
			return nil, fmt.Errorf("the picture %q lacks a title, a unit or figures", p.name)
		}
	}
	return all, lines.Err()
}

// take adds a line to a picture.
func (p *picture) take(word, rest, line string) error {
	switch word {
	case "title":
		p.title = rest
	case "unit":
		p.unit = rest
	case "scale":
		if p.perRow = rest == "row"; !p.perRow {
			return fmt.Errorf("scale is %q, want row", rest)
		}
	case "of":
		p.of = cells(rest)
	default:
		return p.addRow(cells(line))
	}
	return nil
}

func (p *picture) addRow(parts []string) error {
	n := len(p.of)
	if n == 0 || len(parts) != n+1 && len(parts) != n+2 {
		return fmt.Errorf("%q has %d cells, want a label, and a figure for each of %q", parts, len(parts), p.of)
	}
	r := row{label: parts[0], figures: parts[1 : n+1], cell: parts[0]}
	if len(r.label) > longestLabel {
		return fmt.Errorf("%q has %d characters, at most %d", r.label, len(r.label), longestLabel)
	}
	if len(parts) > n+1 {
		r.cell = parts[n+1]
	}
	for _, f := range r.figures {
		v, err := strconv.ParseFloat(strings.ReplaceAll(f, ",", ""), 64)
		if err != nil || v < 0 {
			return fmt.Errorf("%q is not a figure", f)
		}
		r.values = append(r.values, v)
	}
	p.rows = append(p.rows, r)
	return nil
}

// cells splits a line of a table.
func cells(line string) []string {
	parts := strings.Split(strings.Trim(line, "|"), "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
