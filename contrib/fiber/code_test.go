package fiberebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 3,
		Imports: map[string]string{"fiberebb": "github.com/ebbdb/ebb/contrib/fiber", "fiber": "github.com/gofiber/fiber/v3"},
	}.Compile(t)
}
