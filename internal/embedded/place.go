package embedded

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/conn"
	"github.com/ebbdb/ebb/internal/config"
	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/serverurl"
)

// place says where an engine keeps its data. If dir is empty, the data is in memory only.
type place struct {
	name  string // Conns of this name share the engine; "": private
	dir   string // of its files
	fsync string
	limit []directive // of its memory, sorted by name
	db    int
}

// directive is a parameter of a URL that is a directive of the configuration.
type directive struct{ name, value string }

// limits are the parameters that bound the memory of an engine. They read as the
// directives of the same names do.
var limits = []string{"maxmemory", "maxmemory-policy", "maxmemory-samples", "maxmemory-eviction-tenacity", "maxmemory-protect",
	"maxmemory-protect-limiters"}

// parsePlace reads a mem:// or file:// URL.
func parsePlace(rawURL string) (p place, err error) {
	switch scheme, _, _ := strings.Cut(rawURL, "://"); scheme {
	case "mem":
		return parseMem(rawURL)
	case "file":
	default:
		return p, fmt.Errorf("%w: %q names no engine in this process: the schemes are mem and file", conn.ErrURL, serverurl.Shown(rawURL))
	}
	f, err := parseFile(rawURL)
	if err != nil {
		return p, err
	}
	if err := disk.OS().MkdirAll(f.dir); err != nil {
		return p, fmt.Errorf("%w: %w", conn.ErrFiles, err)
	}
	// One directory is one engine, by whatever path the URL names it.
	if f.dir, err = filepath.EvalSymlinks(f.dir); err != nil {
		return p, fmt.Errorf("%w: %w", conn.ErrFiles, err)
	}
	return place{name: "file:" + f.dir, dir: f.dir, fsync: f.fsync, limit: f.limit, db: f.db}, nil
}

// parseMem splits mem://name/3?maxmemory=64mb.
func parseMem(rawURL string) (p place, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return p, fmt.Errorf("%w: %w", conn.ErrURL, serverurl.Unreadable(rawURL, err))
	}
	if u.User != nil || u.Fragment != "" {
		return p, fmt.Errorf("%w: %q: mem:// takes a name and a database, as in mem://sessions/3, and parameters, as in "+
			"mem://?maxmemory=64mb&maxmemory-policy=allkeys-lru, and nothing else", conn.ErrURL, serverurl.Shown(rawURL))
	}
	p.name = u.Host
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		if p.db, err = strconv.Atoi(path); err != nil || p.db < 0 || p.db >= databases {
			return p, fmt.Errorf("%w: %q: the database is a number from 0 to %d, not %q", conn.ErrURL, rawURL, databases-1, path)
		}
	}
	query, err := parseQuery(rawURL, u.RawQuery)
	if err != nil {
		return p, err
	}
	for name := range query {
		if !slices.Contains(limits, name) {
			return p, fmt.Errorf("%w: %q: mem:// has the parameters %s, not %q", conn.ErrURL, rawURL, strings.Join(limits, ", "), name)
		}
	}
	p.limit, err = parseLimit(rawURL, query)
	return p, err
}

// parseQuery reads the parameters of a URL.
func parseQuery(rawURL, text string) (url.Values, error) {
	query, err := url.ParseQuery(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: the parameters after ? cannot be read: they are separated by &, and %% is written %%25",
			conn.ErrURL, rawURL)
	}
	return query, nil
}

// parseLimit reads the parameters that bound the memory, by the rules of CONFIG SET.
func parseLimit(rawURL string, query url.Values) (all []directive, err error) {
	cfg := config.New()
	for name, values := range query {
		if !slices.Contains(limits, name) {
			continue
		}
		v := values[len(values)-1]
		if err := cfg.Change(true, name, v); err != nil || v == "" {
			return nil, fmt.Errorf("%w: %q: %s takes %s, not %q", conn.ErrURL, rawURL, name, config.Lookup(name).Usage(), v)
		}
		all = append(all, directive{name, cfg.String(name)})
	}
	slices.SortFunc(all, func(a, b directive) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// differs names the first directive that p has and an open engine's place has not, or has
// with another value: an Open that names none of them joins any engine.
func (p place) differs(open place) (as string, differs bool) {
	for _, d := range p.limit {
		if slices.Contains(open.limit, d) {
			continue
		}
		for _, o := range open.limit {
			if o.name == d.name {
				return o.name + "=" + o.value, true
			}
		}
		return "its own " + d.name, true
	}
	return "", false
}

// fileURL holds the parts of a file:// URL.
type fileURL struct {
	dir   string // absolute
	fsync string
	limit []directive
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
	query, err := parseQuery(rawURL, u.RawQuery)
	if err != nil {
		return f, err
	}
	if f.limit, err = parseLimit(rawURL, query); err != nil {
		return f, err
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
			if !slices.Contains(limits, name) {
				return f, fmt.Errorf("%w: %q: file:// has the parameters fsync, db, %s, not %q", conn.ErrURL, rawURL, strings.Join(limits, ", "), name)
			}
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
