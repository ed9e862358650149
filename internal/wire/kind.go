package wire

import "github.com/ebbdb/ebb/resp"

// kindAttribute is in a Writer's nodes; a Value has Attrs.
const kindAttribute = resp.KindVerbatim + 1

// kindsOnWire holds, for each kind, its first byte, and the number of replies per counted element (0: not an aggregate).
var kindsOnWire = [...]struct {
	sigil byte
	width int
}{
	resp.KindNone:      {'_', 0},
	resp.KindStatus:    {'+', 0},
	resp.KindError:     {'-', 0},
	resp.KindInt:       {':', 0},
	resp.KindBulk:      {'$', 0},
	resp.KindNull:      {'_', 0},
	resp.KindNullArray: {'*', 0},
	resp.KindArray:     {'*', 1},
	resp.KindMap:       {'%', 2},
	resp.KindSet:       {'~', 1},
	resp.KindPush:      {'>', 1},
	resp.KindDouble:    {',', 0},
	resp.KindBool:      {'#', 0},
	resp.KindBigNumber: {'(', 0},
	resp.KindVerbatim:  {'=', 0},
	kindAttribute:      {'|', 2},
}

func sigilOf(k resp.Kind) byte     { return kindsOnWire[k].sigil }
func widthOf(k resp.Kind) int      { return kindsOnWire[k].width }
func isAggregate(k resp.Kind) bool { return kindsOnWire[k].width > 0 }
