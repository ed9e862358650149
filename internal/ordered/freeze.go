package ordered

import "github.com/ebbdb/ebb/internal/chunk"

// Freeze returns a read-only copy, under the rules of dict.Dict.Freeze. O(chunks).
func (s *Set) Freeze() *Set {
	f := &Set{loan: new(chunk.Loan)}
	f.dict = s.dict.FreezeOn(f.loan)
	f.tree = s.tree.Freeze(f.loan, (*byScore)(f))
	return f
}

// Frozen reports whether there is a frozen copy that shares chunks with the set.
func (s *Set) Frozen() bool { return s.dict.Frozen() || s.tree.Frozen() }
