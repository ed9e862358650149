package session

import (
	"slices"

	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/commands"
)

// Specs lists all commands, group by group.
func Specs() []*command.Spec {
	return slices.Concat(commands.Specs(), waitSpecs, connectionSpecs, transactionSpecs, serverSpecs, persistSpecs, replSpecs, pubsubSpecs, clusterSpecs,
		scriptingSpecs)
}

// DefaultTable builds the table of all commands. Its error means a mistake in a Spec, which the
// tests find.
func DefaultTable() (*command.Table, error) { return command.NewTable(Specs()...) }

var transactionSpecs = []*command.Spec{&specMulti, &specExec, &specDiscard, &specWatch, &specUnwatch}
