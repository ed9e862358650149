// Package system asks the operating system about the process and the machine: memory, CPU
// time, and names. Its functions may be called from any goroutine.
package system

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ResidentMemory returns how many bytes of the process are in physical memory, 0 where
// that is not known.
func ResidentMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// Memory returns how many bytes of memory the process may have: those of the
// machine, or what its control groups allow, if that is less; 0 where that is not known.
func Memory() int64 { return memoryBelow("/") }

// MemoryLimit returns the limit of the control groups that the process is in, bytes; 0 for none.
func MemoryLimit() int64 { return groupMemory("/") }

// memoryBelow does the work of Memory with a root of its own.
func memoryBelow(root string) int64 {
	n := machineMemory(root)
	if limit := groupMemory(root); limit > 0 && (n == 0 || limit < n) {
		n = limit
	}
	return n
}

// groupMemory returns the least limit of the control groups (cgroups, versions 1 and 2)
// that the process is in, bytes; 0 for none.
func groupMemory(root string) (least int64) {
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		// "0::/a/b" is version 2, "4:memory:/a/b" version 1.
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		mount, file := "sys/fs/cgroup", "memory.max"
		switch {
		case f[0] == "0" && f[1] == "":
		case slices.Contains(strings.Split(f[1], ","), "memory"):
			mount, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// A container sees its own group at the mount point. The limits of the groups above it
		// apply too.
		for group := filepath.Clean("/" + f[2]); ; group = filepath.Dir(group) {
			if n := groupLimit(filepath.Join(root, mount, group, file)); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if group == string(filepath.Separator) {
				break
			}
		}
	}
	return least
}

// groupLimit reads a limit, 0 for none: "max", or the number next to 2^63 that version 1
// has, which is more than any machine's memory.
func groupLimit(path string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// machineMemory returns how many bytes the machine has, 0 where that is not known.
func machineMemory(root string) int64 {
	text, err := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}
