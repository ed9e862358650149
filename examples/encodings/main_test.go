package main

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
	"github.com/ebbdb/ebb/internal/testing/exampletest"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestExample(t *testing.T) {
	exampletest.Run(t, run,
		"zset-max-ziplist-entries   128",
		"     128  listpack ",
		"     129  skiplist ",
		"    4096  skiplist ",
		"player-00126 1260",
		"a name of 64 bytes: listpack",
		"a name of 65 bytes: skiplist",
		"zset-max-listpack-entries is 4",
		"4 players: listpack, 5 players: skiplist")
}
