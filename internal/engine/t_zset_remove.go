package engine

import "strconv"

// ZRemRange removes the members of a range, and returns their number. It ignores Rev and
// Limited. O(log n) for each. Errors: ErrWrongType.
func (tx *Tx) ZRemRange(key []byte, r *ZRange) (n int, err error) {
	h, err := tx.writeZSet(key)
	if err != nil || h.r == nil {
		return 0, err
	}
	v := tx.viewZSet(&h)
	first, n := v.resolve(r)
	if n == 0 {
		return 0, nil
	}
	tx.emitRemRange(key, r, &v, first, n)
	left := tx.zcut(&h, v, first, n)
	event := [...]string{"zremrangebyrank", "zremrangebyscore", "zremrangebylex"}[r.By]
	tx.zremoved(&h, key, n, left, event)
	return n, nil
}

// zcut removes n members from rank first on and returns how many are left.
func (tx *Tx) zcut(h *hit, v ZSetView, first, n int) (left int) {
	if v.large != nil {
		v.large.CutRanks(first, n, v.now)
		return v.large.Count()
	}
	p := v.small
	from, _ := p.Index(first, v.now)
	to, _ := p.Index(first+n-1, v.now)
	p = p.DeleteRange(from, to)
	if left = p.Count(); left > 0 {
		tx.shrunk(h, p)
	}
	return left
}

// emitRemRange logs the removal of n members from a rank on. A range by members is
// defined only if all scores are equal; otherwise the result depends on the
// implementation, so the effect names ranks.
func (tx *Tx) emitRemRange(key []byte, r *ZRange, v *ZSetView, first, n int) {
	if !tx.db.logging.Load() {
		return
	}
	switch r.By {
	case ByRank:
		tx.emit("ZREMRANGEBYRANK", key, tx.itoa(0, r.Start), tx.itoa(1, r.Stop))
	case ByScore:
		tx.emit("ZREMRANGEBYSCORE", key, r.Min.text(), r.Max.text())
	default:
		_, lowest := v.at(0)
		if _, highest := v.at(v.Len() - 1); lowest != highest {
			tx.emit("ZREMRANGEBYRANK", key, tx.itoa(0, int64(first)), tx.itoa(1, int64(first+n-1)))
			return
		}
		tx.emit("ZREMRANGEBYLEX", key, r.MinLex.text(), r.MaxLex.text())
	}
}

// text returns the bound in the form of commands.
func (b ScoreBound) text() []byte {
	var t []byte
	if b.Open {
		t = append(t, '(')
	}
	return strconv.AppendFloat(t, b.Score, 'g', -1, 64)
}

func (b *LexBound) text() []byte {
	sign := "-+[("[b.Kind]
	return append([]byte{sign}, b.Member...)
}

// ZPop removes up to count members with the lowest scores, or the highest, and returns their
// number. If there are any, it first calls begin with their number, and then visit with each,
// before it removes them. O(log n) for each. Errors: ErrWrongType.
func (tx *Tx) ZPop(key []byte, count int, highest bool, begin func(n int), visit func(member []byte, score float64)) (n int, err error) {
	h, err := tx.writeZSet(key)
	if err != nil || h.r == nil {
		return 0, err
	}
	v := tx.viewZSet(&h)
	if n = min(count, v.Len()); n <= 0 {
		return 0, nil
	}
	begin(n)
	for w := v.Range(&ZRange{Stop: int64(n - 1), Rev: highest}); w.Next(); {
		visit(w.Member(), w.Score())
	}
	name, event, first := "ZPOPMIN", "zpopmin", 0
	if highest {
		name, event, first = "ZPOPMAX", "zpopmax", v.Len()-n
	}
	tx.emit(name, key, tx.itoa(0, int64(n)))
	left := tx.zcut(&h, v, first, n)
	tx.zremoved(&h, key, n, left, event)
	return n, nil
}

// Random returns a random member, each with the same probability; ok is false if there is none.
// O(log n).
func (v *ZSetView) Random() (member []byte, score float64, ok bool) {
	n := v.Len()
	if n == 0 {
		return nil, 0, false
	}
	member, score = v.at(v.tx.random().IntN(n))
	return member, score, true
}

// at returns the member of a rank, which must exist.
func (v *ZSetView) at(rank int) (member []byte, score float64) {
	if v.large != nil {
		e, _ := v.large.ByRank(rank, v.now)
		return e.Member, e.Score
	}
	at, _ := v.small.Index(rank, v.now)
	return v.tx.text(2, v.small.Key(at)), v.small.Score(at)
}

// fewOf is the ratio of all members to picked members from which on random picks are cheaper than
// shuffling all members.
const fewOf = 4

// Sample visits n different random members, or all members if there are fewer, in no particular order. Every
// subset of n members has the same probability. O(n log n).
func (v *ZSetView) Sample(n int, visit func(member []byte, score float64)) {
	card, rng := v.Len(), v.tx.random()
	switch {
	case n >= card:
		for w := v.Range(&ZRange{Stop: -1, Rev: true}); w.Next(); {
			visit(w.Member(), w.Score())
		}
	case n*fewOf < card:
		picked := make(map[int]struct{}, n)
		for len(picked) < n {
			rank := rng.IntN(card)
			if _, twice := picked[rank]; !twice {
				picked[rank] = struct{}{}
				visit(v.at(rank))
			}
		}
	default:
		ranks := make([]int32, card)
		for i := range ranks {
			ranks[i] = int32(i)
		}
		for i := range n {
			k := i + rng.IntN(card-i)
			ranks[i], ranks[k] = ranks[k], ranks[i]
			visit(v.at(int(ranks[i])))
		}
	}
}
