package resp

// kindAttribute is in a Writer's nodes; a Value has Attrs.
const kindAttribute = KindVerbatim + 1

// kindsOnWire holds, for each kind, its first byte, and the number of replies per counted element (0: not an aggregate).
var kindsOnWire = [...]struct {
	sigil byte
	width int
}{
	KindNone:      {'_', 0},
	KindStatus:    {'+', 0},
	KindError:     {'-', 0},
	KindInt:       {':', 0},
	KindBulk:      {'$', 0},
	KindNull:      {'_', 0},
	KindNullArray: {'*', 0},
	KindArray:     {'*', 1},
	KindMap:       {'%', 2},
	KindSet:       {'~', 1},
	KindPush:      {'>', 1},
	KindDouble:    {',', 0},
	KindBool:      {'#', 0},
	KindBigNumber: {'(', 0},
	KindVerbatim:  {'=', 0},
	kindAttribute: {'|', 2},
}

func sigilOf(k Kind) byte     { return kindsOnWire[k].sigil }
func widthOf(k Kind) int      { return kindsOnWire[k].width }
func isAggregate(k Kind) bool { return kindsOnWire[k].width > 0 }
