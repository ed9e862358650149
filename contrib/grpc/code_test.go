package grpcebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 2,
		Imports: map[string]string{
			"grpcebb": "github.com/ebbdb/ebb/contrib/grpc", "grpc": "google.golang.org/grpc",
			"ratelimit": "github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/ratelimit",
		},
	}.Compile(t)
}
