// Package docs_test compiles the Go that the documentation shows: that of the README, the
// guides and the toolkit's pages, and of the toolkit's doc comments. The modules of contrib
// do the same with theirs, and the module redisson with all blocks of these pages that use it.
package docs_test

import (
	"regexp"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Root: "..",
		Pages: []string{"README.md", "README.zh-CN.md", "docs/*.md", "docs/guides/*.md", "docs/toolkit/*.md", "docs/design/*.md",
			"docs/zh-CN/*.md", "examples/*.md"},
		Packages: doccode.Toolkit,
		Imports: map[string]string{"server": "github.com/ebbdb/ebb/server", "console": "github.com/ebbdb/ebb/console", "pprof": "net/http/pprof",
			"signal": "os/signal", "syscall": "syscall", "os": "os",
			"redis": "github.com/redis/go-redis/v9", "logging": "github.com/redis/go-redis/v9/logging"},
		// libraries that guides show beside ours, and another module
		Others: regexp.MustCompile(`\b(asynq|redsync|rs|redis_rate|redisson)\.`),
		Least:  40,
	}.Compile(t)
}
