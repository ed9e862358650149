// Package crashtest kills real servers under load and compares what comes back
// with what was acknowledged. It has tests only; make campaign KIND=crash runs them at length.
package crashtest
