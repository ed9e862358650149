package arena

import "unsafe"

// Wasteful reports whether Compact pays: the free slots of some class are worth more than one slab
// and more than one slot in sixteen. O(classes).
func (a *Arena) Wasteful() bool {
	for c := 1; c < numClasses; c++ {
		if a.wasteful(c) {
			return true
		}
	}
	return false
}

func (a *Arena) wasteful(c int) bool {
	cl := &a.classes[c]
	if len(cl.partial) < 2 {
		return false
	}
	slab := SlabSize / classSize(c)
	free := cl.slabs*slab - cl.slots
	return free > slab+cl.slots/16
}

// Compact empties sparse slabs: it moves at most budget records into fuller slabs of their class
// and calls moved for each, after its bytes were copied. The owner then updates the references to
// the record. Compact returns the number of records that it moved; 0 means that compaction does not
// pay. The old slot is free when moved returns, and must not be read after that.
//
// It costs O(budget), plus a look at up to 64 slabs of a class to find the sparsest.
func (a *Arena) Compact(budget int, moved func(old, new Ref)) int {
	done := 0
	for tried := 0; tried < numClasses && done < budget; tried++ {
		if a.next == 0 || a.next >= numClasses {
			a.next = 1
		}
		if !a.wasteful(a.next) {
			a.next++
			continue
		}
		done += a.evacuate(a.next, budget-done, moved)
	}
	return done
}

// evacuate moves up to budget records out of the sparsest slab of class c.
func (a *Arena) evacuate(c, budget int, moved func(old, new Ref)) int {
	cl := &a.classes[c]
	best := 0
	step := max(1, len(cl.partial)/64)
	for i := 0; i < len(cl.partial); i += step {
		if a.slabs[cl.partial[i]].live < a.slabs[cl.partial[best]].live {
			best = i
		}
	}
	n := cl.partial[best]
	s := &a.slabs[n]
	// Remove the slab from the list, so that new slots come from other slabs.
	a.unlist(cl, s)
	done := 0
	for off := uint32(0); off < s.bump && s.live > 0 && done < budget; off += s.size {
		from := unsafe.Add(s.base, off)
		if *(*byte)(from) == 0 {
			continue
		}
		if len(cl.partial) == 0 {
			break
		}
		to := a.alloc(c)
		copy(a.Bytes(to, int(s.size)), unsafe.Slice((*byte)(from), s.size))
		old := Ref(n<<offBits | off/granule)
		moved(old, to)
		a.retire(n, off)
		done++
	}
	if s.live == 0 {
		a.dropSlab(n)
	} else {
		// Append it: Compact empties this slab next, and Alloc fills it last.
		s.part = int32(len(cl.partial))
		cl.partial = append(cl.partial, n)
		a.swapPartial(cl, 0, int(s.part))
	}
	return done
}

// retire frees the slot at off of slab n, which is not in its class's list.
func (a *Arena) retire(n, off uint32) {
	s := &a.slabs[n]
	p := unsafe.Add(s.base, off)
	if poison {
		poisonSlot(unsafe.Slice((*byte)(p), s.size))
	}
	*(*byte)(p) = 0
	*(*uint32)(unsafe.Add(p, 4)) = s.free
	s.free = off/granule + 1
	s.live--
	a.live -= int(s.size)
	a.classes[s.class].slots--
}

func (a *Arena) swapPartial(cl *class, i, j int) {
	cl.partial[i], cl.partial[j] = cl.partial[j], cl.partial[i]
	a.slabs[cl.partial[i]].part = int32(i)
	a.slabs[cl.partial[j]].part = int32(j)
}

func poisonSlot(b []byte) {
	for i := range b {
		b[i] = 0xDB
	}
}
