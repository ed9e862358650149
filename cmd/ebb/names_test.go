package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestTheNameOfTheProgramChoosesTheCommand(t *testing.T) {
	for _, x := range []struct{ line, want string }{
		{"ebb serve --port 7", "serve --port 7"},
		{"/usr/bin/ebb", ""},
		{"redis-server /etc/redis.conf --port 7", "serve /etc/redis.conf --port 7"},
		{"/usr/local/bin/valkey-server --version", "serve --version"},
		{"ebb --maxmemory 70%", "serve --maxmemory 70%"},
		{"ebb --help", "--help"},
		{"ebb redis-cli ping", "cli ping"},
		{"ebb redis-nosuch", "redis-nosuch"},
		{"valkey-cli -p 7 ping", "cli -p 7 ping"},
		{"redis-cli.exe ping", "cli ping"},
		{"redis-check-aof --fix a.aof", "check --fix a.aof"},
		{"redis-check-rdb dump.rdb", "check dump.rdb"},
		{"redis-benchmark -t set -d 32", "bench -n 100000 -t set --size 32"},
		{"valkey-benchmark -n 5 -P 16", "bench -n 5 -P 16"},
		{"redis-benchmark -q -n 5 -t ping_inline,PING_MBULK,lrange_100", "bench -q -n 5 -t ping,lrange_100"},
		{"redis-benchmark --threads 4 -k 1 -e --dbnum 3 --precision 2 -n 9", "bench --db 3 -n 9"},
		{"redis-benchmark -k 0", "bench -n 100000 -k 0"},
		{"redis-benchmark -n 5 SET -d x", "bench -n 5 SET -d x"},
		{"redis-benchmark -c", "bench -n 100000 -c"},
		{"redis-sentinel /etc/sentinel.conf", "redis-sentinel /etc/sentinel.conf"},
		{"valkey-sentinel", "redis-sentinel"},
	} {
		if got := namedAs(strings.Fields(x.line)); !slices.Equal(got, strings.Fields(x.want)) {
			t.Errorf("%s is %q, want %s", x.line, got, x.want)
		}
	}
}

// Printing the help with status 0 would look like a Sentinel that has started.
func TestEbbIsNoSentinel(t *testing.T) {
	root := &cobra.Command{Use: "ebb", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(commands()...)
	root.SetArgs(namedAs([]string{"/usr/bin/redis-sentinel", "/etc/sentinel.conf", "--port", "26379"}))
	if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "has no Sentinel") {
		t.Errorf("%v", err)
	}
}
