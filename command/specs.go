package command

// Specs lists all commands, group by group.
func Specs() []*Spec {
	var all []*Spec
	for _, group := range [][]*Spec{
		stringSpecs, genericSpecs, expirySpecs, connectionSpecs, transactionSpecs, serverSpecs, pubsubSpecs,
	} {
		all = append(all, group...)
	}
	return all
}

// DefaultTable builds the table of all commands. Its error is a mistake in a
// spec, which the tests find.
func DefaultTable() (*Table, error) { return NewTable(Specs()...) }

var stringSpecs = []*Spec{&specGet, &specSet}
var genericSpecs = []*Spec{&specDel}
var expirySpecs = []*Spec{&specExpire, &specTTL}
var connectionSpecs = []*Spec{&specPing}
var transactionSpecs = []*Spec{&specMulti, &specExec, &specDiscard, &specWatch, &specUnwatch}
var serverSpecs = []*Spec{&specCommand}
var pubsubSpecs = []*Spec{}
