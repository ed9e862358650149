package migrate

import (
	"bufio"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"regexp"
	"time"

	"github.com/ebbdb/ebb/internal/rdb"
	"github.com/ebbdb/ebb/internal/wire"
)

// fileComparison compares an RDB file with the target.
type fileComparison struct {
	*comparison
	to        *client
	seed      maphash.Seed
	has       map[uint64]bool   // the sums of the file's databases and keys: 64 bits each tell millions of keys apart
	libraries map[string]string // code by name
}

// verifyFile compares the keys and functions of an RDB file with the target's.
func (m *Migration) verifyFile(ctx context.Context) error {
	files, err := dataFiles(m.file)
	if err != nil {
		return err
	}
	f, err := os.Open(files[0].name)
	if err != nil {
		return err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 256<<10)
	head, _ := in.Peek(16)
	if err := recognized(head); err != nil {
		return fmt.Errorf("%s: %w", files[0].name, err)
	}
	if !rdb.IsFile(head) || len(files) > 1 {
		return fmt.Errorf("FROM %s is append-only files, whose commands have no keys to compare: start a server with them, "+
			"and compare with that", m.file)
	}
	to, err := m.to.dial(ctx)
	if err != nil {
		return err
	}
	defer to.nc.Close()
	c := &fileComparison{comparison: &comparison{m: m, began: time.Now()}, to: to, seed: maphash.MakeSeed(),
		has: map[uint64]bool{}, libraries: map[string]string{}}
	r := rdb.NewReader(in, rdb.ReaderOptions{Function: c.library})
	if err := c.read(ctx, r, max(1, fileSize(f))); err != nil {
		return fmt.Errorf("%s: %w", files[0].name, err)
	}
	if m.o.Sample == 0 {
		if err := c.extra(ctx); err != nil {
			return err
		}
	}
	return c.end(ctx)
}

// read compares the keys of the file.
func (c *fileComparison) read(ctx context.Context, r *rdb.Reader, size int64) error {
	for {
		e, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if e.Deadline != 0 && e.Deadline <= time.Now().UnixMilli() {
			continue
		}
		c.has[c.sum(e.DB, string(e.Key))] = true
		b, err := read(ctx, c.m.to, c.to, e.DB, []string{string(e.Key)})
		if err != nil {
			return err
		}
		c.seen++
		c.compare(e.DB, string(e.Key), state{payload: string(rdb.Seal(e.Value, e.Version)), exists: true, deadline: e.Deadline}, b[0])
		c.m.out.progress(time.Second, "verify %3d %%  %d keys, %d differ", percent(r.Offset(), size), c.seen, c.differs)
	}
}

func (c *fileComparison) sum(db int, key string) uint64 {
	return maphash.String(c.seed, fmt.Sprintf("%d %s", db, key))
}

// compare counts a key if its two states differ.
func (c *fileComparison) compare(db int, key string, from, to state) {
	why := c.differ(c.m.to, from, to)
	if why == "" {
		return
	}
	if c.differs++; len(c.shown) < shownKeys {
		c.shown = append(c.shown, fmt.Sprintf("database %d, key %s: %s", db, wire.AppendQuoted(nil, key), why))
	}
}

// extra finds keys that only the target has.
func (c *fileComparison) extra(ctx context.Context) error {
	info, err := c.m.to.refresh(ctx)
	if err != nil {
		return err
	}
	for _, d := range databases(info) {
		err := scan(ctx, c.to, d.n, compared, func(keys []string) (bool, error) {
			var lone []string
			for _, key := range keys {
				if !c.has[c.sum(d.n, key)] {
					lone = append(lone, key)
				}
			}
			states, err := read(ctx, c.m.to, c.to, d.n, lone)
			for i, key := range lone {
				if err == nil {
					c.compare(d.n, key, state{}, states[i])
				}
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// library takes the code of a library of functions, whose first line has its name.
func (c *fileComparison) library(code []byte) error {
	name := string(code)
	if m := regexp.MustCompile(`^#![^\n]*\bname=(\S+)`).FindSubmatch(code); m != nil {
		name = string(m[1])
	}
	c.libraries[name] = string(code)
	return nil
}

// end compares the libraries, and reports.
func (c *fileComparison) end(ctx context.Context) error {
	to, ok, err := functionsOf(ctx, c.m.to)
	if err != nil {
		return err
	}
	if !ok {
		c.m.out.line("functions are not compared: TO %s does not list them (FUNCTION LIST)", c.m.to)
		return c.report()
	}
	differ := differentFunctions(c.libraries, to)
	c.libs = int64(len(differ))
	c.shown = append(c.shown, differ[:min(len(differ), shownKeys)]...)
	return c.report()
}

func fileSize(f *os.File) int64 {
	info, err := f.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}
