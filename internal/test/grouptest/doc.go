// Package grouptest runs the nodes of groups as real processes, has them meet faults under load, and compares what they have with what
// they have acknowledged. It has tests only; make campaign KIND=crash runs them at length.
//
//	clients of all kinds ─ relays ─▶ nodes ◀─ relays ─▶ nodes       network_linux_test.go cuts, rounds_linux_test.go kills, stops, fills
//	     └─ crowd, tally: what was acknowledged ─▶ judge            clients_linux_test.go, register_linux_test.go
//
// The network and the file systems of the nodes need Linux, and a process that may make them. Start reading at plan.play.
package grouptest
