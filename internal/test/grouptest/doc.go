// Package grouptest runs groups of real processes, exposes them to faults under load, and compares their data with
// what they have acknowledged. It has only tests; make campaign KIND=crash runs them for longer.
//
//	clients of all kinds ─ relays ─▶ nodes ◀─ relays ─▶ nodes       network_linux_test.go cuts, rounds_linux_test.go kills, stops, fills
//	     └─ crowd, tally: what was acknowledged ─▶ judge            clients_linux_test.go, register_linux_test.go
//
// The network and the file systems of the nodes need Linux and a process that may create them. Start reading at
// plan.play.
package grouptest
