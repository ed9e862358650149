// Package gen writes the reference in docs/commands from the command table.
//
//	command.Table ──> Pages ──> docs/commands/index.md, set.md, config-get.md, ...
//	                    │
//	                    └────> Check: are the files what Pages says?
//
// A page is a function of a command's Spec alone, the index of all Specs. Every generated file begins with Marker; files without it
// are written
// by hand, and left alone. Start reading at Pages; see internal/gen/cmd for the
// program.
package gen

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/command"
)

// Marker is the first line of every generated file.
const Marker = "<!-- Generated from the command's Spec by `make docs`; changes are lost. -->\n"

// Dir is the directory of the pages, below the repository's root, and Transcripts that of
// the transcripts.
const (
	Dir         = "docs/commands"
	Transcripts = "testdata/transcripts"
)

// Pages returns the contents of every generated file by its name below Dir.
func Pages(t *command.Table) map[string][]byte {
	pages := map[string][]byte{"index.md": index(t), ownPage: own(t)}
	for id := range t.Len() {
		s := t.Spec(id)
		pages[pageName(s)] = page(s)
	}
	return pages
}

// Write brings the directory up to date: it writes what changed, and removes
// generated files that are not among the pages. It returns the names it touched.
func Write(dir string, pages map[string][]byte) (touched []string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	stale, err := compare(dir, pages)
	if err != nil {
		return nil, err
	}
	for _, name := range stale {
		path := filepath.Join(dir, name)
		if text, ok := pages[name]; ok {
			err = os.WriteFile(path, text, 0o644)
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			return touched, err
		}
		touched = append(touched, name)
	}
	return touched, nil
}

// Check returns nil if the directory is up to date, and else an error that names
// the files that are not.
func Check(dir string, pages map[string][]byte) error {
	stale, err := compare(dir, pages)
	if err != nil {
		return err
	}
	if len(stale) > 0 {
		return fmt.Errorf("%s is stale; run `make docs`: %s", dir, strings.Join(stale, ", "))
	}
	return nil
}

// compare lists the files that differ from the pages, in order: missing, of
// other content, or generated for a page that is no more.
func compare(dir string, pages map[string][]byte) (stale []string, err error) {
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err != nil || !bytes.Equal(got, want) {
			stale = append(stale, name)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		name := filepath.Base(path)
		if _, ok := pages[name]; ok {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(text, []byte(Marker)) {
			stale = append(stale, name)
		}
	}
	slices.Sort(stale)
	return stale, nil
}

// MissingTranscripts lists the transcripts that commands lack under the
// repository's root, in the order of the table.
func MissingTranscripts(root string, t *command.Table) (missing []string) {
	for id := range t.Len() {
		s := t.Spec(id)
		if s.Run == nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, TranscriptName(s))); err != nil {
			missing = append(missing, TranscriptName(s))
		}
	}
	return missing
}

// TranscriptName returns the path of a command's transcript below the repository's root.
func TranscriptName(s *command.Spec) string {
	return Transcripts + "/" + string(s.Group) + "/" + fileName(s) + ".txt"
}

func pageName(s *command.Spec) string { return fileName(s) + ".md" }

func fileName(s *command.Spec) string { return strings.ReplaceAll(s.Name, "|", "-") }
