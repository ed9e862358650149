package command

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// multiplexing is how connections are waited for.
var multiplexing = map[bool]string{true: "epoll", false: "go"}[runtime.GOOS == "linux"]

// residentMemory is how many bytes of the process are in physical memory, 0
// where that is not known.
func residentMemory() int64 {
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

// systemMemory is how many bytes the machine has, 0 where that is not known.
func systemMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
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
