package hangtest

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/backends"
)

func TestMain(m *testing.M) { backends.Main(m) }

func TestObjectsOutliveSilence(t *testing.T) { backends.Hangs(t, Objects) }
