package stream

// Tombstones reports whether an entry from id on may have been deleted, as far
// as the largest deleted id tells. O(1).
func (s *Stream) Tombstones(id ID) bool {
	if s.length == 0 || s.MaxDeleted.IsZero() || s.MaxDeleted.Less(id) {
		return false
	}
	return !s.MaxDeleted.Less(s.First())
}

// ReadBefore returns how many of all entries ever added a reader with the last id id has read, or
// Unknown if deleted entries make that unknowable.
func (s *Stream) ReadBefore(id ID) int64 {
	switch {
	case s.Added == 0:
		return 0
	case s.length == 0 && !s.Last.Less(id):
		return int64(s.Added)
	case id == s.Last:
		return int64(s.Added)
	case s.Last.Less(id):
		return Unknown
	}
	first := s.First()
	if s.MaxDeleted.IsZero() || s.MaxDeleted.Less(first) {
		switch {
		case id.Less(first):
			return int64(s.Added) - int64(s.length)
		case id == first:
			return int64(s.Added) - int64(s.length) + 1
		}
	}
	return Unknown
}

// Lag returns how many entries a group has not read yet, or false if deleted entries, or an XSETID that set
// the number of entries below what the group has read, make that unknowable.
func (s *Stream) Lag(g *Group) (int64, bool) {
	switch {
	case s.length == 0:
		return 0, true
	case g.Last.Less(s.First()) && s.MaxDeleted.Less(s.First()):
		return int64(s.length), true
	}
	if g.Read != Unknown && !s.Tombstones(g.Last) {
		lag := int64(s.Added) - g.Read
		return max(lag, 0), lag >= 0
	}
	n := s.ReadBefore(g.Last)
	return int64(s.Added) - n, n != Unknown
}
