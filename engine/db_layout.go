package engine

// Layout says up to which size containers are small: packed into one run of
// bytes. It is the -max-listpack- and other such directives of Redis. A
// container that has outgrown it becomes large with the next write.
type Layout struct {
	HashEntries, HashValue int // fields; bytes of the longest field or value
	SetIntegers            int // members of a set of integers
	SetEntries, SetValue   int // members; bytes of the longest
	ZSetEntries, ZSetValue int // members; bytes of the longest
	ListSize               int // list-max-listpack-size: elements, or -1 to -5 for 4, 8, 16, 32, 64 KiB
	StreamBytes            int // of a stream's node; 0: no bound
	StreamEntries          int // of a stream's node; 0: no bound
	HyperLogLogSparse      int // bytes of a sparse HyperLogLog
}

// defaultLayout is Redis 7.2's.
func defaultLayout() Layout {
	return Layout{
		HashEntries: 512, HashValue: 64,
		SetIntegers: 512,
		SetEntries:  128, SetValue: 64,
		ZSetEntries: 128, ZSetValue: 64,
		ListSize:    -2,
		StreamBytes: 4096, StreamEntries: 100,
		HyperLogLogSparse: 3000,
	}
}

// SetLayout changes the layout that writes aim at from now on.
func (db *DB) SetLayout(l Layout) { db.layout.Store(&l) }

// Layout returns the layout in force.
func (db *DB) Layout() Layout { return *db.layout.Load() }
