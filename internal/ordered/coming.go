package ordered

// EachComing calls visit for every member that lives at now and has a deadline, earliest
// first, until visit returns false. O(log n + members visited). visit must not change the
// set.
func (s *Set) EachComing(now int64, visit func(member []byte, deadline int64) bool) {
	s.dict.EachComing(now, visit)
}
