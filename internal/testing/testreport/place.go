package main

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ebbdb/ebb/internal/disk"
)

// place is the temporary folder of the tests. What is there after them, they have left; and so have they each process that descends
// from the one that has adopted the orphans of the tests.
type place string

// patience is the time that the end of the tests waits for what they have left. A killed process may need a moment to end, and then its
// files are removed.
const patience = 30 * time.Second

// claim makes the folder. Its name is the same at each run of a working tree, because go test keeps a result only for the environment
// that made it. A run beside another one of the tree has its folder in work. unlock ends the claim.
func claim(work string) (p place, unlock func(), err error) {
	tree, err := os.Getwd()
	if err != nil {
		return "", nil, err
	}
	own := filepath.Join(os.TempDir(), fmt.Sprintf("ebb-test-%d", crc32.ChecksumIEEE([]byte(tree))))
	if err := os.MkdirAll(own, 0o755); err != nil {
		return "", nil, err
	}
	unlock = func() {}
	lock, err := disk.OS().Lock(own)
	if err != nil {
		own = work
	} else {
		unlock = func() {
			_ = os.RemoveAll(own)
			_ = lock.Close()
		}
	}
	p = place(filepath.Join(own, "tmp"))
	return p, unlock, p.empty()
}

func (p place) empty() error {
	if err := os.RemoveAll(string(p)); err != nil {
		return err
	}
	return os.Mkdir(string(p), 0o755)
}

// release ends what the tests have left, which they do if they are stopped, and removes the folder. parent is the process that has
// adopted their orphans; 0: none has.
func (p place) release(parent int) {
	for _, id := range processes(parent) {
		kill(id)
	}
	_ = os.RemoveAll(string(p))
}

// remains are files or processes that tests have left, with a line for each.
type remains struct {
	kind  string
	lines []string
}

// left waits until the folder is empty and the processes have ended. What is there after a time it ends and removes, and returns.
// parent is as that of release; times tell which tests ran when a process began.
func (p place) left(patience time.Duration, parent int, times *timeline) (all []remains) {
	late := time.After(patience)
	for {
		files, ids := p.files(), processes(parent)
		if len(files)+len(ids) == 0 {
			return nil
		}
		select {
		case <-late:
		case <-time.After(min(patience, 500*time.Millisecond)):
			continue
		}
		var processes []string
		for _, id := range ids {
			processes = append(processes, describeProcess(id, times))
			kill(id)
		}
		if err := p.empty(); err != nil {
			files = append(files, err.Error())
		}
		if len(files) > 0 {
			all = append(all, remains{"files", files})
		}
		if len(processes) > 0 {
			all = append(all, remains{"processes", processes})
		}
		return all
	}
}

// files returns the names of the files in the folder.
func (p place) files() (names []string) {
	_ = filepath.WalkDir(string(p), func(name string, _ fs.DirEntry, err error) error {
		if err == nil && name != string(p) { // another process may remove it at the same time
			relative, _ := filepath.Rel(string(p), name)
			names = append(names, "./"+filepath.ToSlash(relative))
		}
		return nil
	})
	return names
}

// processes returns the ids of the processes that descend from parent, and run. It needs Linux's /proc; elsewhere it returns none.
func processes(parent int) (ids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if id, _ := strconv.Atoi(filepath.Base(name)); parent != 0 && descends(id, parent) {
			ids = append(ids, id)
		}
	}
	return ids
}

// descends reports whether a process was started by a descendant of parent, or by parent itself, and runs.
func descends(id, parent int) bool {
	for id > 1 {
		fields := stat(id)
		if len(fields) < 2 || fields[0] == "Z" { // it has only not been waited for
			return false
		}
		if id, _ = strconv.Atoi(fields[1]); id == parent {
			return true
		}
	}
	return false
}

// stat returns the fields of /proc/ID/stat behind the name, which may have blanks: the state is the first. See proc_pid_stat(5).
func stat(id int) []string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// variable returns the value of a variable in the environment with which a process began.
func variable(id int, name string) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", id))
	for entry := range strings.SplitSeq(string(text), "\x00") {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// describeProcess says whose process it is: the test that realserver names in its environment, or else the folder in which it runs,
// which is that of its package, and the tests that ran when it began.
func describeProcess(id int, times *timeline) string {
	of := variable(id, "EBB_TEST")
	if of == "" {
		dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", id))
		of = "a test in " + dir
		if ran := times.at(began(id), dir); len(ran) > 0 {
			of = fmt.Sprintf("%s, begun in %s", of, strings.Join(ran[:min(len(ran), 4)], " or "))
		}
	}
	command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id))
	return fmt.Sprintf("%d of %s: %s", id, of, strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " ")))
}

func kill(id int) {
	if process, err := os.FindProcess(id); err == nil {
		_ = process.Kill() // it may have ended
	}
}
