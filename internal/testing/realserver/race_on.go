//go:build race

package realserver

const raceEnabled = true
