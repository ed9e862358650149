package table

// A snapshot saves the entries that a table had at its cut, bucket by bucket, while the table is in
// use. Each bucket has a mark that says whether it is saved. The meaning of the mark flips with
// every cut, so that a cut costs O(1). Without a snapshot all buckets are saved, and a cut makes
// all of them unsaved.
//
//	Cut ─▶ a walk from bucket 0 to the last, which saves the unsaved buckets,
//	       and each change of a bucket, which saves the bucket before
//
// When the table splits a bucket, both halves get its mark. Before it joins two buckets of which
// one is saved, it calls the Saver for the other. So every bucket that the walk has passed stays
// saved, and a walk up to the last bucket misses none.

// mark is the bit in bucket.over. No table has 2^31 overflow buckets, which would be 128
// GiB.
const mark = 1 << 31

// Saver saves the entries of a bucket. Save calls Table.SetSaved for the bucket and must not change
// the table otherwise.
type Saver interface{ Save(bucket uint32) }

// Cut begins a snapshot: it marks all buckets, which are saved, as unsaved. The table calls s for a
// bucket that has to be saved before the table joins it with another. O(1).
func (t *Table) Cut(s Saver) {
	t.saved ^= mark
	t.saver = s
}

// Saved reports whether a bucket is saved.
func (t *Table) Saved(bucket uint32) bool { return t.main.at(bucket).over&mark == t.saved }

// SetSaved notes that a bucket is saved.
func (t *Table) SetSaved(bucket uint32) {
	b := t.main.at(bucket)
	b.over = b.over&^mark | t.saved
}

// saveOne saves one of two buckets if only the other is saved.
func (t *Table) saveOne(a, b uint32) {
	switch x, y := t.Saved(a), t.Saved(b); {
	case x == y:
	case x:
		t.saver.Save(b)
	default:
		t.saver.Save(a)
	}
}
