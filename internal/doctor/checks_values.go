package doctor

import (
	"fmt"
	"strings"
	"time"

	"github.com/ebbdb/ebb/conn"
)

// The check of values ends after lookTime, or when it has seen all keys. A server returns keys in no order of theirs, so what it has seen
// until then is a sample.
const (
	largeValue = 1_000_000 // elements
	lookTime   = 2 * time.Second
	lookKeys   = 1000 // in a step: a round trip for their types, and one for the lengths
)

// lengthOf are the commands that return the number of a value's elements.
var lengthOf = map[string]string{"list": "LLEN", "set": "SCARD", "hash": "HLEN", "zset": "ZCARD", "stream": "XLEN"}

// large looks for values of very many elements, in the connection's database.
func large(f *facts) []Finding {
	began, cursor, seen := f.Clock(), "0", 0
	var found []string
	for {
		v, ok := f.ask("SCAN", cursor, "COUNT", lookKeys)
		if !ok || len(v.Elems) != 2 {
			return nil
		}
		keys := v.Elems[1].Elems
		big, ok := f.largeAmong(keys)
		if !ok {
			return nil
		}
		found, seen = append(found, big...), seen+len(keys)
		if cursor = v.Elems[0].String(); cursor == "0" || f.Clock().Sub(began) > lookTime || len(found) >= 10 {
			break
		}
	}
	of := fmt.Sprintf("of %d keys", seen)
	if cursor != "0" {
		of = fmt.Sprintf("of the %d keys that were looked at", seen)
	}
	switch {
	case len(found) > 0:
		return one(Look, "values", fmt.Sprintf("more than %d elements, %s: %s", largeValue, of, strings.Join(found, ", ")),
			"a command that reads or deletes such a value whole takes long, and others wait meanwhile", "",
			"divide it over several keys; read it in parts (HSCAN, SSCAN, ZSCAN, LRANGE), and delete it with UNLINK")
	case seen == 0:
		return nil
	}
	return fine("values", "none %s has more than %d elements", of, largeValue)
}

// largeAmong returns which of the keys have very many elements. ok is false if the user may not ask.
func (f *facts) largeAmong(keys []conn.Value) (found []string, ok bool) {
	var types, lengths conn.Batch
	for _, key := range keys {
		types.Do("TYPE", key.String())
	}
	var names, kinds []string
	for i, v := range f.all(&types) {
		if v.Err() != nil {
			return nil, false
		}
		if command := lengthOf[v.String()]; command != "" {
			names, kinds = append(names, keys[i].String()), append(kinds, v.String())
			lengths.Do(command, keys[i].String())
		}
	}
	for i, v := range f.all(&lengths) {
		switch {
		case v.Err() != nil && strings.HasPrefix(v.Err().Error(), "NOPERM"):
			return nil, false
		case v.Int > largeValue:
			found = append(found, fmt.Sprintf("%s (%s, %d)", quoted(names[i]), kinds[i], v.Int))
		}
	}
	return found, f.lost == nil
}
