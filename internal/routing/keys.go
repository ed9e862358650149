package routing

import (
	"fmt"
	"iter"

	"github.com/ebbdb/ebb/internal/numeral"
)

// Keys returns the positions of the keys among n words of a command. See AppendKeys.
func Keys(n int, word func(i int) string) []int {
	if n < 2 {
		return nil
	}
	return Of(n, word).AppendKeys(nil, n, word)
}

// AppendKeys appends the positions of the keys among the n words of a request to dst. For
// a command that the table does not have, it assumes one key, the first argument. The
// channel of a sharded publish counts as a key, because it belongs to a node. A request
// that does not fit the command's grammar has no keys. It costs O(words), and allocates
// only to grow dst.
func (c *Command) AppendKeys(dst []int, n int, word func(i int) string) []int {
	return c.appendKeys(dst, 1<<30, n, word)
}

// FirstKey returns the position of the first key, 0 if there is none.
func (c *Command) FirstKey(n int, word func(i int) string) int {
	var room [4]int
	if at := c.appendKeys(room[:0], 1, n, word); len(at) > 0 {
		return at[0]
	}
	return 0
}

// Route returns the position of the word that decides the node of a command, 0 if every
// node can run it: its first key, or the channel of PUBLISH, so that its reply counts the
// subscribers that the client has sent to the same node.
func (c *Command) Route(n int, word func(i int) string) int {
	if at := c.FirstKey(n, word); at > 0 || c == nil || c.Name != "publish" || n < 2 {
		return at
	}
	return 1
}

// appendKeys appends keys as AppendKeys does, and may stop when it has found most keys.
func (c *Command) appendKeys(dst []int, limit, n int, word func(i int) string) []int {
	switch {
	case n < 2:
		return dst
	case c == nil:
		return append(dst, 1)
	case c.Options != nil:
		return c.Options.append(dst, n, word)
	}
	least, had := 1, len(dst)
	if c.Has(NoKeys) {
		least = 0
	}
	for i := range c.Keys {
		var ok bool
		if dst, ok = c.Keys[i].append(dst, had+limit, least, n, word); !ok {
			return dst[:had]
		}
	}
	return dst
}

// append appends the keys that a rule finds, until dst has limit. A number of keys must be
// at least least.
func (k *KeyRule) append(dst []int, limit, least, n int, word func(i int) string) ([]int, bool) {
	first, step := k.Index, max(k.Step, 1)
	if k.Keyword != "" {
		if first = k.behindKeyword(n, word); first == 0 {
			return dst, true
		}
	}
	last := n + k.Last
	switch {
	case k.First > 0:
		if first+k.Count >= n {
			return dst, false
		}
		keys, ok := numeral.ParseInt([]byte(word(first + k.Count)))
		if !ok || keys < int64(least) || keys > int64(n) {
			return dst, false
		}
		first += k.First
		last = first + (int(keys)-1)*step
	case k.Last >= 0:
		last = first + k.Last
	case k.Half:
		last = first + (n-first)/2 + k.Last
	}
	if last >= n {
		return dst, false
	}
	for p := first; p <= last && len(dst) < limit; p += step {
		dst = append(dst, p)
	}
	return dst, true
}

// behindKeyword returns the position after the keyword, 0 if the request does not have it.
func (k *KeyRule) behindKeyword(n int, word func(i int) string) int {
	from, to, step := k.Index, n-1, 1
	if from < 0 {
		from, to, step = n+from, 0, -1
	}
	for i := from; i != to && i > 0 && i < n-1; i += step {
		if equalFold(word(i), k.Keyword) {
			return i + 1
		}
	}
	return 0
}

// append appends the keys of a request.
func (o *KeyOptions) append(dst []int, n int, word func(i int) string) []int {
	had := len(dst)
	if o.Only != "" && (n < 3 || !equalFold(word(2), o.Only)) || o.First >= n || o.Pairs && (n-o.From)%2 != 0 {
		return dst
	}
	if o.First > 0 {
		if dst = append(dst, o.First); o.Instead && word(o.First) != "" {
			return dst
		}
	}
	begin := len(dst)
	for i := o.From; i < n; i++ {
		opt, takes := o.option(word(i))
		if opt != nil && opt.Args < 0 {
			if dst = dst[:begin]; o.Instead {
				dst = dst[:had]
			}
			for p := i + 1; p < n; p++ {
				dst = append(dst, p)
			}
			return dst
		}
		if opt != nil && opt.Key && i+1 < n && !(o.Pairs && word(i+1) == "") {
			if o.Take == TakeLast {
				dst = dst[:begin]
			}
			if opt.Before != "" && i+2 < n && equalFold(word(i+1), opt.Before) {
				if next, _ := o.option(word(i + 2)); next == nil {
					i++
				}
			}
			if dst = append(dst, i+1); o.Take == TakeFirst {
				return dst
			}
		}
		i += takes
	}
	if o.Take == TakeFirst {
		return dst[:had]
	}
	return dst
}

// option finds a word among the options, and says how many arguments follow it.
func (o *KeyOptions) option(word string) (opt *KeyOption, takes int) {
	for i := range o.Options {
		if opt = &o.Options[i]; equalFold(word, opt.Word) {
			return opt, opt.Args
		}
	}
	if o.Pairs {
		return nil, 1
	}
	return nil, 0
}

// MayWrite reports whether a command, by its name and its second word (""), may change
// data. It reports true for a script, and for a command that the table does not have.
func MayWrite(name, second string) bool { return Find(name, second).Has(Write) }

// Slots is the number of hash slots of a cluster.
const Slots = 16384

// Slot returns the hash slot of a key: CRC16 (XMODEM) of the key, or of the text between
// the first { and the next }, if that is not empty.
func Slot[K string | []byte](key K) int {
	if i := indexByte(key, '{'); i >= 0 {
		if n := indexByte(key[i+1:], '}'); n > 0 {
			key = key[i+1 : i+1+n]
		}
	}
	crc := uint16(0)
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % Slots
}

// indexByte is strings.IndexByte and bytes.IndexByte.
func indexByte[K string | []byte](text K, b byte) int {
	for i := range len(text) {
		if text[i] == b {
			return i
		}
	}
	return -1
}

// OneSlot returns the first of some keys, "" if there is none, and an error if another key
// is not in its slot. what names the operation in the error.
func OneSlot(what string, keys iter.Seq[string]) (first string, err error) {
	slot := -1
	for key := range keys {
		switch s := Slot(key); {
		case slot < 0:
			first, slot = key, s
		case s != slot:
			return "", fmt.Errorf("%s in a cluster has its keys in one slot, and %q and %q are not: give them a common hash tag, as in {tag}:%s",
				what, first, key, first)
		}
	}
	return first, nil
}
