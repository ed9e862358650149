package session_test

import (
	"os"
	"testing"

	"github.com/ebbdb/ebb/internal/servercmd"
	"github.com/ebbdb/ebb/internal/session"
)

func TestMain(m *testing.M) {
	session.TestTable = servercmd.Table
	os.Exit(m.Run())
}
