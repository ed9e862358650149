package servercmd

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/commands"
	"github.com/ebbdb/ebb/internal/config"
)

// Specs lists all commands, group by group.
func Specs() []*command.Spec {
	return slices.Concat(commands.Specs(), waitSpecs, connectionSpecs, transactionSpecs, serverSpecs, persistSpecs, replSpecs,
		pubsubSpecs, clusterSpecs, scriptingSpecs)
}

// DefaultTable builds the table of all commands. Its error means a mistake in a Spec, which the
// tests find.
func DefaultTable() (*command.Table, error) { return command.NewTable(Specs()...) }

// sharedTable has the commands under their own names. Building it is half of the time in which an
// embedded engine opens.
var sharedTable = sync.OnceValues(DefaultTable)

// Table returns the table of all commands, under the names that the directive rename-command gives them.
// Without that directive all callers get the same table.
func Table(c *config.Set) (*command.Table, error) {
	lines := c.Renames()
	if len(lines) == 0 {
		return sharedTable()
	}
	t, err := DefaultTable()
	if err != nil {
		return nil, err
	}
	renames := make([]command.Rename, len(lines))
	for i, l := range lines {
		renames[i] = command.Rename{From: l.From, To: l.To}
	}
	if i, err := t.Rename(renames); err != nil {
		return nil, fmt.Errorf("%s: 'rename-command %s %q': %w", lines[i].Where, lines[i].From, lines[i].To, err)
	}
	return t, nil
}
