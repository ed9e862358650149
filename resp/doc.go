// Package resp has the replies of the Redis serialization protocol (RESP), versions 2 and 3, as values. Of this module it imports
// the spelling of numbers alone.
//
//	Value ── Err, AsString, AsInt, Pairs... ──> Go     (value.go)
//	Value ── AppendJSON, String ──────────────> text   (json.go)
//
// Start reading at Value.
package resp
