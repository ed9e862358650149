package main

import (
	"slices"
	"strings"
	"testing"
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
	} {
		if got := namedAs(strings.Fields(x.line)); !slices.Equal(got, strings.Fields(x.want)) {
			t.Errorf("%s is %q, want %s", x.line, got, x.want)
		}
	}
}
