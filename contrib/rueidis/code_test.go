package rueidisebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 2,
		Imports: map[string]string{"rueidisebb": "github.com/ebbdb/ebb/contrib/rueidis", "rueidis": "github.com/redis/rueidis"},
	}.Compile(t)
}
