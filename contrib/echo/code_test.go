package echoebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 3,
		Imports: map[string]string{"echoebb": "github.com/ebbdb/ebb/contrib/echo", "echo": "github.com/labstack/echo/v4"},
	}.Compile(t)
}
