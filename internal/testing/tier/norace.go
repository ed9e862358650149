//go:build !race

package tier

// raced reports that the race detector is compiled in.
const raced = false
