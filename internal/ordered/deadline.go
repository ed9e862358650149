package ordered

import (
	"fmt"

	"github.com/ebbdb/ebb/internal/dict"
)

// Deadline returns the deadline of a living member, 0 if it has none, and
// whether there is such a member. O(1).
func (s *Set) Deadline(member []byte, now int64) (deadline int64, ok bool) {
	return s.dict.Deadline(member, now)
}

// SetDeadline gives a living member a deadline, 0 for none, and reports whether
// there is such a member. A deadline before now is stored like any other.
// O(log n).
func (s *Set) SetDeadline(member []byte, deadline, now int64) (ok bool, err error) {
	return s.dict.SetDeadline(member, deadline, now)
}

// ClearDeadline removes the deadline of a living member and reports whether there is such a member
// and whether it had one. O(log n).
func (s *Set) ClearDeadline(member []byte, now int64) (ok, had bool) {
	return s.dict.ClearDeadline(member, now)
}

// Due returns the number of dead members that Reap has not removed. O(log n).
func (s *Set) Due(now int64) int { return s.dict.Due(now) }

// DueTimes calls visit with the deadline of every dead member, in ascending order.
// O(dead members).
func (s *Set) DueTimes(now int64, visit func(deadline int64)) { s.dict.DueTimes(now, visit) }

// Earliest returns the first deadline of any member, dead ones included; false
// if no member has one. O(1).
func (s *Set) Earliest() (deadline int64, ok bool) { return s.dict.Earliest() }

// NextFrom returns the first deadline of the members that live at now, 0 if none
// has one. O(log n).
func (s *Set) NextFrom(now int64) int64 { return s.dict.NextFrom(now) }

// Deadlines returns the number of members that have a deadline. O(1).
func (s *Set) Deadlines() int { return s.dict.Deadlines() }

// Reap removes up to budget dead members, earliest deadline first, and returns their number. It
// calls fire for each member before it removes the member; fire must not change the set. O(log n)
// per member.
func (s *Set) Reap(now int64, budget int, fire func(Entry)) (reaped int) {
	return s.dict.Reap(now, budget, func(it dict.Item) {
		fire(entryOf(it))
		s.tree.Delete(s.probe(it.Ref), it.Ref)
	})
}

// Check verifies the set's invariants and returns the first one broken. It
// visits every member several times.
func (s *Set) Check() error {
	if err := s.dict.Check(); err != nil {
		return err
	}
	if err := s.tree.Check(); err != nil {
		return err
	}
	if s.tree.Len() != s.dict.Count() {
		return fmt.Errorf("ordered: %d entries for %d members", s.tree.Len(), s.dict.Count())
	}
	for c := s.tree.Seek(0); c.OK(); c.Next() {
		ref := c.Ref()
		if found, ok := s.dict.Find(s.dict.Key(ref)); !ok || found != ref {
			return fmt.Errorf("ordered: entry %d is not the item of its member %q", ref, s.dict.Key(ref))
		}
	}
	return nil
}
