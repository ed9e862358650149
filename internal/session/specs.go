package session

import "github.com/ebbdb/ebb/internal/command"

// Specs lists all commands, group by group.
func Specs() []*command.Spec {
	var all []*command.Spec
	for _, group := range [][]*command.Spec{
		stringSpecs, bitmapSpecs, hyperLogLogSpecs, hashSpecs, setSpecs, streamSpecs, listSpecs, sortedSetSpecs, geoSpecs, genericSpecs, dumpSpecs, sortSpecs,
		expirySpecs, itemExpirySpecs, listItemSpecs, expiryCmdSpecs, limiterSpecs, lockSpecs, semaphoreSpecs, queueSpecs, bloomSpecs, connectionSpecs,
		transactionSpecs, serverSpecs, persistSpecs, replSpecs, pubsubSpecs, clusterSpecs, scriptingSpecs,
	} {
		all = append(all, group...)
	}
	return all
}

// DefaultTable builds the table of all commands. Its error is a mistake in a
// spec, which the tests find.
func DefaultTable() (*command.Table, error) { return command.NewTable(Specs()...) }

var transactionSpecs = []*command.Spec{&specMulti, &specExec, &specDiscard, &specWatch, &specUnwatch}
