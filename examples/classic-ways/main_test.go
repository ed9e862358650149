package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/realserver"
)

func TestMain(m *testing.M) { backends.Main(m) }

// wants are the figures of the classics on every backend: those of the traps, and the toolkit's.
var wants = map[string][]int64{
	sweep.title:           {10, 0},
	setnx.title:           {1, 0},
	unlock.title:          {2, 1},
	failover.title:        {missing, missing}, // TestTheTable has two servers
	counter.title:         {1, 0},
	border.title:          {10, 5},
	burstInZset.title:     {20, 5},
	steadyInZset.title:    {5, 15},
	throttle.title:        {6, 5},
	redissonExpire.title:  {2, 0},
	redissonSetRate.title: {10, 5},
	poll.title:            {20, 10},
	claim.title:           {1, 0},
	brpop.title:           {1, 0},
	notification.title:    {5, 10},
	stampede.title:        {50, 1},
}

func TestEachTrapIsMeasured(t *testing.T) {
	// The classic ways send several keys in one transaction, and set a directive of one server.
	backends.Except(t, []string{"cluster", "sentinel"}, func(t *testing.T, b *backends.Backend) {
		col := &column{c: b.Conn}
		if err := measure(b.Context(), col); err != nil {
			t.Fatal(err)
		}
		isRedis := strings.HasPrefix(b.Kind, "redis") || strings.HasPrefix(b.Kind, "valkey")
		for i, k := range classics {
			want, got := wants[k.title], col.figures[i]
			if k.title == sweepMemory.title {
				checkMemory(t, b.Native(), got)
				continue
			}
			if k.title == throttle.title && isRedis {
				want = []int64{missing, 5} // without the module redis-cell
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", k.title, got, want)
			}
		}
		for key, err := range b.Scan(b.Context(), "*classic*") {
			t.Errorf("the example left %s behind, %v", key, err)
		}
	})
}

// checkMemory checks the bytes of a session: a hash with a sorted set of deadlines takes more than a string, and on ebb fields
// with deadlines of their own take less.
func checkMemory(t *testing.T, native bool, figures []int64) {
	t.Helper()
	hash, text, fields := figures[0], figures[1], figures[2]
	if text < 100 || fields < 100 || hash <= text {
		t.Errorf("bytes of a session: %d in a hash, %d in a string, %d in package expmap", hash, text, fields)
	}
	if native && fields >= text {
		t.Errorf("bytes of a session: %d in package expmap, want less than %d of a string", fields, text)
	}
}

// table runs the program and returns what it prints.
func table(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := measureAll(t.Context(), &out, "mem://", ""); err != nil {
		t.Fatalf("%v, after:\n%s", err, out.String())
	}
	return out.String()
}

// rowOf returns the figures of the row below a title of the table.
func rowOf(t *testing.T, table, title string, row int) []string {
	t.Helper()
	_, rest, found := strings.Cut(table, title+"\n")
	lines := strings.Split(rest, "\n")
	if !found || len(lines) <= row {
		t.Fatalf("row %d of %q is missing in:\n%s", row, title, table)
	}
	fields := strings.Fields(lines[row])
	return fields[len(fields)-2:]
}

func TestTheTable(t *testing.T) {
	realserver.Program(t, realserver.Redis7)
	got := table(t)
	for i, want := range [][]string{{"2", "2"}, {"1", "1"}} {
		if figures := rowOf(t, got, failover.title, i); !slices.Equal(figures, want) {
			t.Errorf("holders after a failover: %v, want %v, in:\n%s", figures, want, got)
		}
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, got, _ = strings.Cut(got, sweep.title) // below the rows about memory, which differ by a byte
	for line := range strings.Lines(got) {
		if !strings.Contains(string(readme), line) {
			t.Errorf("README.md has no line %q", line)
		}
	}
}

func TestTheTableWithoutRedis(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	got := table(t)
	if !strings.Contains(got, "redis-server is not in the PATH: its column is empty.") {
		t.Errorf("the table does not say that redis-server is missing:\n%s", got)
	}
	for i, want := range [][]string{{"-", "2"}, {"-", "1"}} {
		if figures := rowOf(t, got, failover.title, i); !slices.Equal(figures, want) {
			t.Errorf("holders after a failover: %v, want %v, in:\n%s", figures, want, got)
		}
	}
}
