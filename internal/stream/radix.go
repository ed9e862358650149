package stream

import "encoding/binary"

// sampleKeys is the greatest number of nodes that RadixNodes looks at: 30 us of work.
const sampleKeys = 1000

// RadixNodes returns the number of nodes of the radix tree that Redis would have over its nodes'
// first ids: the exact number for small streams, and an estimate from the first nodes for large
// ones. O(1).
func (s *Stream) RadixNodes() int {
	keys := make([][16]byte, 0, min(s.nodes, sampleKeys))
	for at, ok := (place{}), s.pieces > 0; ok && len(keys) < sampleKeys; at, ok = s.after(at) {
		if p := s.at(at); p.flags&pieceNode != 0 {
			var k [16]byte
			binary.BigEndian.PutUint64(k[:], p.first.Ms)
			binary.BigEndian.PutUint64(k[8:], p.first.Seq)
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return 1
	}
	return radixNodes(keys, 0) * s.nodes / len(keys)
}

// radixNodes counts the nodes of the subtree of sorted keys that agree up to byte d: one for the
// bytes that all keys have in common, and one for each branch and leaf.
func radixNodes(keys [][16]byte, d int) int {
	n := 1
	first, last := &keys[0], &keys[len(keys)-1]
	if d < 16 && first[d] == last[d] {
		n++
		for d < 16 && first[d] == last[d] {
			d++
		}
	}
	if d == 16 {
		return n
	}
	for len(keys) > 0 {
		k := 1
		for k < len(keys) && keys[k][d] == keys[0][d] {
			k++
		}
		n += radixNodes(keys[:k], d+1)
		keys = keys[k:]
	}
	return n
}
