// Package chaostest sets programs on a cluster of six nodes that are killed and
// restarted, paused, and parted from each other under them, over a network that parts a
// program from some of the nodes as well, with clocks that are minutes apart, and judges
// what they were granted:
//
//	make campaign KIND=chaos TIME=10m
//
// Each client is a process, built with a package time whose Now is wrong, and writes
// on a connection on which every write waits for the replica (Conn.Replicated). Then
// there is no exception to what is promised: at most the limit in any second, one
// holder of the lock in the order of its tokens, and no job lost.
//
// Start reading at TestChaos.
package chaostest
