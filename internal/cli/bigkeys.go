package cli

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ebbdb/ebb/resp"
)

// keyType holds the numbers of a survey about the keys of one type.
type keyType struct {
	name    string // as TYPE returns it
	command string // that returns the length; "" for an unknown type
	unit    string // of the length
	always  bool   // in the summary even without a key

	keys        int64
	size        int64 // of all of them
	biggest     int64 // size of the key biggestName; 0: there is none
	biggestName string
}

// keyTypes returns the types with a command for their length. Redis's own are in
// every summary, those of ebb and of Redis 8 where there is one.
func keyTypes() []*keyType {
	return []*keyType{
		{name: "string", command: "STRLEN", unit: "bytes", always: true},
		{name: "list", command: "LLEN", unit: "items", always: true},
		{name: "set", command: "SCARD", unit: "members", always: true},
		{name: "hash", command: "HLEN", unit: "fields", always: true},
		{name: "zset", command: "ZCARD", unit: "members", always: true},
		{name: "stream", command: "XLEN", unit: "entries", always: true},
		{name: "MBbloom--", command: "BF.CARD", unit: "items"},
		{name: "vectorset", command: "VCARD", unit: "elements"},
	}
}

const (
	bigkeysNeeds = "+scan +dbsize +type +strlen +llen +scard +hlen +zcard +xlen"
	memkeysNeeds = "+scan +dbsize +type +memory|usage"
	hotkeysNeeds = "+scan +dbsize +object|freq"
)

// census is a survey by type.
type census struct {
	*survey
	types []*keyType
	named map[string]*keyType
	names int64 // bytes in the names of the keys
}

func newCensus(s *survey) *census {
	n := &census{survey: s, types: keyTypes(), named: map[string]*keyType{}}
	for _, t := range n.types {
		n.named[t.name] = t
	}
	return n
}

// typesOf returns the type of each key, nil for a key that no longer exists.
func (n *census) typesOf(keys []string) ([]*keyType, error) {
	replies, err := n.ask(len(keys), func(i int) []string { return []string{"TYPE", keys[i]} })
	if err != nil {
		return nil, err
	}
	types := make([]*keyType, len(keys))
	for i, v := range replies {
		if v.Str == "" || v.Str == "none" {
			continue
		}
		t := n.named[v.Str]
		if t == nil {
			t = &keyType{name: v.Str, unit: "?"}
			n.named[v.Str], n.types = t, append(n.types, t)
		}
		types[i] = t
	}
	return types, nil
}

// lengths requests the length of each key.
func (n *census) lengths(keys []string, types []*keyType) ([]resp.Value, error) {
	return n.ask(len(keys), func(i int) []string {
		if types[i] == nil || types[i].command == "" {
			return nil
		}
		return []string{types[i].command, keys[i]}
	})
}

// memory requests the size of each key in memory.
func (n *census) memory(keys []string, types []*keyType, samples int) ([]resp.Value, error) {
	return n.ask(len(keys), func(i int) []string {
		switch {
		case types[i] == nil:
			return nil
		case samples >= 0:
			return []string{"MEMORY", "USAGE", keys[i], "SAMPLES", strconv.Itoa(samples)}
		}
		return []string{"MEMORY", "USAGE", keys[i]}
	})
}

// bigkeys finds the key of each type with the greatest length, or the greatest size
// in memory.
func (c *client) bigkeys() int {
	option, needs := "--bigkeys", bigkeysNeeds
	if c.opt.Memkeys {
		option, needs = "--memkeys", memkeysNeeds
	}
	s, err := c.newSurvey(option, needs)
	if err != nil {
		fmt.Fprintln(c.env.Err, "Error:", err)
		return 1
	}
	fmt.Fprint(c.env.Out, "\n# Scanning the entire keyspace to find biggest keys as well as\n"+
		"# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n"+
		"# per 100 SCAN commands (not usually needed).\n\n")
	n := newCensus(s)
	err = n.run(func(keys []string) error {
		types, err := n.typesOf(keys)
		if err != nil {
			return err
		}
		var sizes []resp.Value
		if c.opt.Memkeys {
			sizes, err = n.memory(keys, types, c.opt.MemSamples)
		} else {
			sizes, err = n.lengths(keys, types)
		}
		if err != nil {
			return err
		}
		n.add(keys, types, sizes)
		return nil
	})
	if err == nil || n.count > 0 {
		n.summary()
	}
	return n.end(err)
}

// unit returns the unit of a type's size.
func (n *census) unit(t *keyType) string {
	if n.c.opt.Memkeys {
		return "bytes"
	}
	return t.unit
}

// add counts a batch of keys, and prints each key that is the largest so far.
func (n *census) add(keys []string, types []*keyType, sizes []resp.Value) {
	percent := n.percent()
	for i, t := range types {
		if t == nil || sizes[i].IsNull() && (t.command != "" || n.c.opt.Memkeys) { // deleted, or of another type meanwhile
			continue
		}
		size := sizes[i].Int
		n.count++
		n.names += int64(len(keys[i]))
		t.keys++
		t.size += size
		if size > t.biggest {
			t.biggest, t.biggestName = size, keys[i]
			n.say("[%05.2f%%] Biggest %-6s found so far '%s' with %d %s\n", percent, t.name, shownName(keys[i]), size, n.unit(t))
		}
	}
	n.progress()
}

func (n *census) summary() {
	w := n.c.env.Out
	fmt.Fprint(w, "\n-------- summary -------\n\n")
	if !n.over() {
		fmt.Fprintf(w, "[%05.2f%%] ", n.percent())
	}
	fmt.Fprintf(w, "Sampled %d keys in the keyspace!\n", n.count)
	fmt.Fprintf(w, "Total key length in bytes is %d (avg len %.2f)\n\n", n.names, ratio(n.names, n.count))
	for _, t := range n.types {
		if t.biggest > 0 {
			fmt.Fprintf(w, "Biggest %6s found '%s' has %d %s\n", t.name, shownName(t.biggestName), t.biggest, n.unit(t))
		}
	}
	fmt.Fprintln(w)
	for _, t := range n.types {
		if t.keys > 0 || t.always {
			fmt.Fprintf(w, "%d %ss with %d %s (%05.2f%% of keys, avg size %.2f)\n",
				t.keys, t.name, t.size, n.unit(t), 100*ratio(t.keys, n.count), ratio(t.size, t.keys))
		}
	}
}

func ratio(a, b int64) float64 { return float64(a) / float64(max(b, 1)) }

// maxHot bounds --hotkeys-count: the list is kept sorted by insertion.
const maxHot = 100_000

// hotKey is a key and the logarithm of how often it is used.
type hotKey struct {
	name string
	freq int64
}

// hotkeys finds the keys that are used most, by the counters of an LFU policy.
func (c *client) hotkeys() int {
	s, err := c.newSurvey("--hotkeys", hotkeysNeeds)
	if err != nil {
		fmt.Fprintln(c.env.Err, "Error:", err)
		return 1
	}
	fmt.Fprint(c.env.Out, "\n# Scanning the entire keyspace to find hot keys as well as\n"+
		"# average sizes per key type.  You can use -i 0.1 to sleep 0.1 sec\n"+
		"# per 100 SCAN commands (not usually needed).\n\n")
	var hottest []hotKey // most used first
	err = s.run(func(keys []string) error {
		freqs, err := s.ask(len(keys), func(i int) []string { return []string{"OBJECT", "FREQ", keys[i]} })
		if err != nil {
			return err
		}
		percent := s.percent()
		for i, v := range freqs {
			if v.Kind == resp.KindNone {
				continue
			}
			s.count++
			var in bool
			if hottest, in = insertHot(hottest, hotKey{keys[i], v.Int}, c.opt.HotCount); in {
				s.say("[%05.2f%%] Hot key '%s' found so far with counter %d\n", percent, shownName(keys[i]), v.Int)
			}
		}
		s.progress()
		return nil
	})
	if err != nil && s.count == 0 {
		return s.end(err) // nothing to sum up
	}
	fmt.Fprint(c.env.Out, "\n-------- summary -------\n\n")
	if !s.over() {
		fmt.Fprintf(c.env.Out, "[%05.2f%%] ", s.percent())
	}
	fmt.Fprintf(c.env.Out, "Sampled %d keys in the keyspace!\n", s.count)
	for _, k := range hottest {
		fmt.Fprintf(c.env.Out, "hot key found with counter: %d\tkeyname: %s\n", k.freq, shownName(k.name))
	}
	return s.end(err)
}

// insertHot keeps the n keys with the greatest counters; among equals those that came
// first. SCAN may name a key twice: it stays one.
func insertHot(hottest []hotKey, k hotKey, n int) (_ []hotKey, in bool) {
	if k.freq <= 0 || slices.ContainsFunc(hottest, func(h hotKey) bool { return h.name == k.name }) {
		return hottest, false
	}
	at := len(hottest)
	for at > 0 && hottest[at-1].freq < k.freq {
		at--
	}
	if at == n {
		return hottest, false
	}
	if len(hottest) == n {
		hottest = hottest[:n-1]
	}
	return slices.Insert(hottest, at, k), true
}
