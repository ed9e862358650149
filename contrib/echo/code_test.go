package echoebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 2,
		Imports: map[string]string{"echoebb": "github.com/ebbdb/ebb/contrib/echo"},
	}.Compile(t)
}
