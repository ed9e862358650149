package redisson

import (
	"regexp"
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md", "../docs/guides/*.md", "../docs/toolkit/*.md"}, Packages: []string{"."}, Least: 5,
		Only:    regexp.MustCompile(`\bredisson\.`),
		Imports: map[string]string{"redisson": "github.com/ebbdb/ebb/redisson"},
	}.Compile(t)
}
