package system

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// The memory of a container is what its control groups allow.
func TestMemoryHeedsControlGroups(t *testing.T) {
	const meminfo = "MemTotal:       1000 kB\nMemFree: 10 kB\n" // 1,024,000 bytes
	for _, x := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"none", map[string]string{"proc/meminfo": meminfo}, 1024000},
		{"nothing is known", nil, 0},
		{"v2", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "500000\n"}, 500000},
		{"v2, unlimited", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "max\n"}, 1024000},
		{"v2, above", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n",
			"sys/fs/cgroup/a/memory.max": "400000\n"}, 400000},
		{"v2, a container", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "300000\n"}, 300000},
		{"v1", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "9:cpu:/x\n4:memory:/x\n0::/\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "200000\n"}, 200000},
		{"v1, joined", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:cpu,memory:/docker/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "100000\n"}, 100000},
		{"v1, unlimited", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 1024000},
		{"more than there is", map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "99999999999\n"}, 1024000},
		{"no meminfo", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "77\n"}, 77},
	} {
		root := t.TempDir()
		for name, text := range x.files {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := memoryBelow(root); got != x.want {
			t.Errorf("%s: %d, want %d", x.name, got, x.want)
		}
	}
}

// The numbers are those of the files; the name of the program may have blanks and parentheses.
func TestTheProcessIsWhatProcSays(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"proc/self/status": "Name:\tebb\nVmRSS:\t    2048 kB\nThreads:\t7\nCpus_allowed_list:\t0-1\n",
		"proc/self/io":     "rchar: 5000\nwrite_bytes: 4096\n",
		"proc/self/stat":   "77 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 250 20 21\n",
		"proc/stat":        "cpu  1 2 3\nbtime 1800000000\nprocesses 9\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int64{"VmRSS": 2 << 20, "Threads": 7, "rchar": 5000, "write_bytes": 4096}
	if got := processFields(root); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := processBegan(root); got != 1800000002.5 {
		t.Errorf("it began at %.2f", got)
	}
	if got := processBegan(t.TempDir()); got != -1 {
		t.Errorf("without the files it began at %v", got)
	}
}
