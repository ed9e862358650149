package dict

// EachComing calls visit for every item that lives at now and has a deadline, earliest
// first, until visit returns false. O(log n + items visited). visit must not change the
// dict.
func (d *Dict) EachComing(now int64, visit func(key []byte, deadline int64) bool) {
	if d.due == nil {
		return
	}
	for c := d.due.Seek(d.Due(now)); c.OK() && visit(d.Key(c.Ref()), d.deadlineOf(c.Ref())); {
		c.Next()
	}
}
