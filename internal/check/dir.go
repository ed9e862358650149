package check

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/ebbdb/ebb/internal/group/shard"
	"github.com/ebbdb/ebb/internal/group/voter"
	"github.com/ebbdb/ebb/internal/oplog"
)

// directory checks the files of data in a directory, and in those below it that
// hold append-only files.
func (c *checker) directory(dir string) {
	if found, err := c.contents(dir, true); err != nil {
		c.printf("%s:", dir)
		c.bad("%v", err)
	} else if found == 0 {
		c.printf("%s:", dir)
		c.bad("there are no files of data: *.rdb, *.manifest or *.aof")
	}
}

// contents checks the files in a directory, and returns the number of files that it found.
func (c *checker) contents(dir string, deeper bool) (found int, err error) {
	names, err := c.FS.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	listed, manifests := map[string]bool{}, 0
	for _, name := range names {
		if filepath.Ext(name) == ".manifest" && !temporary(name) {
			c.manifestIn(dir, name, listed)
			manifests++
		}
	}
	found = manifests
	for _, name := range names {
		path := filepath.Join(dir, name)
		i, err := c.FS.Stat(path)
		ext := filepath.Ext(name)
		switch {
		case err != nil || listed[name] || temporary(name):
		case i.Dir && deeper:
			n, err := c.contents(path, false)
			if err != nil {
				return found, err
			}
			found += n
		case manifests > 0 && (ext == ".rdb" || ext == ".aof"):
			c.printf("%s: no manifest names it, so it is not loaded", path)
		case ext == ".rdb" || ext == ".aof" || name == shard.StateFile || name == voter.FileName:
			found++
			c.file(path, i.Size, true)
		}
	}
	return found, nil
}

// temporary reports whether a file is still being written, or was when the server ended.
func temporary(name string) bool { return strings.HasPrefix(name, "temp-") }

// manifest checks a manifest and the files it names.
func (c *checker) manifest(path string) {
	c.manifestIn(filepath.Dir(path), filepath.Base(path), map[string]bool{})
}

// manifestIn is manifest for a manifest in a directory; it adds the files that the manifest names
// to listed.
func (c *checker) manifestIn(dir, name string, listed map[string]bool) {
	path := filepath.Join(dir, name)
	text, err := c.FS.ReadFile(path)
	var m *oplog.Manifest
	if err == nil {
		m, err = oplog.ParseManifest(text)
	}
	if err != nil {
		c.printf("%s:", path)
		c.bad("%v", err)
		return
	}
	for _, p := range m.History {
		listed[p.Name] = true
	}
	base := "no base"
	if m.Base != nil {
		base = "a base"
	}
	c.printf("%s: manifest of %s and increments: %d", path, base, len(m.Incrs))
	c.indent += "  "
	defer func() { c.indent = c.indent[2:] }()
	parts := m.Parts()
	sizes := c.sizes(dir, parts, listed)
	for i, p := range parts {
		if sizes[i] < 0 {
			continue
		}
		c.file(filepath.Join(dir, p.Name), sizes[i], !slices.ContainsFunc(sizes[i+1:], func(n int64) bool { return n > 0 }))
	}
}

// sizes returns the sizes of the parts. It prints which parts are missing, and returns -1 for them.
func (c *checker) sizes(dir string, parts []oplog.Part, listed map[string]bool) []int64 {
	all := make([]int64, len(parts))
	for i, p := range parts {
		listed[p.Name] = true
		info, err := c.FS.Stat(filepath.Join(dir, p.Name))
		if err != nil {
			all[i] = -1
			c.bad("the manifest names %s, but: %v", p.Name, err)
			continue
		}
		all[i] = info.Size
		if info.Dir {
			all[i] = -1
			c.bad("%s is a directory", p.Name)
		}
	}
	return all
}
