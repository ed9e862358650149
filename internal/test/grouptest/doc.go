// Package grouptest runs the nodes of groups as real processes, kills them under load, and compares what is there with what was
// acknowledged. It has tests only; make campaign KIND=crash runs them at length.
package grouptest
