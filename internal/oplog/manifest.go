package oplog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/wire"
)

// PartType is the type of a file of the append-only directory, as a letter in the manifest.
type PartType byte

// The types of files.
const (
	Base    PartType = 'b' // a snapshot, as RDB or commands
	History PartType = 'h' // replaced by a base, and to be removed
	Incr    PartType = 'i' // the commands since the base or the previous increment
)

// Part is a file of the append-only directory.
type Part struct {
	Name string // the file's name without a directory
	Seq  int64
	Type PartType
}

// Manifest lists the files that make up the data: at most one base, then increments in their order.
// Redis 7 reads and writes the same text:
//
//	file appendonly.aof.2.base.rdb seq 2 type b
//	file appendonly.aof.1.incr.aof seq 1 type h
//	file appendonly.aof.2.incr.aof seq 2 type i
type Manifest struct {
	Base    *Part // nil: none
	Incrs   []Part
	History []Part
}

// ErrManifest is wrapped by all errors about the content of a manifest.
var ErrManifest = errors.New("the manifest of the append-only files is invalid")

// maxSeq is the greatest number of a file. Each rewrite uses a new one. A manifest with a greater number is neither
// read nor written.
const maxSeq = 1 << 62

// maxManifestLine is the longest line that Redis reads.
const maxManifestLine = 1024

// Empty reports whether the manifest lists no data.
func (m *Manifest) Empty() bool { return m.Base == nil && len(m.Incrs) == 0 }

// Parts returns the files to load, in their order.
func (m *Manifest) Parts() []Part {
	var all []Part
	if m.Base != nil {
		all = append(all, *m.Base)
	}
	return append(all, m.Incrs...)
}

// clone returns a deep copy.
func (m *Manifest) clone() *Manifest {
	c := &Manifest{Incrs: append([]Part(nil), m.Incrs...), History: append([]Part(nil), m.History...)}
	if m.Base != nil {
		base := *m.Base
		c.Base = &base
	}
	return c
}

// lastSeqs returns the numbers of the base and of the newest increment; 0: none.
func (m *Manifest) lastSeqs() (base, incr int64) {
	if m.Base != nil {
		base = m.Base.Seq
	}
	for _, p := range m.Incrs {
		incr = max(incr, p.Seq)
	}
	return base, incr
}

// Format returns the manifest's text.
func (m *Manifest) Format() []byte {
	if m.Empty() && len(m.History) == 0 {
		return []byte("# no file counts yet\n") // Redis accepts a comment, but not an empty manifest
	}
	var b []byte
	add := func(p Part, t PartType) {
		b = fmt.Appendf(b, "file %s seq %d type %c\n", quoteName(p.Name), p.Seq, t)
	}
	if m.Base != nil {
		add(*m.Base, Base)
	}
	for _, p := range m.History {
		add(p, History)
	}
	for _, p := range m.Incrs {
		add(p, Incr)
	}
	return b
}

// quoteName quotes a name that could not be parsed otherwise.
func quoteName(name string) string {
	plain := func(r rune) bool { return r > ' ' && r < 0x7f && r != '"' && r != '\'' && r != '\\' }
	if name != "" && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return string(wire.AppendQuoted(nil, name))
}

// ParseManifest reads a manifest's text. It skips comments and unknown keys. Errors wrap
// ErrManifest and name the line.
func ParseManifest(text []byte) (*Manifest, error) {
	if len(text) == 0 {
		return nil, fmt.Errorf("%w: the file is empty", ErrManifest)
	}
	m, named := &Manifest{}, map[string]bool{}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "#") {
			continue
		}
		p, err := parsePart(line)
		if named[p.Name] && err == nil {
			err = errors.New("an earlier line lists the same file")
		}
		if err == nil {
			named[p.Name] = true
			err = m.add(p)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: line %d, %q: %w", ErrManifest, i+1, line, err)
		}
	}
	return m, nil
}

// add adds the part of a line. It returns an error if the part contradicts earlier lines.
func (m *Manifest) add(p Part) error {
	switch p.Type {
	case Base:
		if m.Base != nil {
			return errors.New("the line lists a second base file")
		}
		m.Base = &p
	case History:
		m.History = append(m.History, p)
	case Incr:
		if n := len(m.Incrs); n > 0 && m.Incrs[n-1].Seq >= p.Seq {
			return fmt.Errorf("the file's number is not above that of the previous increment, %d", m.Incrs[n-1].Seq)
		}
		m.Incrs = append(m.Incrs, p)
	}
	return nil
}

// parsePart reads one line.
func parsePart(line string) (Part, error) {
	var p Part
	if len(line) > maxManifestLine {
		return p, errors.New("the line is too long")
	}
	words, ok := wire.SplitArgs(strings.TrimSpace(line))
	if !ok {
		return p, errors.New("the quotes are not balanced")
	}
	if len(words) < 6 || len(words)%2 != 0 {
		return p, errors.New("the line should read: file NAME seq NUMBER type b|h|i")
	}
	for i := 0; i < len(words); i += 2 {
		if err := p.set(words[i], words[i+1]); err != nil {
			return p, err
		}
	}
	if p.Name == "" || p.Seq == 0 || p.Type == 0 {
		return p, errors.New("file, seq or type is missing")
	}
	return p, nil
}

// set sets the field of a part for a key and its value.
func (p *Part) set(key, value string) (err error) {
	switch strings.ToLower(key) {
	case "file":
		p.Name = value
		if value == "." || value == ".." || strings.ContainsAny(value, `/\`) {
			err = errors.New("the file's name is a path; want a name without a directory")
		}
	case "seq":
		p.Seq, err = strconv.ParseInt(value, 10, 64)
		if err != nil || p.Seq < 1 || p.Seq > maxSeq {
			err = fmt.Errorf("seq is not a number from 1 to %d", int64(maxSeq))
		}
	case "type":
		if len(value) == 1 {
			p.Type = PartType(value[0])
		}
		if p.Type != Base && p.Type != History && p.Type != Incr {
			err = errors.New("type is not b, h or i")
		}
	}
	return err
}
