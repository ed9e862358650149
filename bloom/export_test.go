package bloom

// ForceScripts makes a filter use the script layout on ebb too, so that it runs in
// virtual time.
func (f *Filter[T]) ForceScripts() { f.native = func() bool { return false } }

// Shape and Places are what they are named after.
func Shape(capacity int64, rate float64) (m uint64, k int) {
	_, m, k = config{capacity: capacity, rate: rate}.shape(0)
	return m, k
}

func Places(data string, m uint64, k int) []uint64 { return hashOf([]byte(data)).places(nil, m, k) }
