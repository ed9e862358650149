package session

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
)

// TestTable is the Options.Table of the tests in this package. Package servercmd imports this one, so that TestMain of package
// session_test sets it.
var TestTable func(*config.Set) (*command.Table, error)

func testTable(c *config.Set) (*command.Table, error) { return TestTable(c) }
