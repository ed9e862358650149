package commands_test

import (
	"testing"

	"github.com/ebbdb/ebb/internal/testing/history"
)

func TestCommandsAndTransactionsAreLinearizable(t *testing.T) {
	for round := range history.Rounds {
		if !history.Check(t, history.Strings, history.RecordCommands(t, uint64(round), history.RandomCommand)) {
			return
		}
	}
}
