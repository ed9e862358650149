// Package prefixes holds the structures that find prefixes of texts: pub/sub looks up
// patterns by their literal beginning, and client-side caching looks up the prefixes of
// CLIENT TRACKING BCAST.
//
//	Index       text ─▶ the values whose prefix it begins with
//	Set         ordered texts; whether a new one overlaps needs its two neighbours only
//	SwapRemove  O(1) removal from the unordered lists that entries stand in
//
// Invariants: an Index has no empty bucket; a Set has no empty chunk. Start reading at
// Index.Each.
package prefixes
