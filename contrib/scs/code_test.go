package scsebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 2,
		Imports: map[string]string{"scsebb": "github.com/ebbdb/ebb/contrib/scs", "scs": "github.com/alexedwards/scs/v2"},
	}.Compile(t)
}
