// Package wire reads and writes the Redis serialization protocol (RESP), versions 2 and 3, for
// clients and servers. It contains no command. Package resp has the replies as values.
//
//	bytes of a client ── Parser.Next ──> args          (parser.go, inline.go)
//	handler ── Writer.Array, Bulk... ──> bytes         (writer.go)
//	                                 └─> Value tree    (collect.go, later.go)
//	bytes of a server ── ReadValue ────> Value         (read.go)
//	Value ── AppendTTY, AppendRaw... ──> text          (format.go)
//
// Invariants:
//
//   - Parser's result does not depend on how the stream was cut into pieces.
//   - What a Writer collects as a Value is what ReadValue returns for the bytes
//     the same calls would have written.
//   - A declared length reserves no memory: what a peer makes this package
//     allocate is proportional to the bytes the peer has sent.
//
// Start reading at Parser.Next and Writer.
package wire
