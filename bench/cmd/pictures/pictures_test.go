package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	resultsFile = "../../results.txt"
	pageFile    = "../../../docs/benchmarks.md"
	imagesDir   = "../../../docs/images"
)

func recorded(t *testing.T) []picture {
	t.Helper()
	b, err := os.ReadFile(resultsFile)
	if err != nil {
		t.Fatal(err)
	}
	all, err := read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestThePicturesShowTheResults(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(imagesDir, "benchmark-*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	text := page(t)
	for _, p := range recorded(t) {
		name := filepath.Join(imagesDir, p.file())
		files = slices.DeleteFunc(files, func(f string) bool { return f == name })
		if b, err := os.ReadFile(name); err != nil || !bytes.Equal(b, draw(&p)) {
			t.Errorf("%s does not show the results (%v): cd bench && go run ./cmd/pictures", name, err)
		}
		if !strings.Contains(text, "](images/"+p.file()+")") {
			t.Errorf("docs/benchmarks.md does not show %s", p.file())
		}
	}
	if len(files) > 0 {
		t.Errorf("pictures without results: %q", files)
	}
}

// figure matches a number of a table.
var figure = regexp.MustCompile(`[0-9][0-9,]*(\.[0-9]+)?`)

func TestTheTablesOfThePageHaveTheResults(t *testing.T) {
	rows := map[string][]string{} // the figures of each row by its first cell
	for line := range strings.Lines(page(t)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") {
			all := cells(line)
			rows[all[0]] = append(rows[all[0]], figure.FindAllString(strings.Join(all[1:], " "), -1)...)
		}
	}
	for _, p := range recorded(t) {
		for _, r := range p.rows {
			for _, f := range r.figures {
				if !slices.Contains(rows[r.cell], f) {
					t.Errorf("%s: the page's row %q has %q, and not %s", p.name, r.cell, rows[r.cell], f)
				}
			}
		}
	}
}

// A picture is well-formed, its bars are as long as its figures say, and all is inside the picture.
func TestTheBarsAreAsLongAsTheFigures(t *testing.T) {
	for _, p := range recorded(t) {
		var lengths []float64
		d := xml.NewDecoder(bytes.NewReader(draw(&p)))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
			e, ok := token.(xml.StartElement)
			if !ok || e.Name.Local != "rect" || attr(e, "rx") != "1" {
				continue
			}
			length, err := strconv.ParseFloat(attr(e, "width"), 64)
			if err != nil || barsAt+length > width-margin {
				t.Errorf("%s: a bar is %q wide", p.name, attr(e, "width"))
			}
			lengths = append(lengths, length)
		}
		longest := 0.0
		for _, r := range p.rows {
			longest = max(longest, slices.Max(r.values))
		}
		for _, r := range p.rows {
			if p.perRow {
				longest = slices.Max(r.values)
			}
			for _, v := range r.values {
				if got, want := lengths[0], v/longest*barsWidth; got < want-0.06 || got > want+0.06 {
					t.Errorf("%s: a bar of %s is %v long, want %v", p.name, r.label, got, want)
				}
				lengths = lengths[1:]
			}
		}
		if len(lengths) > 0 {
			t.Errorf("%s has %d bars more", p.name, len(lengths))
		}
	}
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// The widest letters of the font are about as wide as it is high, and most are half as wide.
func TestTheTextsFitIntoAPicture(t *testing.T) {
	for _, p := range recorded(t) {
		if len(p.title) > 42 {
			t.Errorf("%s: the title has %d characters", p.name, len(p.title))
		}
		for _, name := range p.of {
			if len(name) > 48 {
				t.Errorf("%s: %q has %d characters", p.name, name, len(name))
			}
		}
		for _, r := range p.rows {
			for _, f := range r.figures {
				if len(f) > 7 {
					t.Errorf("%s: the figure %s has %d characters", p.name, f, len(f))
				}
			}
		}
	}
}

func TestReadNamesTheLineThatIsWrong(t *testing.T) {
	const head = "picture p\ntitle t\nunit u\nof a | b\n"
	for in, want := range map[string]string{
		"HSET | 1 | 2\n":                     `line 1: "HSET | 1 | 2" is not in a picture`,
		head + "HSET | 1\n":                  `line 5: ["HSET" "1"] has 2 cells, want a label, and a figure for each of ["a" "b"]`,
		head + "HSET | 1 | x\n":              `line 5: "x" is not a figure`,
		head + "scale column\n":              `line 5: scale is "column", want row`,
		head + "a label that is long|1|2\n":  `line 5: "a label that is long" has 20 characters, at most 17`,
		head:                                 `the picture "p" lacks a title, a unit or figures`,
		"picture p\nof a\n# x\n\nHSET | 1\n": `the picture "p" lacks a title, a unit or figures`,
	} {
		if _, err := read(strings.NewReader(in)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", in, err, want)
		}
	}
}
