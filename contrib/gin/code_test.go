package ginebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 2,
		Imports: map[string]string{"ginebb": "github.com/ebbdb/ebb/contrib/gin"},
	}.Compile(t)
}
