// Package ordered implements the large sorted set: members in the order of their scores, with
// lookups by member, rank and score, and an optional deadline for each.
//
//	dict.Dict    member -> item   [deadline 6]? [score 8] [member]
//	                        ^
//	btree.Tree   (score, member) order: 12 bytes an entry, score and item ref;
//	                        members are compared in the items, on equal scores
//
// A member of 11 bytes costs about 50 bytes all in.
//
// Ranks and counts are exact for the living members. The tree counts dead members too until Reap
// removes them, so the set corrects a rank by the due members: O(1) if none is due, else O(due). A
// master calls Reap before it addresses members by rank, so it never pays this cost. A replica,
// which must not remove members, pays it.
//
// Invariants: the tree has one entry for each item of the dict, under the item's score and
// reference.
//
// Members passed in must not lie in the set's own memory. Scores are never NaN. The package has no
// locks: the owner holds the shard's lock. Start reading at Set.Put.
package ordered

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"unsafe"

	"github.com/ebbdb/ebb/internal/chunk"
	"github.com/ebbdb/ebb/internal/dict"
	"github.com/ebbdb/ebb/internal/ordered/btree"
)

// Keep is the deadline for Put that keeps a living member's deadline.
const Keep = dict.Keep

// ErrNoMemory: the Memory has no chunk left. The operation that returns it has changed nothing.
var ErrNoMemory = chunk.ErrNoMemory

const scoreSize = 8

// Set is a sorted set. New returns one. It is not safe for concurrent use.
type Set struct {
	dict *dict.Dict
	tree *btree.Tree
	loan *chunk.Loan // in a frozen set: the loan that Free settles
}

// Entry is one stored member. Member lies in the set's memory. It is valid until the set changes,
// and the caller must not write to it.
type Entry struct {
	Member   []byte
	Score    float64
	Deadline int64 // 0: none
}

// New returns an empty set on m whose members are hashed with seed. It allocates
// no chunk.
func New(m chunk.Memory, seed maphash.Seed) *Set {
	s := &Set{}
	s.dict = dict.New(dict.Config{Memory: m, Seed: seed, ValueSize: scoreSize, Moved: s.moved})
	s.tree = btree.New(m, (*byScore)(s), true)
	return s
}

// Insert sets the score of a member and removes its deadline. It is Put with deadline 0.
func (s *Set) Insert(member []byte, score float64, now int64) (dict.Outcome, error) {
	return s.Put(member, score, 0, now)
}

// Put sets the score and the deadline of a member: 0 for none, Keep to keep a living member's
// deadline. It replaces a dead member completely, and the outcome is Revived. O(log n). Errors:
// ErrNoMemory, and nothing has changed.
func (s *Set) Put(member []byte, score float64, deadline, now int64) (dict.Outcome, error) {
	ref, ok := s.dict.Find(member)
	if !ok {
		return dict.Added, s.Add(member, score, deadline)
	}
	outcome := dict.Replaced
	if !s.dict.Alive(ref, now) {
		outcome = dict.Revived
	}
	rescore := sortable(s.score(ref)) != sortable(score)
	if rescore && !s.tree.Reserve() {
		return outcome, ErrNoMemory
	}
	if deadline != Keep || outcome == dict.Revived {
		old := encode(s.score(ref)) // moved looks the entry up by it
		if _, err := s.dict.Put(member, old[:], deadline, now); err != nil {
			return outcome, err
		}
		ref, _ = s.dict.Find(member)
	}
	if rescore {
		s.tree.Delete(s.probe(ref), ref)
	}
	b := encode(score)
	copy(s.dict.Edit(ref), b[:])
	if rescore {
		s.mustInsert(ref)
	}
	return outcome, nil
}

// Score returns the score of a living member. O(1).
func (s *Set) Score(member []byte, now int64) (score float64, ok bool) {
	ref, ok := s.dict.Find(member)
	if !ok || !s.dict.Alive(ref, now) {
		return 0, false
	}
	return s.score(ref), true
}

// Delete removes a member, living or dead, and reports whether there was one and
// whether it lived. O(log n).
func (s *Set) Delete(member []byte, now int64) (found, living bool) {
	ref, ok := s.dict.Find(member)
	if !ok {
		return false, false
	}
	living = s.dict.Alive(ref, now)
	s.remove(ref)
	return true, living
}

// Len returns the exact number of living members. O(1) while no member is due, else O(log n).
func (s *Set) Len(now int64) int { return s.dict.Len(now) }

// Count returns the number of members, dead ones included. O(1).
func (s *Set) Count() int { return s.dict.Count() }

// Scan is dict.Dict.Scan over the living members.
func (s *Set) Scan(cursor uint64, now int64, visit func(Entry)) (next uint64) {
	return s.dict.Scan(cursor, now, func(it dict.Item) { visit(entryOf(it)) })
}

// Random is dict.Dict.Random over the living members.
func (s *Set) Random(now int64, rng *rand.Rand) (Entry, bool) {
	it, ok := s.dict.Random(now, rng)
	if !ok {
		return Entry{}, false
	}
	return entryOf(it), true
}

// Size returns the bytes that the set holds: chunks, members outside of them, and bookkeeping.
func (s *Set) Size() int { return s.dict.Size() + s.tree.Size() + int(unsafe.Sizeof(*s)) }

// Used returns the bytes in use: items, buckets and tree nodes.
func (s *Set) Used() int { return s.dict.Used() + s.tree.Used() }

// Wasteful reports whether Compact pays; see dict.Dict.Wasteful.
func (s *Set) Wasteful() bool { return s.dict.Wasteful() }

// Compact moves members together. It looks at up to budget members; see dict.Dict.Compact. O(log n)
// per member.
func (s *Set) Compact(budget int) (looked int) { return s.dict.Compact(budget) }

// Free frees up to budget chunks and reports whether it has freed all. All members are invalid
// after the first call. After true, the set is empty and usable again. O(budget).
func (s *Set) Free(budget int) (done bool) {
	if s.loan != nil {
		return s.loan.Settle(s.dict.Memory(), budget) < budget
	}
	n := s.tree.FreeAll(budget)
	return s.dict.Free(budget-n) && n < budget
}

// Add stores a member that the set does not have. O(log n).
func (s *Set) Add(member []byte, score float64, deadline int64) error {
	b := encode(score)
	ref, err := s.dict.Add(member, b[:], deadline)
	if err != nil {
		return err
	}
	if err := s.tree.Insert(s.probe(ref), ref); err != nil {
		s.dict.Remove(ref)
		return err
	}
	return nil
}

func (s *Set) remove(ref uint32) {
	s.tree.Delete(s.probe(ref), ref)
	s.dict.Remove(ref)
}

// mustInsert adds the entry of an item after a successful Reserve.
func (s *Set) mustInsert(ref uint32) {
	if err := s.tree.Insert(s.probe(ref), ref); err != nil {
		panic("ordered: no memory for an entry in spite of its reservation")
	}
}

// moved updates the entry of an item that has got another reference.
func (s *Set) moved(old, new uint32) bool {
	s.tree.Replace(s.probe(old), new)
	return true
}

func (s *Set) score(ref uint32) float64 { return decode(s.dict.Value(ref)) }

func (s *Set) probe(ref uint32) btree.Probe {
	it := s.dict.Item(ref)
	return btree.Probe{Key: sortable(decode(it.Value)), Bytes: it.Key}
}

// byScore is the order of the tree: by score, then by member.
type byScore Set

func (o *byScore) Key(ref uint32) uint64 { return sortable((*Set)(o).score(ref)) }

func (o *byScore) Tie(ref uint32, p btree.Probe) int {
	return bytes.Compare((*Set)(o).dict.Key(ref), p.Bytes)
}

func (o *byScore) Probe(ref uint32) btree.Probe { return (*Set)(o).probe(ref) }

// sortable maps a score to a key that sorts as the score does. 0 and -0 are the same score.
func sortable(score float64) uint64 {
	if score == 0 {
		score = 0 // replaces -0
	}
	b := math.Float64bits(score)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

func encode(score float64) (b [scoreSize]byte) {
	binary.LittleEndian.PutUint64(b[:], math.Float64bits(score))
	return b
}

func decode(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }

func entryOf(it dict.Item) Entry {
	return Entry{Member: it.Key, Score: decode(it.Value), Deadline: it.Deadline}
}
