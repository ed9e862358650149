// Package resp has the replies of the Redis serialization protocol (RESP), versions 2 and 3, as values, and the numbers in them as
// Redis spells them. It imports no other package of this module.
//
//	Value ── Err, AsString, AsInt, Pairs... ──> Go     (value.go)
//	Value ── AppendJSON, String ──────────────> text   (json.go)
//	numbers <─────────────────────────────────> text   (number.go)
//
// Start reading at Value.
package resp
