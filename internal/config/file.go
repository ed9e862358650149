package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxFile bounds a configuration file. Real ones are below 200 KB; a device or a data
	// file that was given by mistake must not fill the memory.
	maxFile = 16 << 20
	// maxInclude bounds files that include each other.
	maxInclude = 16
)

// ParseError is an error in a file or on the command line. Its text names the place, the
// words, the mistake and a valid form.
type ParseError struct {
	Where string // file name or "command line"
	Line  int    // from 1; 0 on the command line
	Text  string // the line; without its value if that is a secret
	Err   error  // the fault, worded as Redis words it
	Hint  string // a valid form, "" if the error says it already
}

func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString(e.Where)
	if e.Line > 0 {
		fmt.Fprintf(&b, " line %d", e.Line)
	}
	text := e.Text
	if len(text) > maxShown {
		text = text[:maxShown] + "..."
	}
	fmt.Fprintf(&b, ": '%s': %v", text, e.Err)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return printable(b.String())
}

// maxShown is the number of bytes of a line that an error shows. The longest directive with its usual
// values has 120; a data file that was given by mistake may be one line of 16 MiB.
const maxShown = 512

// printable returns s with its bytes that a terminal does not print as escapes: a line may
// hold any bytes, and those of a terminal's commands would change what the reader sees.
func printable(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !strconv.IsPrint(r):
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func (e *ParseError) Unwrap() error { return e.Err }

// ErrUnknown is in the ParseError about a name that is not a directive.
var ErrUnknown = errors.New("unknown directive")

// Load builds a configuration as redis-server does: an optional file, "-" for standard
// input as the first or the last argument, then options for ParseArgs, which override the
// file.
func Load(args []string, stdin io.Reader) (*Set, error) {
	s := New()
	fromStdin := false
	switch {
	case len(args) > 0 && args[0] == "-":
		fromStdin, args = true, args[1:]
	case len(args) > 0 && !strings.HasPrefix(args[0], "-"):
		if err := s.ParseFile(args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	if n := len(args); n > 0 && args[n-1] == "-" {
		fromStdin, args = true, args[:n-1]
	}
	if fromStdin {
		if err := s.Parse(stdin, "standard input"); err != nil {
			return nil, err
		}
	}
	if err := s.ParseArgs(args); err != nil {
		return nil, err
	}
	s.finish()
	return s, nil
}

// finish sets the default of appendonly: yes if dir is given without a configuration file.
func (s *Set) finish() {
	if !s.fromFile && s.WasGiven("dir") && !s.WasGiven("appendonly") {
		s.store(must("appendonly"), Value{Text: "yes", Num: 1})
	}
}

// LoadLines builds a configuration for a program: an optional file, then lines in the syntax
// of redis.conf, which override the file as options of a command line do. where is the name
// of the lines in messages. Errors are *ParseError, or those of reading the file.
func LoadLines(path string, lines []string, where string) (*Set, error) {
	s := New()
	if path != "" {
		if err := s.ParseFile(path); err != nil {
			return nil, err
		}
	}
	if err := s.parseLines(lines, where); err != nil {
		return nil, err
	}
	s.finish()
	return s, nil
}

func (s *Set) parseLines(lines []string, where string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parser(diskFiles{})
	for i, line := range lines {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			continue
		}
		if err := p.line(line, where, i+1); err != nil {
			return err
		}
	}
	return nil
}

// ParseFile reads a configuration file and remembers it for Rewrite.
func (s *Set) ParseFile(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	f, err := os.Open(abs)
	if err != nil {
		return fmt.Errorf("can't open config file: %w", err)
	}
	defer f.Close()
	if err := s.Parse(f, path); err != nil {
		return err
	}
	s.mu.Lock()
	s.path = abs
	s.mu.Unlock()
	return nil
}

// Parse reads directives in the syntax of redis.conf; name stands for the reader in
// messages. From then on, directives that are not given have Redis's defaults, even if
// ebb's own differ. Errors are *ParseError, or the reader's; after an error the set holds
// a part of the file, and the caller must discard it. Parse is for the start of a program:
// it calls no hooks.
func (s *Set) Parse(r io.Reader, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parser(diskFiles{}).file(r, name)
}

// files opens the files of include lines.
type files interface {
	Open(path string) (io.ReadCloser, error)
	Glob(pattern string) ([]string, error) // sorted
}

type diskFiles struct{}

func (diskFiles) Open(path string) (io.ReadCloser, error) { return os.Open(path) }
func (diskFiles) Glob(pattern string) ([]string, error)   { return filepath.Glob(pattern) }

// parser applies lines to a set whose lock the caller holds.
type parser struct {
	set   *Set
	files files
	depth int
}

func (s *Set) parser(f files) *parser { return &parser{set: s, files: f} }

func (p *parser) file(r io.Reader, name string) error {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return err
	}
	if len(data) > maxFile {
		return fmt.Errorf("%s: a configuration file has at most %d bytes", name, maxFile)
	}
	p.set.useFileDefaults()
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		line = strings.Trim(line, " \t\r\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := p.line(line, name, number); err != nil {
			return err
		}
	}
	return nil
}

// useFileDefaults switches to the defaults that Redis has, once.
func (s *Set) useFileDefaults() {
	if s.fromFile {
		return
	}
	s.fromFile = true
	for _, d := range directives {
		if _, given := s.given[d]; !given && d.FileDefault != "" {
			s.store(d, d.fileInitial)
		}
	}
}

// line splits and applies one line.
func (p *parser) line(line, where string, number int) error {
	words, ok := Words(line)
	if !ok {
		// The value may be a secret with a quote in it, so the message shows the name only.
		name, _, _ := strings.Cut(line, " ")
		return &ParseError{where, number, name, errors.New("Unbalanced quotes in configuration line"),
			`a quoted value ends with its quote, and inside it \" stands for one`}
	}
	if len(words) == 0 {
		return nil
	}
	at := fmt.Sprintf("%s:%d", where, number)
	err := p.words(words[0], words[1:], at)
	if bad, ok := err.(*ParseError); ok && bad.Where == "" {
		bad.Where, bad.Line = where, number
		bad.Text = line
		if secret(words[0]) {
			bad.Text = words[0]
		}
	}
	return err
}

// words applies a directive. Its own errors are *ParseError without a place;
// those with one come from an included file.
func (p *parser) words(name string, args []string, at string) error {
	if d := Lookup(name); d != nil {
		return p.set.assign(d, args, at)
	}
	switch lower := strings.ToLower(name); lower {
	case "include":
		if len(args) != 1 {
			return &ParseError{Err: errWords, Hint: "write include and one path, which may hold wildcards"}
		}
		return p.include(args[0])
	case "rename-command":
		if len(args) != 2 {
			return &ParseError{Err: errWords, Hint: `write rename-command, the command's name and its new name, or "" to take it away`}
		}
		p.set.renames = append(p.set.renames, RenameLine{args[0], args[1], at})
		return nil
	case "loadmodule":
		if len(args) == 0 {
			return &ParseError{Err: errWords, Hint: "write loadmodule and a path"}
		}
		p.set.modules = append(p.set.modules, Given{Name: lower, Value: args[0], Where: at, Why: noModules})
		return nil
	case "user":
		return p.set.addUser(args, at)
	case "sentinel":
		return &ParseError{Err: errors.New("sentinel directive while not in sentinel mode")}
	}
	hint := ""
	if near := nearest(strings.ToLower(name)); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return &ParseError{Err: ErrUnknown, Hint: hint}
}

// secret reports whether a message must not show the words after a name: the name is that
// of a directive with a secret value, or similar to it.
func secret(name string) bool {
	if strings.EqualFold(name, "user") {
		return true
	}
	d := Lookup(name)
	if d == nil {
		d = Lookup(nearest(strings.ToLower(name)))
	}
	return d != nil && d.Sensitive
}

// assign gives a directive the words of a file or the command line.
func (s *Set) assign(d *Directive, words []string, at string) error {
	old := s.load(d)
	v, err := d.parse(words, old)
	if err != nil {
		bad, full := &ParseError{Err: err}, complete{}
		if !errors.As(err, &full) {
			bad.Hint = d.Name + " takes " + d.Usage()
		}
		return bad
	}
	if d.Kind == SavePoints {
		v = s.addSave(words, v, old)
	}
	s.store(d, v)
	g := Given{Name: d.Name, Value: v.Text, Where: at, Why: d.Unused, AtDefault: v.Text == s.defaultOf(d).Text}
	if d.Sensitive {
		g.Value = ""
	}
	s.given[d] = g
	return nil
}

// addSave joins a save line to those before it. The first one of all replaces
// the default, and an empty one takes back the values so far.
func (s *Set) addSave(words []string, v, old Value) Value {
	empty := len(words) == 0 || len(words) == 1 && words[0] == ""
	if s.saveGiven && !empty {
		v = saveValue(slices.Concat(old.Data.([]SavePoint), v.Data.([]SavePoint)))
	}
	s.saveGiven = true
	return v
}

// defaultOf returns the default that is in force for a directive.
func (s *Set) defaultOf(d *Directive) Value {
	if s.fromFile {
		return d.fileInitial
	}
	return d.initial
}

// include reads the files of a pattern, in order. A pattern without wildcards
// must name a file.
func (p *parser) include(pattern string) error {
	if p.depth == maxInclude {
		return &ParseError{Err: fmt.Errorf("files include each other more than %d deep", maxInclude)}
	}
	paths := []string{pattern}
	if strings.ContainsAny(pattern, "*?[") {
		var err error
		if paths, err = p.files.Glob(pattern); err != nil {
			return &ParseError{Err: err}
		}
	}
	p.depth++
	defer func() { p.depth-- }()
	for _, path := range paths {
		f, err := p.files.Open(path)
		if err != nil {
			return &ParseError{Err: fmt.Errorf("can't open config file: %w", err)}
		}
		err = p.file(f, path)
		f.Close()
		if err == nil {
			continue
		}
		if _, placed := err.(*ParseError); placed {
			return err
		}
		return &ParseError{Err: err}
	}
	return nil
}
