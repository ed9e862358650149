//go:build !race

package realserver

const raceEnabled = false
