package command

// Specs lists all commands, group by group.
func Specs() []*Spec {
	var all []*Spec
	for _, group := range [][]*Spec{
		stringSpecs, bitmapSpecs, hyperLogLogSpecs, hashSpecs, setSpecs, streamSpecs, listSpecs, sortedSetSpecs, geoSpecs, genericSpecs, dumpSpecs, sortSpecs, expirySpecs, itemExpirySpecs, listItemSpecs, expiryCmdSpecs, limiterSpecs, lockSpecs, semaphoreSpecs, queueSpecs, bloomSpecs, connectionSpecs, transactionSpecs, serverSpecs, persistSpecs, replSpecs, pubsubSpecs, clusterSpecs, scriptingSpecs,
	} {
		all = append(all, group...)
	}
	return all
}

// DefaultTable builds the table of all commands. Its error is a mistake in a
// spec, which the tests find.
func DefaultTable() (*Table, error) { return NewTable(Specs()...) }

var transactionSpecs = []*Spec{&specMulti, &specExec, &specDiscard, &specWatch, &specUnwatch}
