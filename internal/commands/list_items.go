package commands

import (
	"github.com/ebbdb/ebb/internal/command"
	"github.com/ebbdb/ebb/internal/engine"
	"github.com/ebbdb/ebb/internal/numeral"
)

// LEXPIRE and its variants do for the elements of lists what HEXPIRE and its variants do for fields. Elements
// have positions instead of names.

var listItemSpecs = append(listItems.specs(), &specZAddEx, &specLPushEx, &specRPushEx)

var listItems = itemFamily{
	letter: "l", kind: engine.List, group: command.GroupList, since: "0.4.0",
	word: "INDEXES", item: "index", items: "indexes", thing: "element", of: "of a list",
	create: "> RPUSH k x y\n(integer) 2\n", a: "0", b: "1", other: "2",
	expire: func(tx *engine.Tx, key []byte, items [][]byte, deadline int64, c engine.Condition, visit func(code int)) error {
		var few [8]int64
		indexes, err := parseIndexes(few[:0], items)
		if err != nil {
			return err
		}
		return tx.LExpire(key, indexes, deadline, c, visit)
	},
	deadlines: func(tx *engine.Tx, key []byte, items [][]byte, visit func(deadline int64)) error {
		var few [8]int64
		indexes, err := parseIndexes(few[:0], items)
		if err != nil {
			return err
		}
		return tx.LDeadlines(key, indexes, visit)
	},
	persist: func(tx *engine.Tx, key []byte, items [][]byte, visit func(code int)) error {
		var few [8]int64
		indexes, err := parseIndexes(few[:0], items)
		if err != nil {
			return err
		}
		return tx.LPersist(key, indexes, visit)
	},
}

// parseIndexes reads positions of a list, negative from the tail.
func parseIndexes(dst []int64, args [][]byte) ([]int64, error) {
	for _, a := range args {
		n, ok := numeral.ParseInt(a)
		if !ok {
			return nil, command.ErrNotInteger
		}
		dst = append(dst, n)
	}
	return dst, nil
}
