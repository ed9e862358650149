package rdb

// These are the containers of a quicklist's nodes.
const (
	nodePlain  = 1 // the node is one element
	nodePacked = 2 // the node is a listpack
)

func (d *Decoder) list(t Type, b Builder) error {
	switch t {
	case TypeList:
		n, err := d.some(1)
		if err == nil {
			err = b.BeginList(n)
		}
		for ; err == nil && n > 0; n-- {
			var e []byte
			if e, err = d.string(first); err == nil {
				err = b.Element(e)
			}
		}
		return err
	case TypeListZiplist:
		c, n, err := d.cursorOf(t)
		if err == nil {
			err = b.BeginList(n)
		}
		return d.elements(c, n, b, err)
	}
	return d.quicklist(t, b)
}

// quicklist reads a list of nodes.
func (d *Decoder) quicklist(t Type, b Builder) error {
	nodes, err := d.some(1)
	if err == nil {
		err = b.BeginList(0)
	}
	empty := true
	for ; err == nil && nodes > 0; nodes-- {
		var c cursor
		var plain []byte
		var n int
		if plain, c, n, err = d.node(t); err != nil {
			return err
		}
		empty = empty && c != nil && n == 0
		if c == nil {
			err = b.Element(plain)
			continue
		}
		err = d.elements(c, n, b, nil)
	}
	if err == nil && empty {
		err = errEmpty
	}
	return err
}

func (d *Decoder) elements(c cursor, n int, b Builder, err error) error {
	for ; err == nil && n > 0; n-- {
		err = b.Element(c.next().bytes(&d.nums[first]))
	}
	return err
}

// node reads a quicklist's node: a plain element, or a cursor over n of them.
func (d *Decoder) node(t Type) (plain []byte, c cursor, n int, err error) {
	if t == TypeQuicklist {
		c, n, err = d.cursorOf(TypeListZiplist)
		return nil, c, n, ignoreEmpty(err)
	}
	kind, err := d.number()
	if err != nil {
		return nil, nil, 0, err
	}
	switch kind {
	case nodePlain:
		plain, err = d.string(whole)
		return plain, nil, 1, err
	case nodePacked:
		c, n, err = d.cursorOf(t)
		return nil, c, n, ignoreEmpty(err)
	}
	return nil, nil, 0, bad("no node of a list is of kind %d", kind)
}

// ignoreEmpty returns nil for the error of an empty node, because Redis skips such nodes.
func ignoreEmpty(err error) error {
	if err == errEmpty {
		return nil
	}
	return err
}
