package asynqebb_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/doccode"
)

func TestTheCodeOfTheDocumentationCompiles(t *testing.T) {
	doccode.Code{
		Pages: []string{"README.md"}, Packages: []string{"."}, Least: 2,
		Imports: map[string]string{"asynqebb": "github.com/ebbdb/ebb/contrib/asynq", "asynq": "github.com/hibiken/asynq",
			"redis": "github.com/redis/go-redis/v9"},
	}.Compile(t)
}
