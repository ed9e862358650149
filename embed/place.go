package embed

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/serverurl"
)

// place says where an engine keeps its data. If dir is empty, the data is in memory only.
type place struct {
	name  string // Conns of this name share the engine; "": private
	dir   string // of its files
	fsync string
	db    int
}

// parsePlace reads a mem:// or file:// URL.
func parsePlace(rawURL string) (p place, err error) {
	switch scheme, _, _ := strings.Cut(rawURL, "://"); scheme {
	case "mem":
		p.name, p.db, err = parseMem(rawURL)
		return p, err
	case "file":
	default:
		return p, fmt.Errorf("%w: %q names no engine in this process: the schemes are mem and file", conn.ErrURL, serverurl.Shown(rawURL))
	}
	f, err := parseFile(rawURL)
	if err != nil {
		return p, err
	}
	if err := disk.OS().MkdirAll(f.dir); err != nil {
		return p, fmt.Errorf("%w: %w", conn.ErrUnavailable, err)
	}
	// One directory is one engine, by whatever path the URL names it.
	if f.dir, err = filepath.EvalSymlinks(f.dir); err != nil {
		return p, fmt.Errorf("%w: %w", conn.ErrUnavailable, err)
	}
	return place{name: "file:" + f.dir, dir: f.dir, fsync: f.fsync, db: f.db}, nil
}

// parseMem splits mem://name/3.
func parseMem(rawURL string) (name string, db int, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", 0, fmt.Errorf("%w: %w", conn.ErrURL, serverurl.Unreadable(rawURL, err))
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", 0, fmt.Errorf("%w: %q: mem:// takes a name and a database, as in mem://sessions/3, and nothing else", conn.ErrURL, serverurl.Shown(rawURL))
	}
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		if db, err = strconv.Atoi(path); err != nil || db < 0 || db >= databases {
			return "", 0, fmt.Errorf("%w: %q: the database is a number from 0 to %d, not %q", conn.ErrURL, rawURL, databases-1, path)
		}
	}
	return u.Host, db, nil
}

// fileURL holds the parts of a file:// URL.
type fileURL struct {
	dir   string // absolute
	fsync string
	db    int
}

// parseFile splits file://dir?fsync=always&db=3.
func parseFile(rawURL string) (f fileURL, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return f, fmt.Errorf("%w: %w", conn.ErrURL, serverurl.Unreadable(rawURL, err))
	}
	if u.User != nil || u.Fragment != "" || u.Host+u.Path == "" {
		return f, fmt.Errorf("%w: %q: file:// takes a directory, as in file:///var/lib/app?fsync=always", conn.ErrURL, serverurl.Shown(rawURL))
	}
	f.fsync = "everysec"
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return f, fmt.Errorf("%w: %q: the parameters after ? cannot be read: they are separated by &", conn.ErrURL, rawURL)
	}
	for name, values := range query {
		v := values[len(values)-1]
		switch name {
		case "fsync":
			f.fsync = v
		case "db":
			if f.db, err = strconv.Atoi(v); err != nil || f.db < 0 || f.db >= databases {
				return f, fmt.Errorf("%w: %q: the database is a number from 0 to %d, not %q", conn.ErrURL, rawURL, databases-1, v)
			}
		default:
			return f, fmt.Errorf("%w: %q: file:// has the parameters fsync and db, not %q", conn.ErrURL, rawURL, name)
		}
	}
	if f.fsync != "always" && f.fsync != "everysec" && f.fsync != "no" {
		return f, fmt.Errorf("%w: %q: fsync is always, everysec or no, not %q", conn.ErrURL, rawURL, f.fsync)
	}
	dir := filepath.FromSlash(u.Host + u.Path)
	if f.dir, err = filepath.Abs(dir); err != nil {
		return f, fmt.Errorf("%w: %q: %w", conn.ErrURL, rawURL, err)
	}
	return f, nil
}

// String returns the place's URL.
func (p place) String() string {
	if p.dir != "" {
		return "file://" + filepath.ToSlash(p.dir)
	}
	return "mem://" + p.name
}
