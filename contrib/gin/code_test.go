package ginebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 3,
		Imports: map[string]string{"ginebb": "github.com/ebbdb/ebb/contrib/gin", "gin": "github.com/gin-gonic/gin"},
	}.Compile(t)
}
