package otelebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 2,
		Imports: map[string]string{"otelebb": "github.com/ebbdb/ebb/contrib/otel"},
	}.Compile(t)
}
