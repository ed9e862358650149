package promtext

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ebbdb/ebb/internal/admin"
	"github.com/ebbdb/ebb/internal/system"
)

// processSeries are the numbers of files of Linux below /proc/self, as process_....
var processSeries = [...]struct {
	name, help string
	kind       admin.MetricKind
	file, key  string
}{
	{"major_pagefaults_total", "Page faults that read a disk.", admin.Counter, "stat", "12"},
	{"minor_pagefaults_total", "Page faults that read no disk.", admin.Counter, "stat", "10"},
	{"num_threads", "Threads of the process.", admin.Gauge, "stat", "20"},
	{"start_time_seconds", "Unix time of the start.", admin.Gauge, "stat", "22"},
	{"virtual_memory_bytes", "Size of the address space.", admin.Gauge, "stat", "23"},
	{"resident_memory_bytes", "Memory of the process.", admin.Gauge, "stat", "24"},
	{"virtual_memory_peak_bytes", "Largest size of the address space so far.", admin.Gauge, "status", "VmPeak"},
	{"resident_memory_peak_bytes", "Most memory of the process so far.", admin.Gauge, "status", "VmHWM"},
	{"resident_memory_anon_bytes", "Memory that no file backs.", admin.Gauge, "status", "RssAnon"},
	{"resident_memory_file_bytes", "Memory that a file backs.", admin.Gauge, "status", "RssFile"},
	{"resident_memory_shared_bytes", "Memory that is shared with other processes.", admin.Gauge, "status", "RssShmem"},
	{"io_read_bytes_total", "Bytes that system calls read.", admin.Counter, "io", "rchar"},
	{"io_written_bytes_total", "Bytes that system calls wrote.", admin.Counter, "io", "wchar"},
	{"io_read_syscalls_total", "System calls that read.", admin.Counter, "io", "syscr"},
	{"io_write_syscalls_total", "System calls that wrote.", admin.Counter, "io", "syscw"},
	{"io_storage_read_bytes_total", "Bytes that were read from storage.", admin.Counter, "io", "read_bytes"},
	{"io_storage_written_bytes_total", "Bytes that were written to storage.", admin.Counter, "io", "write_bytes"},
	{"max_fds", "File descriptors that the process may have.", admin.Gauge, "limits", "Max open files"},
	{"open_fds", "File descriptors that the process has.", admin.Gauge, "fd", ""},
	{"pressure_cpu_waiting_seconds_total", "Time that a thread of the control group waited for a processor.", admin.Counter, "cpu.pressure", "some"},
	{"pressure_cpu_stalled_seconds_total", "Time that all of them did.", admin.Counter, "cpu.pressure", "full"},
	{"pressure_io_waiting_seconds_total", "Time that a thread of the control group waited for storage.", admin.Counter, "io.pressure", "some"},
	{"pressure_io_stalled_seconds_total", "Time that all of them did.", admin.Counter, "io.pressure", "full"},
	{"pressure_memory_waiting_seconds_total", "Time that a thread of the control group waited for memory.", admin.Counter, "memory.pressure", "some"},
	{"pressure_memory_stalled_seconds_total", "Time that all of them did.", admin.Counter, "memory.pressure", "full"},
}

// readProcess emits the numbers of the process: the processors' time on Unix, and all others on Linux. A number that the system does not
// tell, or not this process, is missing.
func readProcess(emit func(admin.Metric)) {
	if sys, user := system.CPUTime(); sys+user > 0 {
		const help = "Time of the processors that the process used"
		emit(admin.Metric{Name: "process_cpu_seconds_total", Help: help + ".", Kind: admin.Counter, Value: (sys + user).Seconds()})
		emit(admin.Metric{Name: "process_cpu_seconds_system_total", Help: help + ", in the system.", Kind: admin.Counter, Value: sys.Seconds()})
		emit(admin.Metric{Name: "process_cpu_seconds_user_total", Help: help + ", in the program.", Kind: admin.Counter, Value: user.Seconds()})
	}
	files := map[string]map[string]float64{
		"stat": readStat("/proc"), "status": readStatus("/proc/self/status", 1024), "io": readStatus("/proc/self/io", 1),
		"limits": readLimits("/proc/self/limits"), "fd": readDescriptors("/proc/self/fd"),
		"cpu.pressure": readPressure("cpu"), "io.pressure": readPressure("io"), "memory.pressure": readPressure("memory"),
	}
	for _, s := range processSeries {
		if value, ok := files[s.file][s.key]; ok {
			emit(admin.Metric{Name: "process_" + s.name, Help: s.help, Kind: s.kind, Value: value})
		}
	}
}

// readStat reads the fields of /proc/self/stat by their numbers in proc(5): the start as Unix time, and memory in bytes.
func readStat(proc string) map[string]float64 {
	const hertz = 100 // clock ticks, on all systems that Go supports
	data, err := os.ReadFile(filepath.Join(proc, "self/stat"))
	at := bytes.LastIndex(data, []byte(") ")) // the command's name may have any characters
	if err != nil || at < 0 {
		return nil
	}
	all := map[string]float64{}
	for i, field := range strings.Fields(string(data[at+2:])) {
		if value, err := strconv.ParseFloat(field, 64); err == nil {
			all[strconv.Itoa(i+3)] = value
		}
	}
	all["24"] *= float64(os.Getpagesize())
	data, err = os.ReadFile(filepath.Join(proc, "stat"))
	_, boot, found := strings.Cut(string(data), "\nbtime ")
	boot, _, _ = strings.Cut(boot, "\n")
	booted, parsed := strconv.ParseFloat(boot, 64)
	if err != nil || !found || parsed != nil {
		delete(all, "22")
	} else {
		all["22"] = booted + all["22"]/hertz
	}
	return all
}

// readStatus reads lines such as "VmPeak:    1234 kB", whose numbers have a unit.
func readStatus(file string, unit float64) map[string]float64 {
	all := map[string]float64{}
	data, _ := os.ReadFile(file) // without the file, or the right to read it, there are no lines
	for line := range strings.Lines(string(data)) {
		key, rest, _ := strings.Cut(line, ":")
		if fields := strings.Fields(rest); len(fields) > 0 {
			if value, err := strconv.ParseFloat(fields[0], 64); err == nil {
				all[key] = value * unit
			}
		}
	}
	return all
}

// readLimits reads the soft limit of open files.
func readLimits(file string) map[string]float64 {
	const key = "Max open files"
	data, _ := os.ReadFile(file)
	_, rest, _ := strings.Cut(string(data), key)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return nil
	}
	value, err := strconv.ParseFloat(fields[0], 64)
	if err != nil { // unlimited
		value = math.Inf(1)
	}
	return map[string]float64{key: value}
}

// readDescriptors counts the entries of a directory.
func readDescriptors(dir string) map[string]float64 {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	names, err := d.Readdirnames(-1)
	if closed := d.Close(); err != nil || closed != nil {
		return nil
	}
	return map[string]float64{"": float64(len(names))}
}

// readPressure reads for how long threads of the process's control group (version 2) waited for a resource, in seconds: lines such as
// "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234".
func readPressure(resource string) map[string]float64 {
	groups, _ := os.ReadFile("/proc/self/cgroup")
	_, group, found := strings.Cut("\n"+string(groups), "\n0::")
	group, _, _ = strings.Cut(group, "\n")
	if !found {
		return nil
	}
	all := map[string]float64{}
	for _, root := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} { // where version 1 has the other
		data, _ := os.ReadFile(filepath.Join(root, group, resource+".pressure"))
		for line := range strings.Lines(string(data)) {
			key, _, _ := strings.Cut(line, " ")
			_, total, _ := strings.Cut(strings.TrimSpace(line), "total=")
			if us, err := strconv.ParseFloat(total, 64); err == nil {
				all[key] = us / 1e6
			}
		}
	}
	return all
}
