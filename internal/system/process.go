package system

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Usage has the resources that a process has used since its start.
type Usage struct {
	System, User             time.Duration // processor time in the kernel, and outside
	MajorFaults, MinorFaults float64       // page faults that read from a disk, and others
}

// ProcessFields returns the numbers of /proc/self/status and /proc/self/io by their names there, sizes in bytes. A number is missing where
// the system does not have it, or does not show it to this process.
func ProcessFields() map[string]int64 { return processFields("/") }

func processFields(root string) map[string]int64 {
	fields := map[string]int64{}
	for _, name := range []string{"status", "io"} {
		text, _ := os.ReadFile(filepath.Join(root, "proc/self", name))
		for line := range strings.Lines(string(text)) {
			field, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			value, kilo := strings.CutSuffix(strings.TrimSpace(value), " kB")
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				continue // a text
			}
			if kilo {
				n <<= 10
			}
			fields[field] = n
		}
	}
	return fields
}

// ProcessBegan returns when the process began, in seconds since 1970, -1 where that is not known.
func ProcessBegan() float64 { return processBegan("/") }

// ticks is the unit of times in /proc/PID/stat: a hundredth of a second (USER_HZ) on all architectures that Go has.
const ticks = 100

func processBegan(root string) float64 {
	stat, err := os.ReadFile(filepath.Join(root, "proc/self/stat"))
	all, err2 := os.ReadFile(filepath.Join(root, "proc/stat"))
	if err != nil || err2 != nil {
		return -1
	}
	// The second field is the name of the program in parentheses, which may have blanks. The start is the 22nd, in ticks since the boot.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	_, boot, found := bytes.Cut(all, []byte("\nbtime "))
	if len(fields) < 20 || !found {
		return -1
	}
	after, err := strconv.ParseFloat(string(fields[19]), 64)
	booted, err2 := strconv.ParseFloat(string(bytes.Fields(boot)[0]), 64)
	if err != nil || err2 != nil {
		return -1
	}
	return booted + after/ticks
}

// OpenFiles returns how many files and sockets the process has open, -1 where that is not known. O(n).
func OpenFiles() float64 {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return -1
	}
	defer dir.Close()
	n := 0
	for {
		names, err := dir.Readdirnames(512)
		n += len(names)
		switch {
		case errors.Is(err, io.EOF):
			return float64(n)
		case err != nil:
			return -1
		}
	}
}
