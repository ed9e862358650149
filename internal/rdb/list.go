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
		var some bool
		some, err = d.node(t, b)
		empty = empty && !some
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

// node reads a quicklist's node, and reports whether it has elements.
func (d *Decoder) node(t Type, b Builder) (some bool, err error) {
	kind := uint64(nodePacked)
	if t == TypeQuicklist {
		t = TypeListZiplist
	} else if kind, err = d.number(); err != nil {
		return false, err
	}
	switch kind {
	case nodePlain:
		e, err := d.string(whole)
		if err == nil {
			err = b.Element(e)
		}
		return true, err
	case nodePacked:
		if t == TypeQuicklist2 {
			if done, err := d.listpack(t, b); done || err != nil {
				return done, err
			}
		}
		c, n, err := d.cursorOf(t)
		return n > 0, d.elements(c, n, b, ignoreEmpty(err))
	}
	return false, bad("no node of a list is of kind %d", kind)
}

// ignoreEmpty returns nil for the error of an empty node, because Redis skips such nodes.
func ignoreEmpty(err error) error {
	if err == errEmpty {
		return nil
	}
	return err
}
