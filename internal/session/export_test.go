package session

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/config"
)

// testTable is the Options.Table of the tests in this package.
func testTable(c *config.Set) (*command.Table, error) { return Table(c) }
