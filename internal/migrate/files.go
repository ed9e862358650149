package migrate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/wire"
	"github.com/ebbdb/ebb/resp"
)

// dataFile is a file that is loaded: an RDB file, an append-only file, or one that begins as the former.
type dataFile struct{ name string }

// dataFiles returns the files of a path, in the order in which they are loaded: the file itself, those of the manifest
// in a directory of append-only files, or the dump.rdb of a directory.
func dataFiles(path string) ([]dataFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("FROM is neither a URL (redis://host:port) nor a file: %w", err)
	}
	if !info.IsDir() {
		if strings.HasSuffix(path, ".manifest") {
			return manifestFiles(path)
		}
		return []dataFile{{path}}, nil
	}
	for _, dir := range []string{path, filepath.Join(path, "appendonlydir")} {
		found, err := filepath.Glob(filepath.Join(dir, "*.manifest"))
		if err == nil && len(found) == 1 {
			return manifestFiles(found[0])
		}
	}
	for _, name := range []string{"appendonly.aof", "dump.rdb"} {
		if name = filepath.Join(path, name); exists(name) {
			return []dataFile{{name}}, nil
		}
	}
	return nil, fmt.Errorf("FROM %s is a directory without a manifest of append-only files, appendonly.aof or dump.rdb", path)
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// manifestFiles returns the base and the increments of a manifest, without its history.
func manifestFiles(manifest string) (files []dataFile, _ error) {
	text, err := os.ReadFile(manifest)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		words, ok := wire.SplitArgs(strings.TrimSpace(line))
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		fields := map[string]string{}
		for i := 0; i+1 < len(words); i += 2 {
			fields[words[i]] = words[i+1]
		}
		if !ok || fields["file"] == "" {
			return nil, fmt.Errorf("%s: got the line %q, want: file NAME seq NUMBER type b, i or h", manifest, line)
		}
		if fields["type"] != "h" {
			files = append(files, dataFile{filepath.Join(filepath.Dir(manifest), fields["file"])})
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s names no file", manifest)
	}
	return files, nil
}

// loader writes files to the target.
type loader struct {
	m     *Migration
	c     *client
	began time.Time
	file  string
	size  int64
	at    func() int64 // bytes of the file that were read

	keys, commands int64
	waiting        []string // what each reply that is pending belongs to
	bytes          int
	refuses        int64
	refused        []string
}

// load writes the files to the target.
func (m *Migration) load(ctx context.Context) error {
	files, err := dataFiles(m.file)
	if err != nil {
		return err
	}
	if err := m.empty(ctx); err != nil {
		return err
	}
	if err := m.clear(ctx); err != nil {
		return err
	}
	c, err := m.to.dial(ctx)
	if err != nil {
		return err
	}
	defer c.nc.Close()
	l := &loader{m: m, c: c, began: time.Now()}
	for _, f := range files {
		if err := l.load(ctx, f.name); err != nil {
			return fmt.Errorf("%s: %w; TO holds what came before: %d keys and %d commands", f.name, err, l.keys, l.commands)
		}
	}
	info, err := m.to.refresh(ctx)
	if err != nil {
		return err
	}
	m.out.line("loaded %d keys and %d commands in %.1f s; TO %s has %d keys",
		l.keys, l.commands, time.Since(l.began).Seconds(), m.to, keysOf(info))
	if l.refuses > 0 {
		return fmt.Errorf("TO refused %d of them: %s", l.refuses, strings.Join(l.refused, "; "))
	}
	return nil
}

func (l *loader) load(ctx context.Context, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	l.file, l.size = filepath.Base(name), info.Size()
	in := bufio.NewReaderSize(f, 256<<10)
	head, _ := in.Peek(16)
	if err := recognized(head); err != nil {
		return err
	}
	rest := io.Reader(in)
	if rdb.IsFile(head) {
		if rest, err = l.loadRDB(ctx, in); err != nil {
			return err
		}
	}
	return l.loadCommands(ctx, rest)
}

// recognized returns an error if a file begins neither as an RDB file nor as an append-only file. An append-only file may be empty.
func recognized(head []byte) error {
	if rdb.IsFile(head) || len(head) == 0 || head[0] == '*' || head[0] == '#' {
		return nil
	}
	return fmt.Errorf("the file is neither an RDB file nor an append-only file: it begins with %q", head)
}

// beginning returns the first bytes of a file.
func beginning(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 16)
	n, err := io.ReadFull(f, head)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return head[:n], err
}

// loadRDB restores the keys of an RDB file, and returns what follows it.
func (l *loader) loadRDB(ctx context.Context, in io.Reader) (rest io.Reader, err error) {
	var libraries []string
	r := rdb.NewReader(in, rdb.ReaderOptions{Function: func(code []byte) error {
		libraries = append(libraries, string(code))
		return nil
	}})
	l.at = r.Offset
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, errors.Join(err, l.sync(ctx))
		}
		if err := l.use(ctx, e.DB); err != nil {
			return nil, err
		}
		l.keys++
		payload := string(rdb.Seal(e.Value, e.Version))
		if err := l.send(ctx, string(e.Key), "RESTORE", string(e.Key), strconv.FormatInt(e.Deadline, 10), payload,
			"REPLACE", "ABSTTL"); err != nil {
			return nil, err
		}
	}
	for _, code := range libraries {
		if err := l.send(ctx, "a library of functions", "FUNCTION", "LOAD", "REPLACE", code); err != nil {
			return nil, err
		}
	}
	return io.MultiReader(strings.NewReader(string(r.Rest())), in), l.sync(ctx)
}

// use selects a database.
func (l *loader) use(ctx context.Context, db int) error {
	if l.c.db == db {
		return nil
	}
	if err := l.sync(ctx); err != nil {
		return err
	}
	return l.c.use(ctx, db)
}

// loadCommands sends the commands of an append-only file.
func (l *loader) loadCommands(ctx context.Context, in io.Reader) error {
	counted := &counter{r: in}
	r := bufio.NewReaderSize(counted, 256<<10)
	l.at = func() int64 { return counted.n }
	for {
		first, err := r.Peek(1)
		if err == io.EOF {
			return l.sync(ctx)
		}
		if err != nil {
			return err
		}
		if first[0] == '#' { // a note of the time
			if _, err := r.ReadString('\n'); err != nil && err != io.EOF {
				return err
			}
			continue
		}
		v, err := wire.ReadValue(r)
		if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF {
			l.m.out.line("%s ends within a command, as after a crash; the commands before it are loaded", l.file)
			return l.sync(ctx)
		}
		if err == nil && (v.Kind != resp.KindArray || len(v.Elems) == 0) {
			err = fmt.Errorf("got %s, want a command", v)
		}
		if err != nil {
			return errors.Join(err, l.sync(ctx))
		}
		words := make([]string, len(v.Elems))
		for i, e := range v.Elems {
			words[i] = e.Str
		}
		l.commands++
		if strings.EqualFold(words[0], "SELECT") && len(words) == 2 {
			if db, err := strconv.Atoi(words[1]); err == nil {
				if err := l.use(ctx, db); err != nil {
					return err
				}
				continue
			}
		}
		if err := l.send(ctx, strings.ToUpper(words[0]), words...); err != nil {
			return err
		}
	}
}

// counter counts the bytes that were read.
type counter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// send adds a request, and reads replies when many are pending.
func (l *loader) send(ctx context.Context, what string, args ...string) error {
	l.c.add(args...)
	for _, a := range args {
		l.bytes += len(a)
	}
	if l.waiting = append(l.waiting, what); len(l.waiting) < 2*batchKeys && l.bytes < batchBytes {
		return nil
	}
	l.m.out.progress(time.Second, "load %s %3d %%  %d keys, %d commands, %d/s",
		l.file, percent(l.at(), l.size), l.keys, l.commands, perSecond(l.keys+l.commands, l.began))
	return l.sync(ctx)
}

// sync sends what is pending and reads the replies.
func (l *loader) sync(ctx context.Context) error {
	if err := l.c.flush(ctx); err != nil {
		return fmt.Errorf("TO %s: %w", l.m.to, err)
	}
	for _, what := range l.waiting {
		v, err := l.c.reply(ctx)
		if err != nil {
			return fmt.Errorf("TO %s: %w", l.m.to, err)
		}
		if err = v.Err(); err == nil {
			for _, e := range v.Elems { // of EXEC
				err = errors.Join(err, e.Err())
			}
		}
		if err == nil {
			continue
		}
		if v.Kind == resp.KindError && !strings.HasPrefix(v.Str, "ERR") && !strings.HasPrefix(v.Str, "WRONGTYPE") {
			return fmt.Errorf("TO %s: %q: %w", l.m.to, what, err)
		}
		if l.refuses++; len(l.refused) < shownKeys {
			l.refused = append(l.refused, fmt.Sprintf("%q: %v", what, err))
		}
	}
	l.waiting, l.bytes = l.waiting[:0], 0
	return nil
}
