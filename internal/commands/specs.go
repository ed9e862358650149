package commands

import (
	"slices"

	"github.com/ebbdb/ebb/internal/command"
)

// Specs lists the commands on data, group by group.
func Specs() []*command.Spec {
	return slices.Concat(stringSpecs, bitmapSpecs, hyperLogLogSpecs, hashSpecs, setSpecs, streamSpecs, listSpecs,
		sortedSetSpecs, geoSpecs, genericSpecs,
		dumpSpecs, sortSpecs, keyExpirySpecs, itemExpirySpecs, listItemSpecs, expirySpecs, limiterSpecs, lockSpecs, semaphoreSpecs,
		queueSpecs, bloomSpecs)
}
