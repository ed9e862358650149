package oplog

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ebbdb/ebb/internal/disk"
	"github.com/ebbdb/ebb/internal/rdb"
)

// ErrRewriting means that a rewrite is under way.
var ErrRewriting = errors.New("a rewrite of the append-only files is under way")

var errNoRewrite = errors.New("no rewrite of the append-only files is under way")

// openLast opens the last increment for appending, or creates the first one.
func (f *Files) openLast() (*appendFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.manifest.Incrs)
	if n == 0 {
		return f.openNext()
	}
	p := f.manifest.Incrs[n-1]
	file, err := f.fs.Append(f.path(p.Name))
	if err != nil {
		return nil, err
	}
	a := &appendFile{File: file, part: p, size: f.sizes[p.Name]}
	delete(f.sizes, p.Name)
	f.count()
	return a, nil
}

// openNext creates the next increment and adds it to the manifest. The lock is held.
func (f *Files) openNext() (*appendFile, error) {
	m := f.manifest.clone()
	p := f.nextIncr()
	m.Incrs = append(m.Incrs, p)
	file, err := f.create(p.Name)
	if err != nil {
		return nil, err
	}
	if err := f.save(m); err != nil && f.manifest != m {
		return nil, errors.Join(err, file.Close())
	} else if err != nil {
		return &appendFile{File: file, part: p, failed: err}, nil
	}
	return &appendFile{File: file, part: p}, nil
}

func (f *Files) nextIncr() Part {
	_, seq := f.manifest.lastSeqs()
	return Part{Name: fmt.Sprintf("%s.%d.incr.aof", f.name, seq+1), Seq: seq + 1, Type: Incr}
}

// create creates a file. Its name becomes durable with the manifest that lists it. The lock is held.
func (f *Files) create(name string) (disk.File, error) {
	delete(f.sizes, strings.TrimPrefix(name, tempPrefix))
	if err := f.fs.MkdirAll(f.dir); err != nil {
		return nil, err
	}
	return f.fs.Create(f.path(name))
}

// beginRewrite opens the increment in which the appender continues. It adds the increment to the manifest at once,
// after the present files. A fresh increment is added only together with its base, because until then the manifest
// lists other data.
func (f *Files) beginRewrite(fresh bool) (*appendFile, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun != nil {
		return nil, ErrRewriting
	}
	if !fresh {
		a, err := f.openNext()
		if err == nil {
			f.begun = &begun{incr: a.part}
		}
		return a, err
	}
	if !f.listed { // otherwise OpenFiles would refuse files without a manifest after a crash
		if err := f.save(f.manifest); err != nil {
			return nil, err
		}
	}
	p := f.nextIncr()
	file, err := f.create(tempPrefix + p.Name)
	if err != nil {
		return nil, err
	}
	f.begun = &begun{p, true}
	return &appendFile{File: file, part: p}, nil
}

// settleIncr gives a fresh increment its final name, before it is listed.
func (f *Files) settleIncr(a *appendFile) error {
	if err := a.Sync(); err != nil {
		return err
	}
	if err := a.Close(); err != nil {
		return err
	}
	temp, name := f.path(tempPrefix+a.part.Name), f.path(a.part.Name)
	if err := disk.Replace(f.fs, temp, name); err != nil {
		return err
	}
	file, err := f.fs.Append(name)
	if err == nil {
		a.File = file
	}
	return err
}

// commitRewrite renames a synced file and makes it the base. It then removes the replaced files, which are those from
// before the rewrite's cut. counts reports whether the file is the base now. With counts and an error, a power cut
// may undo the change, and the replaced files still exist.
func (f *Files) commitRewrite(base string) (counts bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun == nil {
		return false, errNoRewrite
	}
	info, err := f.fs.Stat(base)
	if err != nil {
		return false, err
	}
	seq, _ := f.manifest.lastSeqs()
	p := Part{Name: fmt.Sprintf("%s.%d.base.%s", f.name, seq+1, f.extension(base)), Seq: seq + 1, Type: Base}
	if err := disk.Replace(f.fs, base, f.path(p.Name)); err != nil {
		return false, err
	}
	m := f.manifest.successor(p, *f.begun)
	err = f.save(m)
	if f.manifest != m {
		_ = f.fs.Remove(f.path(p.Name)) // no manifest lists the file
		return false, err
	}
	f.sizes[p.Name], f.begun = info.Size, nil
	f.count()
	if err == nil {
		f.dropHistory()
	}
	return true, err
}

// extension returns "rdb" for an RDB file and "aof" for a file of commands.
func (f *Files) extension(name string) string {
	if r, err := f.fs.Open(name); err == nil {
		defer r.Close()
		var b [8]byte
		n, _ := r.ReadAt(b[:], 0)
		if rdb.IsFile(b[:n]) {
			return "rdb"
		}
	}
	return "aof"
}

// successor returns the manifest after a rewrite.
func (m *Manifest) successor(base Part, b begun) *Manifest {
	next := &Manifest{Base: &base, History: append([]Part(nil), m.History...)}
	if m.Base != nil {
		next.History = append(next.History, *m.Base)
	}
	for _, p := range m.Incrs {
		if p.Seq < b.incr.Seq {
			next.History = append(next.History, p)
		} else {
			next.Incrs = append(next.Incrs, p)
		}
	}
	if b.fresh {
		next.Incrs = append(next.Incrs, b.incr)
	}
	return next
}

// abortRewrite ends the rewrite without a new base. Its increment stays in the manifest, unless it
// was fresh.
func (f *Files) abortRewrite() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun != nil && f.begun.fresh {
		_ = f.fs.Remove(f.path(tempPrefix + f.begun.incr.Name)) // OpenFiles also removes it
	}
	f.begun = nil
}

// closed records the final size of an increment after another one has replaced it for appending.
func (f *Files) closed(old, next *appendFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if next == nil || next.part.Name != old.part.Name {
		f.sizes[old.part.Name] = old.size
		f.count()
	}
}
